// tf.data's bucket_by_sequence_length: batches of records of like length.
#pragma once

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"
#include "sidecar/transform/decoded_records.h"

namespace headrace::side {

// A batch comes as soon as its bucket holds as many records as its size; at the end the buckets' rests, in the order of
// their lengths. REQUIRES: batch.buckets. Records that cannot be decoded are in no bucket if they may be left out.
DatasetPtr<Batch> MakeBucketBatch(DatasetPtr<Record> input, const headrace::Batch& batch, LookSite site);

}  // namespace headrace::side
