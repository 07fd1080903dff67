// tf.data's filter, by an expression over the components of a record.
#pragma once

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"
#include "sidecar/transform/decoded_records.h"

namespace headrace::side {

// Records that cannot be decoded do not pass if they may be left out.
DatasetPtr<Record> MakeFilter(DatasetPtr<Record> input, const Filter& filter, LookSite site);

}  // namespace headrace::side
