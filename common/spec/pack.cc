#include "common/spec/pack.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/words.h"
#include "common/spec/components.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxLength = int64_t{1} << 30;
constexpr size_t kMaxFeatures = 128;
constexpr size_t kMaxName = 128;

bool IsSequence(const TensorSpec& component) { return component.ragged && component.shape.size() == 1; }

}  // namespace

Transformation ParsePack(ObjectReader& reader) {
  Pack pack;
  pack.length = reader.RequiredInt("length", 1, kMaxLength);
  pack.split = reader.Bool("split", false);
  const json* const features = reader.Array("features", 1, kMaxFeatures);
  if (features == nullptr) return pack;
  for (const json& value : *features) {
    const std::string feature = value.is_string() ? value.get<std::string>() : "";
    if (feature.empty() || feature.size() > kMaxName) {
      reader.Error("features", value.dump() + ": must be the name of a component");
    } else if (std::find(pack.features.begin(), pack.features.end(), feature) != pack.features.end()) {
      reader.Error("features", value.dump() + " stands twice");
    } else {
      pack.features.push_back(feature);
    }
  }
  return pack;
}

json PackToJson(const Transformation& transformation) {
  const auto& pack = std::get<Pack>(transformation);
  json out = {{"length", pack.length}, {"split", pack.split}};
  if (!pack.features.empty()) out["features"] = pack.features;
  return out;
}

Result<std::vector<size_t>> PackedComponents(const Pack& pack, const std::vector<TensorSpec>& components) {
  std::vector<size_t> packed;
  for (const std::string& feature : pack.features) {
    ASSIGN_OR_RETURN(const size_t at, FindComponent(components, feature));
    if (!IsSequence(components[at])) {
      return InvalidArgument("component \"" + feature +
                             "\" is no sequence of numbers; give the feature the shape [-1], and let a batch stand "
                             "after the pack, not a paddedBatch");
    }
    packed.push_back(at);
  }
  std::vector<std::string_view> left;
  for (size_t c = 0; c < components.size(); ++c) {
    if (pack.features.empty() && IsSequence(components[c])) packed.push_back(c);
    if (std::find(packed.begin(), packed.end(), c) == packed.end()) left.push_back(components[c].name);
  }
  if (packed.empty()) {
    return InvalidArgument(
        "there is no sequence of numbers here; give a feature the shape [-1], and let a batch stand after the pack, "
        "not a paddedBatch");
  }
  if (!left.empty()) {
    return InvalidArgument("a row holds several records, and of " + QuotedList(left) +
                           " it could hold one: leave it out of spec.features (or enumerate after the pack)");
  }
  return packed;
}

Result<std::vector<TensorSpec>> PackedTypes(const Pack& pack, const std::vector<TensorSpec>& components) {
  ASSIGN_OR_RETURN(const std::vector<size_t> packed, PackedComponents(pack, components));
  std::vector<TensorSpec> rows;
  for (const size_t c : packed) {
    const TensorSpec& component = components[c];
    for (const TensorSpec& row : {TensorSpec{component.name, component.dtype, {pack.length}},
                                  TensorSpec{component.name + "_segment_ids", DType::kInt32, {pack.length}},
                                  TensorSpec{component.name + "_positions", DType::kInt32, {pack.length}}}) {
      const auto same = [&](const TensorSpec& other) { return other.name == row.name; };
      if (std::any_of(rows.begin(), rows.end(), same)) {
        return InvalidArgument("makes two components of the name \"" + row.name + "\"; rename a feature");
      }
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace headrace
