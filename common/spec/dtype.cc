#include "common/spec/dtype.h"

#include <array>

namespace headrace {
namespace {

struct DTypeEntry {
  DType dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array<DTypeEntry, 14> kDTypes = {{
    {DType::kBool, "bool", 1},
    {DType::kInt8, "int8", 1},
    {DType::kUint8, "uint8", 1},
    {DType::kInt16, "int16", 2},
    {DType::kUint16, "uint16", 2},
    {DType::kInt32, "int32", 4},
    {DType::kUint32, "uint32", 4},
    {DType::kInt64, "int64", 8},
    {DType::kUint64, "uint64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kBfloat16, "bfloat16", 2},
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kString, "string", 16},  // a reference: sidecar/core/record.h
}};

}  // namespace

std::string_view DTypeName(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeEntry& entry : kDTypes) {
    if (entry.name == name && entry.dtype != DType::kString) return entry.dtype;
  }
  return std::nullopt;
}

size_t DTypeSize(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].size; }

}  // namespace headrace
