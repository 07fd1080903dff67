// How many requests at a time one host takes: more while it answers, half when it says that it is too much.
#pragma once

#include <algorithm>

namespace headrace::side {

// Additive increase, multiplicative decrease. One more after as many answers as are allowed at a time, so that a host
// that is well again has its full speed within seconds; half where more than a fifth of the latest replies were
// throttled. Stores refuse a few in a hundred whatever is asked of them, and asking for less would only be slower. A
// value of one thread.
class Pace {
 public:
  static constexpr int kFirst = 16;
  static constexpr int kMost = 64;

  int limit() const { return limit_; }
  void Answered() {
    if (++since_raise_ >= limit_) {
      since_raise_ = 0;
      limit_ = std::min(limit_ + 1, kMost);
    }
    Count(0);
  }
  void Throttled() { Count(1); }

 private:
  static constexpr int kFewestReplies = 20;

  void Count(int throttled) {
    throttled_ += throttled;
    if (++replies_ < counted_at_a_time_) return;
    if (5 * throttled_ > replies_) {
      limit_ = std::max(limit_ / 2, 1);
      since_raise_ = 0;
    }
    replies_ = throttled_ = 0;
    counted_at_a_time_ = std::max(2 * limit_, kFewestReplies);
  }

  int limit_ = kFirst;
  int since_raise_ = 0;  // answers
  int replies_ = 0;      // that were counted, and how many of them were throttled
  int throttled_ = 0;
  int counted_at_a_time_ = 2 * kFirst;
};

}  // namespace headrace::side
