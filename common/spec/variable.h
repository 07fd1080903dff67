// Components whose length differs from record to record: strings, and ragged tensors.
#pragma once

#include <cstdint>

#include "common/spec/plan.h"

namespace headrace {

// REQUIRES: `component` is of one record (RecordComponents), not of a batch.
inline bool IsVariable(const TensorSpec& component) { return component.dtype == DType::kString || component.ragged; }

// Bytes for the values of all such components of one batch together (what of them is delivered; not their row splits,
// whose size is known), by spec.delivery.maxBatchBytes or its default. `records` is the number of records in the
// largest batch of one replica. 0 where nothing of variable length is delivered; where the components are not
// known, what all of them may take.
uint64_t VariableBytes(const InputSpec& spec, int64_t records);

// The error for a batch whose components of variable length take more: InvalidArgument, naming the field and both
// numbers.
Status OutgrewVariableBytes(uint64_t needed, uint64_t given);

}  // namespace headrace
