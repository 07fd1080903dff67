#include "common/spec/bucket_batch.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/spec/components.h"
#include "common/spec/variable.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxElements = int64_t{1} << 31;
constexpr size_t kMaxBoundaries = 256;

// The list `name` of whole numbers from 1; empty where it is absent or wrong.
std::vector<int64_t> ReadCounts(ObjectReader& reader, std::string_view name, size_t most) {
  std::vector<int64_t> counts;
  const json* const list = reader.Array(name, 1, most);
  if (list == nullptr) return counts;
  for (const json& count : *list) {
    if (!count.is_number_integer() || count < 1 || count > kMaxElements) {
      reader.Error(name, list->dump() + ": must be whole numbers from 1 to " + std::to_string(kMaxElements));
      return {};
    }
    counts.push_back(count.get<int64_t>());
  }
  return counts;
}

bool OneSize(const Batch::Buckets& buckets) {
  return std::adjacent_find(buckets.sizes.begin(), buckets.sizes.end(), std::not_equal_to<>()) == buckets.sizes.end();
}

}  // namespace

Transformation ParseBucketBatch(ObjectReader& reader) {
  Batch::Buckets buckets;
  buckets.feature = reader.String("feature", 128);
  buckets.boundaries = ReadCounts(reader, "boundaries", kMaxBoundaries);
  if (!reader.Has("boundaries")) {
    reader.Error("boundaries", "is required: the lengths at which buckets end and the next begin, as in [64, 128]");
  }
  if (std::adjacent_find(buckets.boundaries.begin(), buckets.boundaries.end(), std::greater_equal<>()) !=
      buckets.boundaries.end()) {
    reader.Error("boundaries", json(buckets.boundaries).dump() + ": must rise, each above the one before");
  }
  const size_t count = buckets.boundaries.size() + 1;
  const std::optional<int64_t> size = reader.Int("size", 1, kMaxElements);
  buckets.sizes = ReadCounts(reader, "sizes", kMaxBoundaries + 1);
  if (reader.Has("size") == reader.Has("sizes")) {
    reader.Error("", "takes either sizes, one for each bucket, or one size for all of them");
  } else if (size) {
    buckets.sizes.assign(count, *size);
  } else if (!buckets.sizes.empty() && !buckets.boundaries.empty() && buckets.sizes.size() != count) {
    reader.Error("sizes", "has " + std::to_string(buckets.sizes.size()) + " items; " + std::to_string(count - 1) +
                              " boundaries make " + std::to_string(count) + " buckets, and each needs a size");
  }
  Batch batch;
  if (!buckets.sizes.empty()) batch.size = *std::max_element(buckets.sizes.begin(), buckets.sizes.end());
  batch.drop_remainder = reader.Bool("dropRemainder", false);
  batch.buckets = std::move(buckets);
  return batch;
}

json BucketBatchToJson(const Transformation& transformation) {
  const auto& batch = std::get<Batch>(transformation);
  json out = {{"boundaries", batch.buckets->boundaries}, {"dropRemainder", batch.drop_remainder}};
  if (!batch.buckets->feature.empty()) out["feature"] = batch.buckets->feature;
  if (OneSize(*batch.buckets)) {
    out["size"] = batch.size;
  } else {
    out["sizes"] = batch.buckets->sizes;
  }
  return out;
}

Result<size_t> BucketedComponent(const Batch::Buckets& buckets, const std::vector<TensorSpec>& components) {
  ASSIGN_OR_RETURN(const size_t at, FindComponent(components, buckets.feature));
  if (IsVariable(components[at])) return at;
  return InvalidArgument("component \"" + components[at].name +
                         "\" has one length in all records; name a ragged one (shape: [-1]) or a string, or use batch");
}

void CheckBuckets(const InputSpec& spec, size_t i, const std::string& item, std::vector<FieldError>* errors) {
  const auto* const batch = std::get_if<Batch>(&spec.pipeline[i]);
  if (batch == nullptr) return;
  const auto before = std::find_if(spec.pipeline.begin(), spec.pipeline.begin() + static_cast<std::ptrdiff_t>(i),
                                   [](const Transformation& t) { return std::holds_alternative<Batch>(t); });
  const Batch* const first = &*before == &spec.pipeline[i] ? nullptr : &std::get<Batch>(*before);
  if (first != nullptr && batch->buckets) errors->push_back({item, "must be the first batch: it batches records"});
  if (first != nullptr && first->buckets && !OneSize(*first->buckets)) {
    errors->push_back({item, "joins batches, which must hold equally many records; give the bucketBatch one size"});
  }
  if (batch->buckets && spec.distribution.rebatch == Rebatch::kContinuous) {
    errors->push_back({"spec.distribution.rebatch",
                       "\"Continuous\" does not go with a bucketBatch: it would join records of different buckets; use "
                       "PerBatch"});
  }
  if (batch->buckets && spec.distribution.strategy == Strategy::kTpu) {
    errors->push_back({item,
                       "does not go with strategy TPU, which demands static shapes: buckets are left with batches of "
                       "other sizes; use paddedBatch with dropRemainder: true, or pack"});
  }
}

}  // namespace headrace
