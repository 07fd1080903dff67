#include "common/spec/sample_features.h"

#include <algorithm>
#include <cctype>

namespace headrace {

std::vector<std::string> SampleFields(const Feature& feature) {
  std::vector<std::string> fields;
  if (feature.name == kSampleKey) return fields;
  std::string_view rest = feature.name;
  while (true) {
    const size_t end = rest.find(';');
    std::string& field = fields.emplace_back(rest.substr(0, end));
    std::transform(field.begin(), field.end(), field.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    if (end == std::string_view::npos) return fields;
    rest.remove_prefix(end + 1);
  }
}

SampleKind SampleKindOf(std::string_view field) {
  const size_t dot = field.rfind('.');
  const std::string_view type = dot == std::string_view::npos ? field : field.substr(dot + 1);
  if (type == "bin") return SampleKind::kRaw;
  return type == "npy" ? SampleKind::kNumPy : SampleKind::kText;
}

void CheckSamples(const InputSpec& spec, std::vector<FieldError>* errors) {
  for (size_t i = 0; i < spec.features.size(); ++i) {
    const Feature& feature = spec.features[i];
    const std::string path = "spec.features[" + std::to_string(i) + "]";
    const std::vector<std::string> fields = SampleFields(feature);
    if (fields.empty() && feature.dtype != DType::kString) {
      errors->push_back({path + ".dtype", "must be string: __key__ is what the files of a sample have in common"});
    }
    if (std::find(fields.begin(), fields.end(), "") != fields.end()) {
      errors->push_back({path + ".name", "\"" + feature.name + "\" names a file without an extension; write jpg, or " +
                                             "jpg;jpeg for the first of two that a sample has"});
    }
    const bool varies = !feature.shape.empty() && feature.shape[0] < 0;
    for (const std::string& field : fields) {
      if (feature.dtype == DType::kString) break;
      if (varies && SampleKindOf(field) == SampleKind::kText) {
        errors->push_back({path + ".shape", "varies in length, which goes with files of type bin and npy, and \"" +
                                                field + "\" is read as text; give it a fixed shape, or dtype string"});
      }
      if (feature.dtype == DType::kBfloat16 && SampleKindOf(field) == SampleKind::kNumPy) {
        errors->push_back({path + ".dtype", "bfloat16 is no dtype of NumPy's; use float32, or files of type bin"});
      }
    }
  }
}

}  // namespace headrace
