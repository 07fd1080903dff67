// tf.data's repeat(count): -1 is endless. Each repetition is a pass of its own.
#pragma once

#include "sidecar/core/dataset.h"
#include "sidecar/core/random.h"

namespace headrace::side {

template <typename T>
class RepeatDataset : public Dataset<T> {
 public:
  RepeatDataset(DatasetPtr<T> input, int64_t count) : input_(std::move(input)), count_(count) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override { return std::make_unique<RepeatStream>(*this, pass); }

 private:
  class RepeatStream : public Stream<T> {
   public:
    RepeatStream(const RepeatDataset& repeat, Pass pass) : repeat_(repeat), pass_(pass) {}

    Result<size_t> Read(std::span<T> out) override {
      while (true) {
        if (input_ == nullptr) {
          if (repetition_ == repeat_.count_ || barren_) return size_t{0};
          input_ = repeat_.input_->Iterate({Mix(pass_.key, static_cast<uint64_t>(repetition_)), pass_.run_seed});
          ++repetition_;
          barren_ = true;
        }
        ASSIGN_OR_RETURN(const size_t read, input_->Read(out));
        if (read > 0) {
          barren_ = false;
          return read;
        }
        input_.reset();
      }
    }

   private:
    const RepeatDataset& repeat_;
    const Pass pass_;
    std::unique_ptr<Stream<T>> input_;
    int64_t repetition_ = 0;
    bool barren_ = false;  // the last repetition held nothing: an endless repeat of nothing ends, as in tf.data
  };

  DatasetPtr<T> input_;
  int64_t count_;
};

}  // namespace headrace::side
