#include "common/spec/transformations.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/base/words.h"
#include "common/spec/bucket_batch.h"
#include "common/spec/map.h"
#include "common/spec/object_reader.h"
#include "common/spec/pack.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxCount = int64_t{1} << 53;  // what JSON's readers keep exactly
constexpr int64_t kMaxElements = int64_t{1} << 31;

Transformation ParseShuffle(ObjectReader& reader) {
  Shuffle shuffle;
  enum class Scope { kBuffer, kGlobal };
  shuffle.global = reader.Enum<Scope>("scope", {{"Buffer", Scope::kBuffer}, {"Global", Scope::kGlobal}},
                                      Scope::kBuffer) == Scope::kGlobal;
  if (!shuffle.global) {
    shuffle.buffer_size = reader.RequiredInt("bufferSize", 1, kMaxElements);
  } else if (reader.Has("bufferSize")) {
    reader.Any("bufferSize");
    reader.Error("bufferSize", "goes with scope Buffer; scope Global shuffles all records and needs no buffer");
  }
  shuffle.seed = reader.Int("seed", -kMaxCount, kMaxCount);
  shuffle.reshuffle_each_iteration = reader.Bool("reshuffleEachIteration", true);
  return shuffle;
}
json ShuffleToJson(const Transformation& transformation) {
  const auto& shuffle = std::get<Shuffle>(transformation);
  json out = {{"reshuffleEachIteration", shuffle.reshuffle_each_iteration}};
  if (shuffle.global) {
    out["scope"] = "Global";
  } else {
    out["bufferSize"] = shuffle.buffer_size;
  }
  if (shuffle.seed) out["seed"] = *shuffle.seed;
  return out;
}

Transformation ParseRepeat(ObjectReader& reader) { return Repeat{reader.Int("count", -1, kMaxCount).value_or(-1)}; }
json RepeatToJson(const Transformation& t) { return {{"count", std::get<Repeat>(t).count}}; }

Transformation ParseBatch(ObjectReader& reader) {
  const int64_t size = reader.RequiredInt("size", 1, kMaxElements);
  return Batch{size, reader.Bool("dropRemainder", false), false, {}, {}};
}
json BatchToJson(const Transformation& t) {
  return {{"size", std::get<Batch>(t).size}, {"dropRemainder", std::get<Batch>(t).drop_remainder}};
}

Transformation ParsePaddedBatch(ObjectReader& reader) {
  Batch batch{reader.RequiredInt("size", 1, kMaxElements), reader.Bool("dropRemainder", false), true, {}, {}};
  const json* const shapes = reader.Object("paddedShapes");
  const json* const values = reader.Object("paddingValues");
  if (shapes == nullptr) {
    if (!reader.Has("paddedShapes"))
      reader.Error("paddedShapes", "is required: for each feature of varying length, its shape");
    return batch;
  }
  for (const auto& [feature, shape] : shapes->items()) {
    Batch::Padding padding{feature, {}, 0};
    for (const json& dim : shape.is_array() && !shape.empty() ? shape : json::array({json()})) {
      if (dim.is_number_integer() && dim >= 1 && dim <= kMaxElements) {
        padding.shape.push_back(dim.get<int64_t>());
        continue;
      }
      reader.Error("paddedShapes." + feature,
                   shape.dump() +
                       ": must be a list of whole numbers from 1 (the slots of the ring have "
                       "one size, so the longest length must be named)");
      break;
    }
    if (values != nullptr && values->contains(feature)) {
      const json& value = (*values)[feature];
      if (value.is_number())
        padding.value = value.get<double>();
      else
        reader.Error("paddingValues." + feature, "must be a number, not " + value.dump());
    }
    batch.paddings.push_back(std::move(padding));
  }
  if (values == nullptr) return batch;
  for (const auto& [feature, value] : values->items()) {
    if (!shapes->contains(feature)) {
      reader.Error("paddingValues." + feature, "has no shape in paddedShapes: give it one, or take the value out");
    }
  }
  return batch;
}
json PaddedBatchToJson(const Transformation& t) {
  json out = BatchToJson(t);
  out["paddedShapes"] = out["paddingValues"] = json::object();
  for (const Batch::Padding& padding : std::get<Batch>(t).paddings) {
    out["paddedShapes"][padding.feature] = padding.shape;
    out["paddingValues"][padding.feature] = padding.value;
  }
  return out;
}

