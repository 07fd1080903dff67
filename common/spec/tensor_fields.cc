#include "common/spec/tensor_fields.h"

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxDim = int64_t{1} << 31;
constexpr int64_t kMaxRecordBytes = int64_t{1} << 30;

}  // namespace

DType ReadDType(ObjectReader& reader, DType otherwise, AlsoString also_string, std::string_view name) {
  std::vector<std::string_view> names;
  const int last = static_cast<int>(also_string == AlsoString::kYes ? DType::kString : DType::kFloat64);
  for (int dtype = 0; dtype <= last; ++dtype) names.push_back(DTypeName(static_cast<DType>(dtype)));
  const std::optional<size_t> chosen = reader.Choice(name, names);
  return chosen ? static_cast<DType>(*chosen) : otherwise;
}

std::vector<int64_t> ReadShape(ObjectReader& reader, DType dtype, FirstDim first) {
  std::vector<int64_t> shape;
  const json* dims = reader.Array("shape", 0, kMaxDims);
  if (dims == nullptr) return shape;
  int64_t bytes = static_cast<int64_t>(DTypeSize(dtype));
  for (const json& dim : *dims) {
    if (first == FirstDim::kMayVary && shape.empty() && dim == -1) {
      shape.push_back(-1);
      continue;
    }
    if (!dim.is_number_integer() || dim < 1 || dim > kMaxDim) {
      reader.Error("shape", dims->dump() + ": each dimension must be a whole number from 1 to " +
                                std::to_string(kMaxDim) +
                                (first == FirstDim::kMayVary ? ", or the first -1 for a varying length" : ""));
      return {};
    }
    shape.push_back(dim.get<int64_t>());
    if (bytes > kMaxRecordBytes / shape.back()) {
      reader.Error("shape", dims->dump() + " is more than 1 GiB a record");
      return {};
    }
    bytes *= shape.back();
  }
  return shape;
}

std::vector<double> ReadNumbers(ObjectReader& reader, std::string_view name, const json& list) {
  std::vector<double> numbers;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number()) {
      reader.Error(std::string(name) + "[" + std::to_string(i) + "]", "must be a number, not " + list[i].dump());
      return {};
    }
    numbers.push_back(list[i].get<double>());
  }
  return numbers;
}

int64_t NumValues(const std::vector<int64_t>& shape) {
  int64_t values = 1;
  for (const int64_t dim : shape) values *= dim;
  return values;
}

}  // namespace headrace
