// The table of transformations: how each one is put on a data set.
#pragma once

#include <string>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/core/dataset.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/transform/decoded_records.h"

namespace headrace::side {

struct TransformContext {
  Topology topology;
  // For what looks into records; the spec outlives the data set. Not needed for a pipeline on files.
  const InputSpec* spec = nullptr;
  MakeDecoder source_decoder;
  BytesBlockPool* blocks = nullptr;  // that records lie in, where they do
  TakeError take_error;
};

// Puts the pipeline of `context.spec` on `input`.
AnyDataset ApplyPipeline(const TransformContext& context, DatasetPtr<Record> input);
// The same for the pipeline on the list of files, which stands at `path` of the spec.
DatasetPtr<File> ApplyFilePipeline(const std::vector<Transformation>& transformations, const std::string& path,
                                   const TransformContext& context, DatasetPtr<File> input);

}  // namespace headrace::side
