// The table of transformations: how each one is put on a data set.
#pragma once

#include <string>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/core/dataset.h"

namespace headrace::side {

struct TransformContext {
  Topology topology;
};

// Puts the pipeline `transformations`, which stands at `path` of the spec, on `input`.
AnyDataset ApplyPipeline(const std::vector<Transformation>& transformations, const std::string& path,
                         const TransformContext& context, DatasetPtr<Record> input);
// The same for the pipeline on the list of files.
DatasetPtr<File> ApplyFilePipeline(const std::vector<Transformation>& transformations, const std::string& path,
                                   const TransformContext& context, DatasetPtr<File> input);

}  // namespace headrace::side
