// The two halves of a pipeline's stage. A Dataset is an immutable description that owns the one it reads from; a Stream
// is one pass over it and holds all that changes. Pull-based: whoever needs elements reads them, on one thread.
//
// T is File (the list of files), Record or Batch. The order of a pass is a pure function of the description and its
// Pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "sidecar/core/record.h"

namespace headrace::side {

// Names one pass over a data set: the epoch and, below repeat, which repetition. What reshuffles at each iteration
// shuffles by it.
struct Pass {
  uint64_t key = 0;
  uint64_t run_seed = 0;  // for shuffles without a seed; the same on every worker of a run
};

template <typename T>
class Stream {
 public:
  virtual ~Stream() = default;
  // Fills `out` (not empty) from the front and returns how many it wrote; fewer than asked says nothing. 0 is the end,
  // and stays the end. An error ends the pass.
  virtual Result<size_t> Read(std::span<T> out) = 0;
  // Passes over the next n elements, as if they had been read, and returns how many there were; fewer than n is the
  // end. This is how a position is sought: streams that can, do it by arithmetic, or without touching the data.
  virtual Result<uint64_t> PassOver(uint64_t n) {
    std::vector<T> dropped(std::min<uint64_t>(n, kPassOverBlock));
    uint64_t passed = 0;
    while (passed < n) {
      ASSIGN_OR_RETURN(const size_t read,
                       Read(std::span<T>(dropped).first(std::min<uint64_t>(dropped.size(), n - passed))));
      if (read == 0) break;
      passed += read;
    }
    return passed;
  }

 private:
  static constexpr uint64_t kPassOverBlock = 256;
};

template <typename T>
class Dataset {
 public:
  virtual ~Dataset() = default;
  // The data set must outlive the stream.
  virtual std::unique_ptr<Stream<T>> Iterate(Pass pass) const = 0;
};

template <typename T>
using DatasetPtr = std::unique_ptr<const Dataset<T>>;

using AnyDataset = std::variant<DatasetPtr<Record>, DatasetPtr<Batch>>;

// Reads exactly one element. false: the end.
template <typename T>
Result<bool> ReadOne(Stream<T>& stream, T& out) {
  ASSIGN_OR_RETURN(const size_t read, stream.Read(std::span<T>(&out, 1)));
  return read == 1;
}

}  // namespace headrace::side
