// The types of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

// kString is bytes of any length, TensorFlow's tf.string.
enum class DType {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kString
};

// numpy's and TensorFlow's names: "float32", "int64", ...
std::string_view DTypeName(DType dtype);
// Of the numeric types.
std::optional<DType> ParseDType(std::string_view name);
// Bytes of one value.
size_t DTypeSize(DType dtype);

}  // namespace headrace
