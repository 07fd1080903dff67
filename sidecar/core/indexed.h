// Data sets whose records can be had by number, in any order.
#pragma once

#include <memory>

#include "sidecar/core/dataset.h"

namespace headrace::side {

// The records of one pass. Used by one thread.
class Index {
 public:
  virtual ~Index() = default;
  virtual uint64_t size() const = 0;
  // REQUIRES: i < size().
  virtual void Get(uint64_t i, Record* out) const = 0;
};

class IndexedDataset : public Dataset<Record> {
 public:
  // The data set must outlive the index. Errors: a file that cannot be read, or is not what its format demands.
  virtual Result<std::unique_ptr<Index>> MakeIndex(Pass pass) const = 0;
  // In their own order.
  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override;
};

// Reads an index in the order that `order` gives: a function from a place in the stream to a number of the index.
template <typename Order>
class IndexStream : public Stream<Record> {
 public:
  // `make_order` makes an Order of the number of records, once that is known.
  IndexStream(const IndexedDataset& dataset, Pass pass, Order (*make_order)(uint64_t size, uint64_t key), uint64_t key)
      : dataset_(dataset), pass_(pass), make_order_(make_order), key_(key) {}

  Result<size_t> Read(std::span<Record> out) override {
    RETURN_IF_ERROR(Open());
    const auto read = static_cast<size_t>(std::min<uint64_t>(out.size(), index_->size() - next_));
    for (size_t i = 0; i < read; ++i) index_->Get(order_(next_++), &out[i]);
    return read;
  }
  Result<uint64_t> PassOver(uint64_t n) override {
    RETURN_IF_ERROR(Open());
    const uint64_t passed = std::min(n, index_->size() - next_);
    next_ += passed;
    return passed;
  }

 private:
  Status Open() {
    if (index_ != nullptr) return {};
    ASSIGN_OR_RETURN(index_, dataset_.MakeIndex(pass_));
    order_ = make_order_(index_->size(), key_);
    return {};
  }

  const IndexedDataset& dataset_;
  const Pass pass_;
  Order (*const make_order_)(uint64_t, uint64_t);
  const uint64_t key_;
  std::unique_ptr<Index> index_;
  Order order_{};
  uint64_t next_ = 0;
};

struct InOrder {
  uint64_t operator()(uint64_t i) const { return i; }
};

inline std::unique_ptr<Stream<Record>> IndexedDataset::Iterate(Pass pass) const {
  return std::make_unique<IndexStream<InOrder>>(
      *this, pass, [](uint64_t, uint64_t) { return InOrder(); }, 0);
}

}  // namespace headrace::side
