#include <algorithm>

#include "sidecar/source/source.h"

namespace headrace::side {
namespace {

// start, start + step, ... for `count` numbers; -1 is endless (wrapping, as tf.data's counter does).
class NumbersDataset : public IndexedDataset {
 public:
  NumbersDataset(int64_t start, int64_t step, int64_t count) : start_(start), step_(step), count_(count) {}
  std::unique_ptr<Stream<Record>> Iterate(Pass) const override { return std::make_unique<NumberStream>(*this); }

  Result<std::unique_ptr<Index>> MakeIndex(Pass) const override {
    return std::unique_ptr<Index>(std::make_unique<NumbersIndex>(*this));
  }

 private:
  class NumbersIndex : public Index {
   public:
    explicit NumbersIndex(const NumbersDataset& numbers) : numbers_(numbers) {}
    uint64_t size() const override { return static_cast<uint64_t>(numbers_.count_); }
    void Get(uint64_t i, Record* out) const override {
      out->value =
          static_cast<int64_t>(static_cast<uint64_t>(numbers_.start_) + i * static_cast<uint64_t>(numbers_.step_));
    }

   private:
    const NumbersDataset& numbers_;
  };

  class NumberStream : public Stream<Record> {
   public:
    explicit NumberStream(const NumbersDataset& numbers)
        : left_(numbers.count_), next_(static_cast<uint64_t>(numbers.start_)), step_(numbers.step_) {}
    Result<size_t> Read(std::span<Record> out) override {
      const size_t read = left_ < 0 ? out.size() : std::min<uint64_t>(out.size(), left_);
      for (size_t i = 0; i < read; ++i, next_ += static_cast<uint64_t>(step_)) {
        out[i].value = static_cast<int64_t>(next_);
      }
      if (left_ >= 0) left_ -= static_cast<int64_t>(read);
      return read;
    }

    Result<uint64_t> PassOver(uint64_t n) override {
      const uint64_t passed = left_ < 0 ? n : std::min(n, static_cast<uint64_t>(left_));
      next_ += passed * static_cast<uint64_t>(step_);
      if (left_ >= 0) left_ -= static_cast<int64_t>(passed);
      return passed;
    }

   private:
    int64_t left_;
    uint64_t next_;
    const int64_t step_;
  };

  int64_t start_;
  int64_t step_;
  int64_t count_;
};

}  // namespace

std::unique_ptr<const IndexedDataset> MakeRange(const RangeSource& source) {
  InputSpec spec;
  spec.source = source;
  return std::make_unique<NumbersDataset>(source.start, source.step, Cardinality(spec));
}

std::unique_ptr<const IndexedDataset> MakeRows(int64_t count) { return std::make_unique<NumbersDataset>(0, 1, count); }

}  // namespace headrace::side
