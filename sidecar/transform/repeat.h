// tf.data's repeat(count): -1 is endless. Each repetition is a pass of its own.
#pragma once

#include <algorithm>

#include "sidecar/core/dataset.h"
#include "sidecar/core/random.h"

namespace headrace::side {

template <typename T>
class RepeatDataset : public Dataset<T> {
 public:
  // `even`: repetitions may differ in their order, but not in their number of elements.
  RepeatDataset(DatasetPtr<T> input, int64_t count, bool even = true)
      : input_(std::move(input)), count_(count), even_(even) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override { return std::make_unique<RepeatStream>(*this, pass); }

 private:
  class RepeatStream : public Stream<T> {
   public:
    RepeatStream(const RepeatDataset& repeat, Pass pass) : repeat_(repeat), pass_(pass) {}

    Result<size_t> Read(std::span<T> out) override {
      while (Open()) {
        ASSIGN_OR_RETURN(const size_t read, input_->Read(out));
        if (read > 0) {
          read_ += read;
          return read;
        }
        Close();
      }
      return size_t{0};
    }

    Result<uint64_t> PassOver(uint64_t n) override {
      uint64_t passed = 0;
      while (passed < n && Open()) {
        ASSIGN_OR_RETURN(const uint64_t more, input_->PassOver(n - passed));
        passed += more;
        read_ += more;
        if (passed == n) break;
        Close();
        if (!repeat_.even_) continue;
        // Whole repetitions need not be made.
        const uint64_t left = repeat_.count_ < 0 ? ~uint64_t{0} : static_cast<uint64_t>(repeat_.count_ - repetition_);
        if (length_ > 0) {
          const uint64_t whole = std::min((n - passed) / length_, left);
          repetition_ += static_cast<int64_t>(whole);
          passed += whole * length_;
        }
      }
      return passed;
    }

   private:
    // Makes the next repetition if none is being read. false: there are no more.
    bool Open() {
      if (input_ != nullptr) return true;
      // An endless repeat of nothing ends, as in tf.data.
      if (repetition_ == repeat_.count_ || (repetition_ > 0 && length_ == 0)) return false;
      input_ = repeat_.input_->Iterate({Mix(pass_.key, static_cast<uint64_t>(repetition_)), pass_.run_seed});
      ++repetition_;
      read_ = 0;
      return true;
    }
    void Close() {
      input_.reset();
      length_ = read_;
    }

    const RepeatDataset& repeat_;
    const Pass pass_;
    std::unique_ptr<Stream<T>> input_;
    int64_t repetition_ = 0;
    uint64_t read_ = 0;    // of the one being read
    uint64_t length_ = 0;  // of the last one that was read to its end
  };

  DatasetPtr<T> input_;
  int64_t count_;
  bool even_;
};

}  // namespace headrace::side
