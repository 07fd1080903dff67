// tf.data's batch(size, drop_remainder), of records and of batches.
#pragma once

#include <string>

#include "sidecar/core/dataset.h"

namespace headrace::side {

DatasetPtr<Batch> MakeBatch(DatasetPtr<Record> input, int64_t size, bool drop_remainder);
// Batches of batches. Their inner sizes must be equal within an outer batch, as in tf.data; `field` names the
// transformation in the error.
DatasetPtr<Batch> MakeBatchOfBatches(DatasetPtr<Batch> input, int64_t size, bool drop_remainder, std::string field);
// Each record as a batch of one row: what is cut and delivered when the pipeline has no batch.
DatasetPtr<Batch> MakeSingles(DatasetPtr<Record> input);

}  // namespace headrace::side
