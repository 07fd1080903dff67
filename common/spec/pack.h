// pack: sequences of varying length, packed into rows of one length.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/spec/object_reader.h"
#include "common/spec/plan.h"

namespace headrace {

Transformation ParsePack(ObjectReader& reader);
nlohmann::json PackToJson(const Transformation& transformation);

// Of each component that is packed, three of a row, in this order: its values, which record of the row each is of (1,
// 2, ...; 0: padding), and where in its record each stands.
inline constexpr size_t kPackedParts = 3;

// The places in `components`, which are of one record, of those that are packed: pack.features in their order, or all
// that are ragged. Errors: InvalidArgument, naming what cannot be packed and what is left unpacked.
Result<std::vector<size_t>> PackedComponents(const Pack& pack, const std::vector<TensorSpec>& components);
// What pack makes of them. Errors: as above, and for names that are there already.
Result<std::vector<TensorSpec>> PackedTypes(const Pack& pack, const std::vector<TensorSpec>& components);

}  // namespace headrace
