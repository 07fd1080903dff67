// The fields by which a spec describes tensors: dtype, shape, values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "common/spec/object_reader.h"

namespace headrace {

inline constexpr size_t kMaxDims = 8;
inline constexpr size_t kMaxInlineValues = 4096;

enum class AlsoString { kNo, kYes };
// The field `name`: a numeric type, or string where that is offered.
DType ReadDType(ObjectReader& reader, DType otherwise, AlsoString also_string = AlsoString::kNo,
                std::string_view name = "dtype");
enum class FirstDim { kFixed, kMayVary };
// The field "shape": [] if absent. Every dimension is at least 1, or the first -1 where it may vary; all values of one
// record fit into 1 GiB.
std::vector<int64_t> ReadShape(ObjectReader& reader, DType dtype, FirstDim first = FirstDim::kFixed);
// `list` is the value of the field `name`.
std::vector<double> ReadNumbers(ObjectReader& reader, std::string_view name, const nlohmann::json& list);

// The number of values of a shape whose dimensions are all known.
int64_t NumValues(const std::vector<int64_t>& shape);

}  // namespace headrace
