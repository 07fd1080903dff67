// Any tensor of a batch as text, on one line.
#pragma once

#include <string>

#include "cli/array_print.h"

namespace headrace::cli {

// An array of numbers as numpy prints it; what numpy has no type for as TensorFlow does:
//   "[0 1]"    "tf.Tensor([b'a' b'b'], shape=(2,), dtype=string)"    "<tf.RaggedTensor [[1, 2], [3]]>"
// Ragged tensors are elided as arrays are: "<tf.RaggedTensor [[1, 2, 3, ..., 7, 8, 9], ..., [3]]>".
std::string PrintTensor(const TensorView& tensor, const PrintLimits& limits = {});

}  // namespace headrace::cli
