// tf.data's filter, by an expression over the components of a record.
#pragma once

#include <functional>

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"
#include "sidecar/decode/decoder.h"

namespace headrace::side {

// `stages`: how many transformations of the pipeline stand before it; it sees what they made of the components.
// Records that cannot be decoded do not pass if `take_error` says ok to their error. `spec` must outlive the data set.
DatasetPtr<Record> MakeFilter(DatasetPtr<Record> input, const Filter& filter, const InputSpec& spec, size_t stages,
                              MakeDecoder source_decoder, std::function<Status(const Status&)> take_error);

}  // namespace headrace::side
