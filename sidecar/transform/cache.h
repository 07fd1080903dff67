// tf.data's cache(), in memory: the first whole pass fills it, later passes read it instead of the input.
//
// What it holds is the input's pass 0, whichever epoch fills it: an input that reshuffles is frozen in the order that
// epoch 0 had, also after a restart.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"

namespace headrace::side {

// Counts what a cache takes: records, and the blocks that they were read into, which stay for as long as they do.
class CacheSize {
 public:
  uint64_t bytes() const { return bytes_; }
  void Add(const Record& record) {
    bytes_ += sizeof(Record);
    if (record.block && blocks_.insert(record.block.get()).second) bytes_ += record.block->memory();
  }
  void Add(const side::Batch& batch) {
    bytes_ += sizeof(batch);
    for (const Record& record : batch.records) Add(record);
  }

 private:
  uint64_t bytes_ = 0;
  std::unordered_set<const Block*> blocks_;
};

template <typename T>
class CacheDataset : public Dataset<T> {
 public:
  CacheDataset(DatasetPtr<T> input, const Cache& cache, std::string field)
      : input_(std::move(input)), max_bytes_(cache.max_bytes), field_(std::move(field)) {}

  std::unique_ptr<Stream<T>> Iterate(Pass pass) const override {
    if (filled_ != nullptr && seed_ == pass.run_seed) return std::make_unique<ReadStream>(filled_);
    return std::make_unique<FillStream>(*this, pass.run_seed);
  }

 private:
  // Shared, since another seed may fill the cache anew while a pass still reads it.
  using Elements = std::shared_ptr<const std::vector<T>>;

  class ReadStream : public Stream<T> {
   public:
    explicit ReadStream(Elements elements) : elements_(std::move(elements)) {}
    Result<size_t> Read(std::span<T> out) override {
      const size_t read = std::min(out.size(), elements_->size() - next_);
      std::copy_n(elements_->begin() + static_cast<std::ptrdiff_t>(next_), read, out.begin());
      next_ += read;
      return read;
    }
    Result<uint64_t> PassOver(uint64_t n) override {
      const uint64_t passed = std::min<uint64_t>(n, elements_->size() - next_);
      next_ += passed;
      return passed;
    }

   private:
    const Elements elements_;
    size_t next_ = 0;
  };

  class FillStream : public Stream<T> {
   public:
    FillStream(const CacheDataset& cache, uint64_t run_seed)
        : cache_(cache), run_seed_(run_seed), input_(cache.input_->Iterate({0, run_seed})) {}

    Result<size_t> Read(std::span<T> out) override {
      if (ended_) return size_t{0};
      ASSIGN_OR_RETURN(const size_t read, input_->Read(out));
      for (size_t i = 0; i < read; ++i) {
        size_.Add(out[i]);
        elements_.push_back(out[i]);
      }
      if (cache_.max_bytes_ && size_.bytes() > static_cast<uint64_t>(*cache_.max_bytes_)) {
        return Exhausted(cache_.field_ + ".maxBytes: " + std::to_string(*cache_.max_bytes_) +
                         " bytes do not hold more than the first " + std::to_string(elements_.size() - 1) +
                         " elements; raise it, or leave the cache out");
      }
      if (read == 0) {
        ended_ = true;
        cache_.seed_ = run_seed_;
        cache_.filled_ = std::make_shared<const std::vector<T>>(std::move(elements_));
      }
      return read;
    }

   private:
    const CacheDataset& cache_;
    const uint64_t run_seed_;
    std::unique_ptr<Stream<T>> input_;
    CacheSize size_;
    std::vector<T> elements_;
    bool ended_ = false;
  };

  const DatasetPtr<T> input_;
  const std::optional<int64_t> max_bytes_;
  const std::string field_;
  mutable Elements filled_;
  mutable uint64_t seed_ = 0;  // of the run whose order filled_ has
};

}  // namespace headrace::side
