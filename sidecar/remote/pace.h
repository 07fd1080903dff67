// How many requests at a time one host takes: more while it answers, half when it says that it is too much.
#pragma once

#include <algorithm>
#include <chrono>

namespace headrace::side {

// Additive increase, multiplicative decrease. One more after as many answers as are allowed at a time, so that a host
// that is well again has its full speed within seconds; half on a throttled answer, but once a second at most, so that
// one burst of them counts once. A value of one thread.
class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kFirst = 16;
  static constexpr int kMost = 64;
  static constexpr std::chrono::seconds kBetweenCuts{1};

  int limit() const { return limit_; }
  void Answered() {
    if (++answers_ < limit_) return;
    answers_ = 0;
    limit_ = std::min(limit_ + 1, kMost);
  }
  void Throttled(Time now) {
    answers_ = 0;
    if (now < next_cut_) return;
    next_cut_ = now + kBetweenCuts;
    limit_ = std::max(limit_ / 2, 1);
  }

 private:
  int limit_ = kFirst;
  int answers_ = 0;
  Time next_cut_{};
};

}  // namespace headrace::side