Transformation ParseTake(ObjectReader& reader) { return Take{reader.RequiredInt("count", -1, kMaxCount)}; }
json TakeToJson(const Transformation& t) { return {{"count", std::get<Take>(t).count}}; }

Transformation ParseSkip(ObjectReader& reader) { return Skip{reader.RequiredInt("count", -1, kMaxCount)}; }
json SkipToJson(const Transformation& t) { return {{"count", std::get<Skip>(t).count}}; }

Transformation ParseInterleave(ObjectReader& reader) {
  Interleave interleave;
  interleave.cycle_length = reader.Int("cycleLength", 1, 4096).value_or(1);
  interleave.block_length = reader.Int("blockLength", 1, kMaxElements).value_or(1);
  interleave.num_parallel_calls = reader.Int("numParallelCalls", -1, 4096);
  if (interleave.num_parallel_calls == 0) reader.Error("numParallelCalls", "must not be 0; -1 is tf.data.AUTOTUNE");
  interleave.deterministic = reader.Bool("deterministic", true);
  return interleave;
}
json InterleaveToJson(const Transformation& t) {
  const auto& interleave = std::get<Interleave>(t);
  json out = {{"cycleLength", interleave.cycle_length},
              {"blockLength", interleave.block_length},
              {"deterministic", interleave.deterministic}};
  if (interleave.num_parallel_calls) out["numParallelCalls"] = *interleave.num_parallel_calls;
  return out;
}

Transformation ParseEnumerate(ObjectReader& reader) {
  return Enumerate{reader.Int("start", -kMaxCount, kMaxCount).value_or(0)};
}
json EnumerateToJson(const Transformation& t) { return {{"start", std::get<Enumerate>(t).start}}; }

Transformation ParsePrefetch(ObjectReader& reader) {
  return Prefetch{reader.Int("bufferSize", 1, kMaxElements).value_or(1)};
}
json PrefetchToJson(const Transformation& t) { return {{"bufferSize", std::get<Prefetch>(t).buffer_size}}; }

Transformation ParseShard(ObjectReader& reader) {
  Shard shard;
  enum class By { kIndex, kHint };
  shard.hint = reader.Enum<By>("by", {{"Hint", By::kHint}}, By::kIndex) == By::kHint;
  if (shard.hint) {
    if (reader.Any("numShards") != nullptr || reader.Any("index") != nullptr) {
      reader.Error("", "takes either by: Hint or numShards and index, not both");
    }
    return shard;
  }
  shard.num_shards = reader.RequiredInt("numShards", 1, kMaxElements);
  shard.index = reader.RequiredInt("index", 0, kMaxElements);
  if (shard.index >= shard.num_shards) {
    reader.Error("index",
                 std::to_string(shard.index) + " must be less than numShards, " + std::to_string(shard.num_shards));
  }
  return shard;
}
json ShardToJson(const Transformation& t) {
  const auto& shard = std::get<Shard>(t);
  if (shard.hint) return {{"by", "Hint"}};
  return {{"numShards", shard.num_shards}, {"index", shard.index}};
}

Transformation ParseFilter(ObjectReader& reader) { return Filter{reader.RequiredString("expression", 1024)}; }
json FilterToJson(const Transformation& t) { return {{"expression", std::get<Filter>(t).expression}}; }

Transformation ParseCache(ObjectReader& reader) { return Cache{reader.Int("maxBytes", 1, kMaxCount)}; }
json CacheToJson(const Transformation& t) {
  const auto& cache = std::get<Cache>(t);
  return cache.max_bytes ? json{{"maxBytes", *cache.max_bytes}} : json::object();
}

