// Records of formats that a Framer finds, by number: for files whose index is known.
#pragma once

#include <memory>

#include "sidecar/source/record_index.h"
#include "sidecar/source/source.h"
#include "sidecar/source/stored_block.h"

namespace headrace::side {

// The records of a file, of which nothing is read before they are decoded, by a decoder of MakeFetchDecoder.
class FramedBlock final : public StoredBlock {
 public:
  FramedBlock(SourceContext& context, uint32_t file, std::unique_ptr<RecordIndex> index)
      : StoredBlock(context, file), index_(std::move(index)) {}

  int64_t records() const override { return index_->records(); }
  Extent Find(int64_t row) const override { return {index_->begin(row), index_->begin(row + 1) - index_->begin(row)}; }
  const RecordIndex& index() const { return *index_; }

 private:
  const std::unique_ptr<RecordIndex> index_;
};

// Reads records of FramedBlocks, neighbours in one read, and has them decoded by `rest`, as it has those that were read
// otherwise. `context` outlives the decoder.
std::unique_ptr<Decoder> MakeFetchDecoder(std::unique_ptr<Decoder> rest, SourceContext* context);

}  // namespace headrace::side
