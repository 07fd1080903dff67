// bucketBatch: batches of records of like length.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/spec/object_reader.h"
#include "common/spec/plan.h"

namespace headrace {

Transformation ParseBucketBatch(ObjectReader& reader);
nlohmann::json BucketBatchToJson(const Transformation& transformation);

// The place in `components`, which are of one record, of the one by whose length it batches: a string or ragged.
// Errors: InvalidArgument, naming what is there.
Result<size_t> BucketedComponent(const Batch::Buckets& buckets, const std::vector<TensorSpec>& components);

// What is wrong with where the bucketBatch or batch at spec.pipeline[i], whose path is `item`, stands: the first batch
// alone looks into records, and what joins its batches needs them of one size.
void CheckBuckets(const InputSpec& spec, size_t i, const std::string& item, std::vector<FieldError>* errors);

}  // namespace headrace
