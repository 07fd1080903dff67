// tf.data's shuffle(buffer_size, seed, reshuffle_each_iteration): a buffer from which elements leave at random.
// The order is a function of seed and pass alone, the same on every worker.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"
#include "sidecar/core/random.h"

namespace headrace::side {

template <typename T>
class ShuffleDataset : public Dataset<T> {
 public:
  // `position` tells the shuffles of one pipeline apart that take their seed from the run.
  ShuffleDataset(DatasetPtr<T> input, const Shuffle& shuffle, uint64_t position)
      : input_(std::move(input)), shuffle_(shuffle), position_(position) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override {
    const uint64_t seed = shuffle_.seed ? static_cast<uint64_t>(*shuffle_.seed) : Mix(pass.run_seed, position_);
    return std::make_unique<ShuffleStream>(input_->Iterate(pass), static_cast<size_t>(shuffle_.buffer_size),
                                           Mix(seed, shuffle_.reshuffle_each_iteration ? pass.key : 0));
  }

 private:
  class ShuffleStream : public Stream<T> {
   public:
    ShuffleStream(std::unique_ptr<Stream<T>> input, size_t buffer_size, uint64_t key)
        : input_(std::move(input)), buffer_size_(buffer_size), random_(key) {}

    Result<size_t> Read(std::span<T> out) override {
      RETURN_IF_ERROR(Fill());
      size_t written = 0;
      while (written < out.size() && !buffer_.empty()) {
        T& chosen = buffer_[random_.Below(buffer_.size())];
        std::swap(out[written++], chosen);
        // The newest element, or the next of the input, takes the place of the one that left.
        bool more = false;
        if (!ended_) {
          ASSIGN_OR_RETURN(more, ReadOne(*input_, chosen));
          ended_ = !more;
        }
        if (!more) {
          std::swap(chosen, buffer_.back());
          buffer_.pop_back();
        }
      }
      return written;
    }

   private:
    Status Fill() {
      while (!ended_ && buffer_.size() < buffer_size_) {
        const size_t filled = buffer_.size();
        buffer_.resize(std::min(buffer_size_, filled + 256));
        ASSIGN_OR_RETURN(const size_t read, input_->Read(std::span<T>(buffer_).subspan(filled)));
        buffer_.resize(filled + read);
        ended_ = read == 0;
      }
      return {};
    }

    std::unique_ptr<Stream<T>> input_;
    const size_t buffer_size_;
    Random random_;
    std::vector<T> buffer_;
    bool ended_ = false;
  };

  DatasetPtr<T> input_;
  const Shuffle shuffle_;
  const uint64_t position_;
};

}  // namespace headrace::side
