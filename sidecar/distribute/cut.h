// How a worker's batches are cut into pieces, one piece for one replica at one step.
// Source of the rules: tests/conformance/README.md, "Cutting", which real TensorFlow was held to.
#pragma once

#include <memory>

#include "sidecar/core/dataset.h"

namespace headrace::side {

// Rows of one batch, for one replica at one step.
using Piece = Batch;

class Cut {
 public:
  virtual ~Cut() = default;
  // Fills the piece, keeping the memory it has. false: there are no more.
  virtual Result<bool> Next(Piece* piece) = 0;
  // Passes over the next n pieces, as if Next had gone to them, and returns how many there were.
  virtual Result<uint64_t> PassOver(uint64_t n);
};

// One replica in all: batches pass as they are.
std::unique_ptr<Cut> PassWhole(std::unique_ptr<Stream<Batch>> batches);
// Each batch on its own, of actual size b: piece i of N is rows [i*k, (i+1)*k) with k = ceil(b / N), short or empty at
// the end.
std::unique_ptr<Cut> CutPerBatch(std::unique_ptr<Stream<Batch>> batches, int64_t pieces);
// The joined rows of all batches, across batches and repetitions, in pieces of sizes that take turns: m times q + 1,
// then N - m times q, for q = G div N and m = G mod N, rotated left by `rotation` (worker * replicas per worker).
std::unique_ptr<Cut> CutContinuous(std::unique_ptr<Stream<Batch>> batches, int64_t global_batch, int64_t pieces,
                                   int64_t rotation);

}  // namespace headrace::side
