#include "common/spec/components.h"

#include <algorithm>

#include "common/base/words.h"
#include "common/spec/bucket_batch.h"
#include "common/spec/expression.h"
#include "common/spec/map.h"
#include "common/spec/pack.h"
#include "common/spec/padding.h"
#include "common/spec/tensor_fields.h"
#include "common/spec/variable.h"

namespace headrace {
namespace {

constexpr int64_t kMaxRecordBytes = int64_t{1} << 30;

std::vector<TensorSpec> SourceComponents(const InputSpec& spec) {
  std::vector<TensorSpec> components;
  if (const auto* range = std::get_if<RangeSource>(&spec.source)) {
    components.push_back({"value", range->dtype, {}});
  } else if (const auto* tensors = std::get_if<TensorsSource>(&spec.source)) {
    for (const InlineTensor& tensor : tensors->tensors) {
      components.push_back({tensor.name, tensor.dtype, {tensor.shape.begin() + 1, tensor.shape.end()}});
    }
  } else if (std::holds_alternative<FilesSource>(spec.source)) {
    if (spec.features.empty()) {
      components.push_back({RecordName(std::get<FilesSource>(spec.source).format), DType::kString, {}});
    }
    for (const Feature& feature : PaddedFeatures(spec)) {
      components.push_back({feature.name, feature.dtype, feature.shape, IsVarying(feature)});
    }
  }
  return components;
}

std::vector<std::string_view> Names(const std::vector<TensorSpec>& components) {
  std::vector<std::string_view> names;
  for (const TensorSpec& component : components) names.push_back(component.name);
  return names;
}

Status CheckSize(const TensorSpec& component) {
  int64_t bytes = static_cast<int64_t>(DTypeSize(component.dtype));
  for (const int64_t dim : component.shape) {
    if (dim != kUnknownDim && (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > kMaxRecordBytes)) {
      return InvalidArgument("would take more than 1 GiB a record");
    }
  }
  if (component.shape.size() <= kMaxDims) return {};
  return InvalidArgument("would have " + std::to_string(component.shape.size()) + " dimensions; at most " +
                         std::to_string(kMaxDims) + " are offered");
}

Status ApplyMap(const Map& map, std::vector<TensorSpec>& components) {
  ASSIGN_OR_RETURN(const size_t at, FindComponent(components, map.feature));
  const std::string component = "component \"" + components[at].name + "\" ";
  auto mapped = MappedType(map.operation, components[at]);
  if (mapped.ok()) {
    if (const Status size = CheckSize(*mapped); !size.ok()) mapped = size;
  }
  if (!mapped.ok()) return InvalidArgument(component + mapped.status().message());
  if (map.as.empty()) {
    components[at] = *mapped;
    return {};
  }
  const std::vector<std::string_view> names = Names(components);
  if (std::find(names.begin(), names.end(), map.as) != names.end()) {
    return InvalidArgument("as: \"" + map.as + "\" is there already; leave `as` out to replace it, or choose another");
  }
  mapped->name = map.as;
  components.push_back(*mapped);
  return {};
}

Status ApplyPack(const Pack& pack, std::vector<TensorSpec>& components) {
  ASSIGN_OR_RETURN(std::vector<TensorSpec> rows, PackedTypes(pack, components));
  for (const TensorSpec& row : rows) {
    const Status size = CheckSize(row);
    if (!size.ok()) return InvalidArgument("component \"" + row.name + "\" " + size.message());
  }
  components = std::move(rows);
  return {};
}

// A batch of ragged batches would be ragged in two dimensions.
void CheckOneBatch(const InputSpec& spec, const std::string& component, std::vector<FieldError>* errors) {
  bool batched = false;
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    if (!std::holds_alternative<Batch>(spec.pipeline[i])) continue;
    if (batched) {
      errors->push_back(
          {"spec.pipeline[" + std::to_string(i) + "]." + std::string(TransformationName(spec.pipeline[i])),
           component + "varies in length, and only one batch is offered for it; leave this one out, or "
                       "make the first a paddedBatch"});
    }
    batched = true;
  }
}

}  // namespace

Result<size_t> FindComponent(const std::vector<TensorSpec>& components, const std::string& name) {
  const std::vector<std::string_view> names = Names(components);
  if (name.empty()) {
    if (components.size() == 1) return size_t{0};
    return InvalidArgument("feature is required where there are several components: " + QuotedList(names));
  }
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return static_cast<size_t>(it - names.begin());
  const std::string nearest = NearestName(name, names);
  return InvalidArgument("there is no component \"" + name + "\" here; " +
                         (nearest.empty() ? "there is " + QuotedList(names) : "did you mean \"" + nearest + "\"?"));
}

bool KnowsComponents(const InputSpec& spec) {
  const auto* files = std::get_if<FilesSource>(&spec.source);
  return files == nullptr || !spec.features.empty() || !FilesNameColumns(files->format);
}

std::vector<TensorSpec> RecordComponents(const InputSpec& spec, size_t stages, std::vector<FieldError>* errors) {
  std::vector<TensorSpec> components = SourceComponents(spec);
  for (size_t i = 0; i < stages; ++i) {
    const Transformation& transformation = spec.pipeline[i];
    Status status;
    if (std::holds_alternative<Enumerate>(transformation)) {
      const std::vector<std::string_view> names = Names(components);
      if (std::find(names.begin(), names.end(), "index") != names.end()) {
        status = InvalidArgument("adds the component \"index\", and there is one already; name that one otherwise");
      }
      components.insert(components.begin(), {"index", DType::kInt64, {}});
    } else if (const auto* map = std::get_if<Map>(&transformation)) {
      status = ApplyMap(*map, components);
    } else if (const auto* filter = std::get_if<Filter>(&transformation); filter != nullptr && errors != nullptr) {
      status = Expression::Parse(filter->expression, components).status();
    } else if (const auto* pack = std::get_if<Pack>(&transformation)) {
      status = ApplyPack(*pack, components);
    } else if (const auto* batch = std::get_if<Batch>(&transformation); batch != nullptr && batch->buckets) {
      status = BucketedComponent(*batch->buckets, components).status();
    }
    if (status.ok() || errors == nullptr) continue;
    errors->push_back({"spec.pipeline[" + std::to_string(i) + "]." + std::string(TransformationName(transformation)),
                       status.message()});
  }
  return components;
}

void CheckComponents(const InputSpec& spec, std::vector<FieldError>* errors) {
  if (!KnowsComponents(spec)) return;
  const size_t before = errors->size();
  CheckPadding(spec, errors);
  if (errors->size() > before) return;
  const std::vector<TensorSpec> components = RecordComponents(spec, spec.pipeline.size(), errors);
  if (errors->size() > before) return;  // what comes of a broken pipeline says nothing
  for (const TensorSpec& component : components) {
    const std::string name = "component \"" + component.name + "\" ";
    if (component.ragged) CheckOneBatch(spec, name, errors);
    if (spec.distribution.strategy != Strategy::kTpu || !IsVariable(component)) continue;
    errors->push_back({"spec.distribution.strategy",
                       "TPU demands static shapes, and " + name +
                           (component.ragged ? "varies in length; pad it with a paddedBatch"
                                             : "is a string; make numbers of it with a map, without `as`")});
  }
}

}  // namespace headrace
