#include "common/spec/padding.h"

#include <algorithm>

#include "common/base/words.h"
#include "common/spec/components.h"
#include "common/spec/expression.h"
#include "common/spec/transformations.h"

namespace headrace {
namespace {

// The padding of a feature, which may be missing.
const Batch::Padding* PaddingOf(const InputSpec& spec, const std::string& feature) {
  for (const Transformation& transformation : spec.pipeline) {
    const auto* batch = std::get_if<Batch>(&transformation);
    if (batch == nullptr) continue;
    for (const Batch::Padding& padding : batch->paddings) {
      if (padding.feature == feature) return &padding;
    }
  }
  return nullptr;
}

std::string NamesOf(const std::vector<Feature>& features, bool varying) {
  std::vector<std::string_view> names;
  for (const Feature& feature : features) {
    if (IsVarying(feature) == varying) names.push_back(feature.name);
  }
  return QuotedList(names);
}

void CheckPaddings(const InputSpec& spec, const Batch& batch, const std::string& field,
                   std::vector<FieldError>* errors) {
  for (const Batch::Padding& padding : batch.paddings) {
    const std::string path = field + ".paddedShapes." + padding.feature;
    const auto feature = std::find_if(spec.features.begin(), spec.features.end(),
                                      [&](const Feature& f) { return f.name == padding.feature; });
    if (feature == spec.features.end() || !IsVarying(*feature)) {
      const std::string known = NamesOf(spec.features, true);
      errors->push_back({path, "is no feature of varying length: " +
                                   (known.empty() ? "give a feature the shape [-1]" : "those are " + known)});
      continue;
    }
    if (!std::equal(padding.shape.begin() + 1, padding.shape.end(), feature->shape.begin() + 1, feature->shape.end())) {
      errors->push_back({path, "differs from the feature's shape in more than its first dimension"});
    }
  }
}

}  // namespace

std::vector<Feature> PaddedFeatures(const InputSpec& spec) {
  std::vector<Feature> features = spec.features;
  for (Feature& feature : features) {
    if (!IsVarying(feature)) continue;
    const Batch::Padding* const padding = PaddingOf(spec, feature.name);
    if (padding == nullptr) continue;
    feature.shape = padding->shape;
    feature.padding = padding->value;
  }
  return features;
}

void CheckPadding(const InputSpec& spec, std::vector<FieldError>* errors) {
  const bool pads = std::any_of(spec.pipeline.begin(), spec.pipeline.end(), [](const Transformation& transformation) {
    const auto* batch = std::get_if<Batch>(&transformation);
    return batch != nullptr && batch->padded;
  });
  for (size_t i = 0; pads && i < spec.features.size(); ++i) {
    if (!IsVarying(spec.features[i]) || PaddingOf(spec, spec.features[i].name) != nullptr) continue;
    errors->push_back({"spec.features[" + std::to_string(i) + "].shape",
                       "varies in length, and the paddedBatch does not pad it: add " + spec.features[i].name +
                           ": [LENGTH] to its paddedShapes"});
  }
  bool batched = false;
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    const std::string field =
        "spec.pipeline[" + std::to_string(i) + "]." + std::string(TransformationName(spec.pipeline[i]));
    const auto varies = [&](const std::string& name) {
      return pads && !batched && std::any_of(spec.features.begin(), spec.features.end(), [&](const Feature& feature) {
               return IsVarying(feature) && (feature.name == name || (name.empty() && spec.features.size() == 1));
             });
    };
    if (const auto* batch = std::get_if<Batch>(&spec.pipeline[i])) {
      if (batch->padded && batched) errors->push_back({field, "must be the first batch: it pads records"});
      CheckPaddings(spec, *batch, field, errors);
      batched = true;
    } else if (const auto* map = std::get_if<Map>(&spec.pipeline[i]); map != nullptr && varies(map->feature)) {
      errors->push_back(
          {field, "feature \"" + map->feature + "\" varies in length here: map it after the paddedBatch"});
    } else if (const auto* filter = std::get_if<Filter>(&spec.pipeline[i]); filter != nullptr && !batched) {
      const std::vector<TensorSpec> components = RecordComponents(spec, i, nullptr);
      const Result<Expression> expression = Expression::Parse(filter->expression, components);
      if (!expression.ok()) continue;  // CheckComponents says so
      for (const Expression::Node& node : expression->nodes()) {
        if (node.op != Expression::Op::kLoad || !varies(components[node.component].name)) continue;
        errors->push_back({field, "\"" + components[node.component].name +
                                      "\" varies in length here: filter by features of fixed shape"});
        break;
      }
    }
  }
}

}  // namespace headrace
