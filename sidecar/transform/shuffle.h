// tf.data's shuffle(buffer_size, seed, reshuffle_each_iteration): a buffer from which elements leave at random.
// The order is a function of seed and pass alone, the same on every worker.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"
#include "sidecar/core/random.h"
#include "sidecar/transform/compaction.h"

namespace headrace::side {

// Of what the order of a pass is a function. `position` tells the shuffles of one pipeline apart that take their seed
// from the run.
inline uint64_t ShuffleKey(const Shuffle& shuffle, uint64_t position, Pass pass) {
  const uint64_t seed = shuffle.seed ? static_cast<uint64_t>(*shuffle.seed) : Mix(pass.run_seed, position);
  return Mix(seed, shuffle.reshuffle_each_iteration ? pass.key : 0);
}

template <typename T>
class ShuffleDataset : public Dataset<T> {
 public:
  // `blocks` (may be null): that records lie in.
  ShuffleDataset(DatasetPtr<T> input, const Shuffle& shuffle, uint64_t position, BytesBlockPool* blocks = nullptr)
      : input_(std::move(input)), shuffle_(shuffle), position_(position), blocks_(blocks) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override { return std::make_unique<ShuffleStream>(*this, pass); }

 private:
  class ShuffleStream : public Stream<T> {
   public:
    ShuffleStream(const ShuffleDataset& shuffle, Pass pass)
        : shuffle_(shuffle),
          pass_(pass),
          input_(shuffle.input_->Iterate(pass)),
          buffer_size_(static_cast<size_t>(shuffle.shuffle_.buffer_size)),
          random_(ShuffleKey(shuffle.shuffle_, shuffle.position_, pass)) {
      if (shuffle.blocks_ != nullptr) compaction_.emplace(shuffle.blocks_);
    }

    Result<size_t> Read(std::span<T> out) override {
      RETURN_IF_ERROR(Fill());
      size_t written = 0;
      while (written < out.size() && !buffer_.empty()) {
        T& chosen = buffer_[random_.Below(buffer_.size())];
        std::swap(out[written++], chosen);
        // The newest element, or the next of the input, takes the place of the one that left.
        bool more = false;
        if (!ended_) {
          ASSIGN_OR_RETURN(more, TakeNext(chosen));
          ended_ = !more;
        }
        if (!more) {
          std::swap(chosen, buffer_.back());
          buffer_.pop_back();
        }
        if constexpr (std::is_same_v<T, Record>) Compact();
      }
      return written;
    }

    // The same draws over the numbers of the input's elements; only those that are in the buffer in the end are read.
    Result<uint64_t> PassOver(uint64_t n) override {
      if (started_) return Stream<T>::PassOver(n);
      uint64_t length = ~uint64_t{0};
      while (true) {
        const uint64_t passed = Draw(n, length);
        ASSIGN_OR_RETURN(const uint64_t found, ReadBuffer());
        if (found >= drawn_until_) return passed;
        // The input is shorter than the draws took it to be: draw again, now knowing its length.
        length = found;
        input_ = shuffle_.input_->Iterate(pass_);
        random_ = Random(ShuffleKey(shuffle_.shuffle_, shuffle_.position_, pass_));
      }
    }

   private:
    // The next element of the input, of which some are read at a time.
    Result<bool> TakeNext(T& element) {
      if (next_ == staged_) {
        stage_.resize(kStage);
        ASSIGN_OR_RETURN(staged_, input_->Read(stage_));
        next_ = 0;
        if (staged_ == 0) return false;
      }
      std::swap(element, stage_[next_++]);
      return true;
    }

    // As many records are looked at as have left.
    void Compact() {
      if (!compaction_ || ++left_ < Compaction::kSweep) return;
      left_ = 0;
      if (swept_ >= buffer_.size()) swept_ = 0;
      const size_t end = std::min(swept_ + Compaction::kSweep, buffer_.size());
      compaction_->Sweep(std::span<Record>(buffer_).subspan(swept_, end - swept_));
      swept_ = end;
    }

    // Read's draws, n of them, from an input of `length` elements: fills buffered_ and drawn_until_. Returns how many
    // there were.
    uint64_t Draw(uint64_t n, uint64_t length) {
      buffered_.resize(std::min<uint64_t>(buffer_size_, length));
      std::iota(buffered_.begin(), buffered_.end(), uint64_t{0});
      drawn_until_ = buffered_.size();
      uint64_t passed = 0;
      for (; passed < n && !buffered_.empty(); ++passed) {
        uint64_t& chosen = buffered_[random_.Below(buffered_.size())];
        if (drawn_until_ < length) {
          chosen = drawn_until_++;
        } else {
          chosen = buffered_.back();
          buffered_.pop_back();
        }
      }
      ended_ = drawn_until_ == length;
      return passed;
    }

    // Reads the elements whose numbers are in buffered_ into buffer_. Returns how many elements the input has, or
    // drawn_until_ if it has as many at least.
    Result<uint64_t> ReadBuffer() {
      std::vector<size_t> in_order(buffered_.size());
      std::iota(in_order.begin(), in_order.end(), size_t{0});
      std::sort(in_order.begin(), in_order.end(), [&](size_t a, size_t b) { return buffered_[a] < buffered_[b]; });
      buffer_.resize(buffered_.size());
      uint64_t at = 0;
      for (const size_t i : in_order) {
        const uint64_t between = buffered_[i] - at;
        ASSIGN_OR_RETURN(const uint64_t passed, input_->PassOver(between));
        at += passed;
        if (passed < between) return at;
        ASSIGN_OR_RETURN(const bool more, ReadOne(*input_, buffer_[i]));
        if (!more) return at;
        ++at;
      }
      ASSIGN_OR_RETURN(const uint64_t passed, input_->PassOver(drawn_until_ - at));
      started_ = true;
      return at + passed;
    }

    Status Fill() {
      started_ = true;
      while (!ended_ && buffer_.size() < buffer_size_) {
        const size_t filled = buffer_.size();
        buffer_.resize(std::min(buffer_size_, filled + 256));
        ASSIGN_OR_RETURN(const size_t read, input_->Read(std::span<T>(buffer_).subspan(filled)));
        buffer_.resize(filled + read);
        ended_ = read == 0;
      }
      return {};
    }

    const ShuffleDataset& shuffle_;
    const Pass pass_;
    std::unique_ptr<Stream<T>> input_;
    const size_t buffer_size_;
    Random random_;
    std::vector<T> buffer_;
    static constexpr size_t kStage = 64;
    std::vector<T> stage_;  // [next_, staged_) are still to come
    size_t next_ = 0;
    size_t staged_ = 0;
    bool ended_ = false;
    bool started_ = false;            // something was read or passed over
    std::vector<uint64_t> buffered_;  // PassOver's: the number, in the input, of each element of the buffer
    uint64_t drawn_until_ = 0;        // ... and how many elements of the input the draws took
    std::optional<Compaction> compaction_;
    size_t left_ = 0;   // elements, since it was last at work
    size_t swept_ = 0;  // the end of what it looked at then
  };

  DatasetPtr<T> input_;
  const Shuffle shuffle_;
  const uint64_t position_;
  BytesBlockPool* const blocks_;
};

}  // namespace headrace::side
