#include "common/spec/features.h"

#include <nlohmann/json.hpp>
#include <set>

#include "common/spec/object_reader.h"
#include "common/spec/tensor_fields.h"

namespace headrace {

using nlohmann::json;

namespace {

constexpr size_t kMaxColumns = 4096;
constexpr size_t kMaxColumnName = 1024;

void ReadColumns(ObjectReader& reader, const json& list, Feature* feature) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string() && !list[i].get_ref<const std::string&>().empty() &&
        list[i].get_ref<const std::string&>().size() <= kMaxColumnName) {
      feature->columns.push_back(list[i].get<std::string>());
    } else {
      reader.Error("columns[" + std::to_string(i) + "]", "must be the name of a column, not " + list[i].dump());
      return;
    }
  }
  if (feature->dtype == DType::kString) {
    reader.Error("columns", "does not go with dtype string: a string is read from one column, that of its name");
  } else if (!feature->shape.empty() && feature->shape[0] < 0) {
    reader.Error("columns", "does not go with a varying length: each of them holds one value a record");
  } else if (NumValues(feature->shape) != static_cast<int64_t>(list.size())) {
    reader.Error("columns", "names " + std::to_string(list.size()) + "; the shape takes " +
                                std::to_string(NumValues(feature->shape)) + ", one value of each");
  }
}

void ReadPath(ObjectReader& reader, Feature* feature) {
  feature->path = reader.String("path", 1024);
  for (size_t i = 0; i < feature->path.size(); ++i) {
    if (i == 0 ? feature->path[i] == '/' : feature->path[i] != '~') continue;
    if (i > 0 && i + 1 < feature->path.size() && (feature->path[i + 1] == '0' || feature->path[i + 1] == '1')) continue;
    reader.Error("path", "\"" + feature->path +
                             "\" is no JSON pointer: write /name/0/name, with ~1 for / and ~0 for ~ in a name");
    return;
  }
}

}  // namespace

std::vector<Feature> ParseFeatures(const json& list, const std::string& path, std::vector<FieldError>* errors) {
  std::vector<Feature> features;
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader reader(list[i], path + "[" + std::to_string(i) + "]", errors);
    Feature feature;
    feature.name = reader.RequiredString("name", 128);
    feature.dtype = ReadDType(reader, DType::kFloat32, AlsoString::kYes);
    feature.shape = ReadShape(reader, feature.dtype, FirstDim::kMayVary);
    const bool varies = !feature.shape.empty() && feature.shape[0] < 0;
    if (const json* columns = reader.Array("columns", 1, kMaxColumns); columns != nullptr && columns->is_array()) {
      ReadColumns(reader, *columns, &feature);
    }
    ReadPath(reader, &feature);
    if (varies && reader.Has("default")) {
      reader.Error("default", "does not go with a varying length: a record without the feature holds none");
    }
    if (feature.dtype == DType::kString && !feature.shape.empty()) {
      reader.Error("shape", "must be [] for dtype string: one value a record");
    }
    if (feature.dtype == DType::kString && reader.Has("default")) {
      reader.Error("default", "does not go with dtype string");
    }
    if (const json* value = reader.Array("default", 1, kMaxInlineValues); value != nullptr && value->is_array()) {
      feature.default_value = ReadNumbers(reader, "default", *value);
      feature.has_default = true;
      const int64_t wanted = NumValues(feature.shape);
      if (!varies && value->size() != 1 && static_cast<int64_t>(value->size()) != wanted) {
        reader.Error("default", "has " + std::to_string(value->size()) + " numbers; it takes 1 or " +
                                    std::to_string(wanted) + ", as many as the shape holds");
      }
    }
    if (!feature.name.empty() && !names.insert(feature.name).second) {
      reader.Error("name", '"' + feature.name + "\" stands twice; each feature needs a name of its own");
    }
    features.push_back(std::move(feature));
  }
  return features;
}

json FeaturesToJson(const std::vector<Feature>& features) {
  json list = json::array();
  for (const Feature& feature : features) {
    json object = {{"name", feature.name}, {"dtype", DTypeName(feature.dtype)}, {"shape", feature.shape}};
    if (!feature.columns.empty()) object["columns"] = feature.columns;
    if (!feature.path.empty()) object["path"] = feature.path;
    if (feature.has_default) object["default"] = feature.default_value;
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace headrace
