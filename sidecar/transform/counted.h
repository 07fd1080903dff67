// take, skip and shard: which elements of a stream pass, by their position alone.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <string>

#include "sidecar/core/dataset.h"

namespace headrace::side {

// A data set whose streams are S<T>, made of the input's stream and a count.
template <typename T, template <typename> class S>
class CountedDataset : public Dataset<T> {
 public:
  CountedDataset(DatasetPtr<T> input, int64_t count) : input_(std::move(input)), count_(count) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override {
    return std::make_unique<S<T>>(input_->Iterate(pass), count_);
  }

 private:
  DatasetPtr<T> input_;
  int64_t count_;
};

template <typename T>
class CountedStream : public Stream<T> {
 public:
  CountedStream(std::unique_ptr<Stream<T>> stream, int64_t count) : input(std::move(stream)), left(count) {}

 protected:
  // Reads as many as are left at most. `left` must not be negative.
  Result<size_t> ReadLeft(std::span<T> out) {
    ASSIGN_OR_RETURN(const size_t read, input->Read(out.first(std::min<uint64_t>(out.size(), left))));
    left -= static_cast<int64_t>(read);
    return read;
  }

  Result<uint64_t> PassOverLeft(uint64_t n) {
    ASSIGN_OR_RETURN(const uint64_t passed, input->PassOver(std::min<uint64_t>(n, left)));
    left -= static_cast<int64_t>(passed);
    return passed;
  }

  std::unique_ptr<Stream<T>> input;
  int64_t left;
};

template <typename T>
class TakeStream : public CountedStream<T> {
 public:
  using CountedStream<T>::CountedStream;
  Result<size_t> Read(std::span<T> out) override {
    if (this->left < 0) return this->input->Read(out);
    if (this->left == 0) return size_t{0};
    return this->ReadLeft(out);
  }
  Result<uint64_t> PassOver(uint64_t n) override {
    if (this->left < 0) return this->input->PassOver(n);
    return this->PassOverLeft(n);
  }
};

template <typename T>
class SkipStream : public CountedStream<T> {
 public:
  using CountedStream<T>::CountedStream;
  Result<size_t> Read(std::span<T> out) override {
    if (this->left < 0) return size_t{0};
    ASSIGN_OR_RETURN(const bool more, PassOverAll());
    return more ? this->input->Read(out) : size_t{0};
  }
  Result<uint64_t> PassOver(uint64_t n) override {
    if (this->left < 0) return uint64_t{0};
    ASSIGN_OR_RETURN(const bool more, PassOverAll());
    return more ? this->input->PassOver(n) : uint64_t{0};
  }

 private:
  // Those to be skipped. false: the input ends before.
  Result<bool> PassOverAll() {
    if (this->left > 0) RETURN_IF_ERROR(this->PassOverLeft(static_cast<uint64_t>(this->left)));
    return this->left == 0;
  }
};

// tf.data's take(count); -1 is all.
template <typename T>
using TakeDataset = CountedDataset<T, TakeStream>;

// tf.data's skip(count); -1 is all.
template <typename T>
using SkipDataset = CountedDataset<T, SkipStream>;

// tf.data's shard(num_shards, index): elements index, index + num_shards, ... With `at_least` > 0 a stream that holds
// some elements, but fewer, is an error before its first element is delivered: some shard would go without.
template <typename T>
class ShardDataset : public Dataset<T> {
 public:
  ShardDataset(DatasetPtr<T> input, int64_t num_shards, int64_t index, int64_t at_least, std::string what)
      : input_(std::move(input)), num_shards_(num_shards), index_(index), at_least_(at_least), what_(std::move(what)) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override {
    return std::make_unique<ShardStream>(*this, input_->Iterate(pass));
  }

 private:
  class ShardStream : public Stream<T> {
   public:
    ShardStream(const ShardDataset& shard, std::unique_ptr<Stream<T>> input)
        : shard_(shard), input_(std::move(input)) {}

    Result<size_t> Read(std::span<T> out) override {
      if (!checked_) RETURN_IF_ERROR(ReadAhead());
      size_t kept = 0;
      while (kept < out.size()) {
        // Read in place, keep what is ours, read on into what is left. One element at a time for small shards of
        // batches would be as right; blocks are faster for records.
        const std::span<T> rest = out.subspan(kept);
        ASSIGN_OR_RETURN(const size_t read, Pull(rest));
        if (read == 0) break;
        for (size_t i = 0; i < read; ++i, ++position_) {
          if (position_ % shard_.num_shards_ != shard_.index_) continue;
          if (&rest[i] != &out[kept]) std::swap(out[kept], rest[i]);
          ++kept;
        }
        if (kept > 0) break;
      }
      return kept;
    }

    Result<uint64_t> PassOver(uint64_t n) override {
      if (!checked_) RETURN_IF_ERROR(ReadAhead());
      uint64_t kept = 0;
      while (kept < n && !ahead_.empty()) {  // as Read takes them
        T element;
        ASSIGN_OR_RETURN(const size_t read, Read(std::span<T>(&element, 1)));
        if (read == 0) return kept;
        kept += read;
      }
      if (kept == n) return kept;
      // Up to our next element and it, then num_shards for each further one.
      const auto shards = static_cast<uint64_t>(shard_.num_shards_);
      const uint64_t first =
          (static_cast<uint64_t>(shard_.index_) + shards - static_cast<uint64_t>(position_) % shards) % shards + 1;
      ASSIGN_OR_RETURN(const uint64_t passed, input_->PassOver(first + (n - kept - 1) * shards));
      position_ += static_cast<int64_t>(passed);
      return kept + (passed < first ? 0 : (passed - first) / shards + 1);
    }

   private:
    // Looks whether there are enough elements, keeping those it read.
    Status ReadAhead() {
      checked_ = true;
      while (static_cast<int64_t>(ahead_.size()) < shard_.at_least_) {
        T element;
        ASSIGN_OR_RETURN(const bool more, ReadOne(*input_, element));
        if (!more) break;
        ahead_.push_back(std::move(element));
      }
      if (!ahead_.empty() && static_cast<int64_t>(ahead_.size()) < shard_.at_least_) {
        return InvalidArgument(shard_.what_ + ": " + std::to_string(ahead_.size()) + " for " +
                               std::to_string(shard_.at_least_) +
                               " workers; every worker needs at least one: use fewer workers, more files, or "
                               "autoShardPolicy Data");
      }
      return {};
    }

    Result<size_t> Pull(std::span<T> out) {
      if (ahead_.empty()) return input_->Read(out);
      out[0] = std::move(ahead_.front());
      ahead_.pop_front();
      return size_t{1};
    }

    const ShardDataset& shard_;
    std::unique_ptr<Stream<T>> input_;
    std::deque<T> ahead_;
    bool checked_ = false;
    int64_t position_ = 0;
  };

  DatasetPtr<T> input_;
  int64_t num_shards_;
  int64_t index_;
  int64_t at_least_;
  std::string what_;
};

}  // namespace headrace::side
