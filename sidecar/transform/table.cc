#include "sidecar/transform/table.h"

#include <algorithm>
#include <span>

#include "sidecar/core/random.h"
#include "sidecar/transform/batch.h"
#include "sidecar/transform/bucket_batch.h"
#include "sidecar/transform/cache.h"
#include "sidecar/transform/counted.h"
#include "sidecar/transform/enumerate.h"
#include "sidecar/transform/filter.h"
#include "sidecar/transform/pack.h"
#include "sidecar/transform/repeat.h"
#include "sidecar/transform/shuffle.h"

namespace headrace::side {
namespace {

// Where a transformation stands.
struct Site {
  std::string field;  // "spec.pipeline[2].batch", for errors
  size_t position;    // tells unseeded shuffles of one pipeline apart
  const TransformContext& context;
};

// Whether as many elements come of these transformations whatever the order of the records: not where they go by what
// records hold, of records that were chosen by their position; nor how many rows sequences fill that are not split.
bool IsEven(std::span<const Transformation> transformations) {
  bool chosen = false;
  for (const Transformation& t : transformations) {
    const auto* batch = std::get_if<headrace::Batch>(&t);
    const auto* pack = std::get_if<Pack>(&t);
    const bool looks = std::holds_alternative<Filter>(t) || pack != nullptr || (batch != nullptr && batch->buckets);
    if ((looks && chosen) || (pack != nullptr && !pack->split)) return false;
    chosen = chosen || std::holds_alternative<Take>(t) || std::holds_alternative<Skip>(t) ||
             std::holds_alternative<Shard>(t);
  }
  return true;
}

// Whether this worker reads the same files in every repetition, in whatever order.
bool SameFiles(const TransformContext& context) {
  const auto* const files = std::get_if<FilesSource>(&context.spec->source);
  if (files == nullptr) return true;
  bool shuffled = false;
  bool chosen = context.topology.num_workers > 1;  // under policy File each worker takes some of the list
  for (const Transformation& t : files->pipeline) {
    shuffled = shuffled || std::holds_alternative<Shuffle>(t);
    chosen = chosen || std::holds_alternative<Take>(t) || std::holds_alternative<Skip>(t) ||
             std::holds_alternative<Shard>(t);
  }
  return !shuffled || !chosen;
}

// Overloads are the table: transformations that treat files, records and batches alike.
template <typename T>
DatasetPtr<T> Apply(const Shuffle& shuffle, const Site& site, DatasetPtr<T> input) {
  if (shuffle.global) {
    if constexpr (!std::is_same_v<T, File>) return input;  // the source has done it: it alone knows where records lie
    Shuffle all = shuffle;                                 // a list of files is small: a buffer holds it
    all.buffer_size = INT64_MAX;
    return std::make_unique<ShuffleDataset<T>>(std::move(input), all, site.position);
  }
  return std::make_unique<ShuffleDataset<T>>(std::move(input), shuffle, site.position, site.context.blocks);
}

template <typename T>
DatasetPtr<T> Apply(const Repeat& repeat, const Site& site, DatasetPtr<T> input) {
  bool even = true;
  if constexpr (!std::is_same_v<T, File>) {
    even = IsEven(std::span(site.context.spec->pipeline).first(site.position - 1)) && SameFiles(site.context);
  }
  return std::make_unique<RepeatDataset<T>>(std::move(input), repeat.count, even);
}

template <typename T>
DatasetPtr<T> Apply(const Take& take, const Site&, DatasetPtr<T> input) {
  return std::make_unique<TakeDataset<T>>(std::move(input), take.count);
}

template <typename T>
DatasetPtr<T> Apply(const Skip& skip, const Site&, DatasetPtr<T> input) {
  return std::make_unique<SkipDataset<T>>(std::move(input), skip.count);
}

template <typename T>
DatasetPtr<T> Apply(const Shard& shard, const Site& site, DatasetPtr<T> input) {
  if (!shard.hint) {
    return std::make_unique<ShardDataset<T>>(std::move(input), shard.num_shards, shard.index, 0, site.field);
  }
  const Topology& topology = site.context.topology;
  return std::make_unique<ShardDataset<T>>(std::move(input), topology.num_workers, topology.worker_index,
                                           topology.num_workers, site.field + ": too few elements to shard");
}

template <typename T>
requires(!std::is_same_v<T, File>)  // lists of files are not cached
    DatasetPtr<T> Apply(const Cache& cache, const Site& site, DatasetPtr<T> input) {
  return std::make_unique<CacheDataset<T>>(std::move(input), cache, site.field);
}
// The ring prefetches for the whole pipeline: a prefetch within it changes no value.
template <typename T>
DatasetPtr<T> Apply(const Prefetch&, const Site&, DatasetPtr<T> input) {
  return input;
}

// A map changes what records are decoded into, not which there are: decode/chain.cc has it.
template <typename T>
DatasetPtr<T> Apply(const Map&, const Site&, DatasetPtr<T> input) {
  return input;
}

// Interleave is how files become records: source/read_files.cc has done it.
DatasetPtr<Record> Apply(const Interleave&, const Site&, DatasetPtr<Record> input) { return input; }

DatasetPtr<Record> Apply(const Enumerate& enumerate, const Site&, DatasetPtr<Record> input) {
  return std::make_unique<EnumerateDataset>(std::move(input), enumerate.start);
}

// The site's position counts from 1: the stages before it are one fewer.
LookSite LookAt(const Site& site) {
  return {*site.context.spec, site.position - 1, site.context.source_decoder, site.context.take_error};
}

DatasetPtr<Record> Apply(const Filter& filter, const Site& site, DatasetPtr<Record> input) {
  return MakeFilter(std::move(input), filter, LookAt(site));
}

DatasetPtr<Record> Apply(const Pack& pack, const Site& site, DatasetPtr<Record> input) {
  return MakePack(std::move(input), pack, LookAt(site), site.field);
}

DatasetPtr<Batch> Apply(const headrace::Batch& batch, const Site& site, DatasetPtr<Record> input) {
  if (batch.buckets) return MakeBucketBatch(std::move(input), batch, LookAt(site));
  return MakeBatch(std::move(input), batch.size, batch.drop_remainder);
}

DatasetPtr<Batch> Apply(const headrace::Batch& batch, const Site& site, DatasetPtr<Batch> input) {
  return MakeBatchOfBatches(std::move(input), batch.size, batch.drop_remainder, site.field);
}

Site SiteOf(const std::vector<Transformation>& transformations, size_t i, const std::string& path,
            const TransformContext& context) {
  const std::string field = path + "[" + std::to_string(i) + "]." + std::string(TransformationName(transformations[i]));
  return {field, i + 1, context};
}

}  // namespace

AnyDataset ApplyPipeline(const TransformContext& context, DatasetPtr<Record> input) {
  const std::vector<Transformation>& transformations = context.spec->pipeline;
  AnyDataset dataset = std::move(input);
  for (size_t i = 0; i < transformations.size(); ++i) {
    const Site site = SiteOf(transformations, i, "spec.pipeline", context);
    dataset = std::visit(
        [&](const auto& transformation, auto& on) -> AnyDataset {
          // ParseInputSpec lets no enumerate, filter, pack or interleave stand after a batch.
          if constexpr (requires { Apply(transformation, site, std::move(on)); }) {
            return Apply(transformation, site, std::move(on));
          } else {
            return std::move(on);
          }
        },
        transformations[i], dataset);
  }
  return dataset;
}

DatasetPtr<File> ApplyFilePipeline(const std::vector<Transformation>& transformations, const std::string& path,
                                   const TransformContext& context, DatasetPtr<File> input) {
  for (size_t i = 0; i < transformations.size(); ++i) {
    const Site site = SiteOf(transformations, i, path, context);
    input = std::visit(
        [&](const auto& transformation) -> DatasetPtr<File> {
          // ParseInputSpec lets only these stand in a pipeline on files.
          if constexpr (requires { Apply(transformation, site, std::move(input)); }) {
            return Apply(transformation, site, std::move(input));
          } else {
            return std::move(input);
          }
        },
        transformations[i]);
  }
  return input;
}

}  // namespace headrace::side
