// shuffle with scope Global: all records in one random order, by arithmetic over an index of them.
#pragma once

#include "common/spec/input_spec.h"
#include "sidecar/core/indexed.h"
#include "sidecar/core/permutation.h"
#include "sidecar/transform/shuffle.h"

namespace headrace::side {

class GlobalShuffleDataset : public Dataset<Record> {
 public:
  GlobalShuffleDataset(std::unique_ptr<const IndexedDataset> input, const Shuffle& shuffle, uint64_t position)
      : input_(std::move(input)), shuffle_(shuffle), position_(position) {}

  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override {
    return std::make_unique<IndexStream<Permutation>>(
        *input_, pass, [](uint64_t size, uint64_t key) { return Permutation(size, key); },
        ShuffleKey(shuffle_, position_, pass));
  }

 private:
  const std::unique_ptr<const IndexedDataset> input_;
  const Shuffle shuffle_;
  const uint64_t position_;
};

}  // namespace headrace::side