struct Entry {
  std::string_view name;
  bool on_file_names;
  Transformation (*parse)(ObjectReader&);
  json (*to_json)(const Transformation&);
};

// In the order of the variant's alternatives, so that an entry's index is Transformation::index(); behind them, other
// ways to write one.
constexpr std::array<Entry, std::variant_size_v<Transformation> + 2> kTransformations = {{
    {"shuffle", true, ParseShuffle, ShuffleToJson},
    {"repeat", true, ParseRepeat, RepeatToJson},
    {"batch", false, ParseBatch, BatchToJson},
    {"take", true, ParseTake, TakeToJson},
    {"skip", true, ParseSkip, SkipToJson},
    {"interleave", false, ParseInterleave, InterleaveToJson},
    {"enumerate", false, ParseEnumerate, EnumerateToJson},
    {"prefetch", false, ParsePrefetch, PrefetchToJson},
    {"shard", true, ParseShard, ShardToJson},
    {"map", false, ParseMap, MapToJson},
    {"filter", false, ParseFilter, FilterToJson},
    {"cache", false, ParseCache, CacheToJson},
    {"pack", false, ParsePack, PackToJson},
    {"paddedBatch", false, ParsePaddedBatch, PaddedBatchToJson},
    {"bucketBatch", false, ParseBucketBatch, BucketBatchToJson},
}};
constexpr size_t kPaddedBatch = std::variant_size_v<Transformation>;
constexpr size_t kBucketBatch = kPaddedBatch + 1;

const Entry& EntryOf(const Transformation& transformation) {
  if (const auto* batch = std::get_if<Batch>(&transformation)) {
    if (batch->padded) return kTransformations[kPaddedBatch];
    if (batch->buckets) return kTransformations[kBucketBatch];
  }
  return kTransformations[transformation.index()];
}

}  // namespace

std::string_view TransformationName(const Transformation& transformation) { return EntryOf(transformation).name; }

std::vector<Transformation> ParsePipeline(const json& list, const std::string& path, bool on_file_names,
                                          std::vector<FieldError>* errors) {
  std::vector<Transformation> pipeline;
  std::vector<std::string_view> names;
  for (const Entry& entry : kTransformations) {
    if (entry.on_file_names || !on_file_names) names.push_back(entry.name);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string item_path = path + "[" + std::to_string(i) + "]";
    ObjectReader reader(list[i], item_path, errors);
    int found = 0;
    for (const Entry& entry : kTransformations) {
      if (std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
      const json* arguments = reader.Any(entry.name);
      if (arguments == nullptr) continue;
      ++found;
      ObjectReader argument_reader(*arguments, reader.Path(entry.name), errors);
      pipeline.push_back(entry.parse(argument_reader));
    }
    // Unknown fields are reported by the reader, with the nearest name: no need to say it twice.
    bool unknown = !list[i].is_object();
    for (const auto& field : list[i].items()) {
      unknown |= std::find(names.begin(), names.end(), field.key()) == names.end();
    }
    if (found != 1 && !unknown) {
      reader.Error("", "must hold exactly one of " + QuotedList(names) + ", and holds " + std::to_string(found) +
                           "; write each transformation as an item of its own");
    }
  }
  return pipeline;
}

json PipelineToJson(const std::vector<Transformation>& pipeline) {
  json list = json::array();
  for (const Transformation& transformation : pipeline) {
    const Entry& entry = EntryOf(transformation);
    list.push_back({{std::string(entry.name), entry.to_json(transformation)}});
  }
  return list;
}

bool NumbersRecords(const std::vector<Transformation>& pipeline) {
  return std::any_of(pipeline.begin(), pipeline.end(),
                     [](const Transformation& t) { return std::holds_alternative<Enumerate>(t); });
}

}  // namespace headrace
