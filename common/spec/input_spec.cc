#include "common/spec/input_spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/spec/bucket_batch.h"
#include "common/spec/collective.h"
#include "common/spec/components.h"
#include "common/spec/features.h"
#include "common/spec/formats.h"
#include "common/spec/object_reader.h"
#include "common/spec/on_error.h"
#include "common/spec/remote_path.h"
#include "common/spec/tensor_fields.h"
#include "common/spec/transformations.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxCount = int64_t{1} << 53;
constexpr size_t kMaxPaths = 1024;
constexpr size_t kMaxPipeline = 32;

ObjectStoreOptions ParseObjectStore(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  ObjectStoreOptions options;
  ObjectReader reader(object, path, errors);
  options.region = reader.String("region", 64);
  if (options.region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
    reader.Error("region", "is a name such as eu-west-1, not \"" + options.region + "\"");
  }
  options.endpoint = reader.String("endpoint", 1024);
  const size_t scheme = options.endpoint.find("://");
  const std::string name = options.endpoint.substr(0, scheme);
  if (!options.endpoint.empty() &&
      ((name != "https" && name != "http") || options.endpoint.find_first_of("/?@", scheme + 3) != std::string::npos ||
       scheme + 3 == options.endpoint.size())) {
    reader.Error("endpoint", "is https://HOST or https://HOST:PORT (http:// where there is no TLS), not \"" +
                                 options.endpoint + "\"");
  }
  if (const json* cache = reader.Object("cache")) {
    ObjectReader fields(*cache, reader.Path("cache"), errors);
    options.cache_bytes = fields.RequiredInt("maxBytes", 1, kMaxCount);
    // Where it lies concerns the pod alone.
    if (const json* volume = fields.Object("volume"); volume != nullptr && volume->size() != 1) {
      fields.Error("volume", "exactly one volume source is needed: persistentVolumeClaim, emptyDir or hostPath");
    }
  }
  // Whose keys concerns the pod alone, as the volume does.
  if (const json* secret = reader.Object("credentialsSecret")) {
    ObjectReader(*secret, reader.Path("credentialsSecret"), errors).RequiredString("name", 253);
  }
  return options;
}

FilesSource ParseFiles(ObjectReader& reader, std::vector<FieldError>* errors) {
  FilesSource files;
  ParseFormat(reader, &files, errors);
  files.compression = reader.Enum<Compression>("compression",
                                               {{"Auto", Compression::kAuto},
                                                {"None", Compression::kNone},
                                                {"Gzip", Compression::kGzip},
                                                {"Zstd", Compression::kZstd},
                                                {"Lz4", Compression::kLz4},
                                                {"Bzip2", Compression::kBzip2},
                                                {"Snappy", Compression::kSnappy}},
                                               Compression::kAuto);
  if (const json* paths = reader.Array("paths", 1, kMaxPaths)) {
    for (size_t i = 0; i < paths->size(); ++i) {
      const json& path = (*paths)[i];
      if (!path.is_string() || path.get_ref<const std::string&>().empty()) {
        reader.Error("paths[" + std::to_string(i) + "]", "must be a file path or glob, not " + path.dump());
      } else if (const auto& text = path.get_ref<const std::string&>();
                 IsRemotePath(text) && !RemotePathError(text).empty()) {
        reader.Error("paths[" + std::to_string(i) + "]", "\"" + text + "\" " + RemotePathError(text));
      } else {
        files.paths.push_back(path.get<std::string>());
      }
    }
  } else if (!reader.Has("paths")) {
    reader.Error("paths", "is required: a list of file paths or globs");
  }
  // Where the files are mounted from concerns the pod alone: the webhook reads it, the plan does not hold it.
  reader.Object("volume");
  if (const json* store = reader.Object("objectStore")) {
    files.object_store = ParseObjectStore(*store, reader.Path("objectStore"), errors);
    const bool cached = files.object_store.cache_bytes.has_value();
    if (std::none_of(files.paths.begin(), files.paths.end(), [cached](const std::string& path) {
          return path.rfind("s3://", 0) == 0 || path.rfind("gs://", 0) == 0 || (cached && IsRemotePath(path));
        })) {
      reader.Error("objectStore", "says how s3:// and gs:// paths are reached, and there is none; leave it out");
    }
  }
  if (const json* pipeline = reader.Array("pipeline", 0, kMaxPipeline)) {
    if (pipeline->is_array()) files.pipeline = ParsePipeline(*pipeline, reader.Path("pipeline"), true, errors);
  }
  return files;
}

RangeSource ParseRange(ObjectReader& reader) {
  RangeSource range;
  range.start = reader.Int("start", -kMaxCount, kMaxCount).value_or(0);
  range.stop = reader.Int("stop", -kMaxCount, kMaxCount);
  range.step = reader.Int("step", -kMaxCount, kMaxCount).value_or(1);
  range.dtype = ReadDType(reader, DType::kInt64);
  if (range.step == 0) reader.Error("step", "must not be 0");
  return range;
}

TensorsSource ParseTensors(const json& list, const std::string& path, std::vector<FieldError>* errors) {
  TensorsSource source;
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader reader(list[i], path + "[" + std::to_string(i) + "]", errors);
    InlineTensor tensor;
    tensor.name = reader.RequiredString("name", 128);
    tensor.dtype = ReadDType(reader, DType::kFloat32);
    tensor.shape = ReadShape(reader, tensor.dtype);
    if (const json* values = reader.Array("values", 1, kMaxInlineValues)) {
      if (values->is_array()) tensor.values = ReadNumbers(reader, "values", *values);
    } else if (!reader.Has("values")) {
      reader.Error("values", "is required: the numbers, in row-major order");
    }
    if (tensor.shape.empty()) {
      reader.Error("shape", "needs at least one dimension: the first is the number of elements");
    } else if (!tensor.values.empty() && NumValues(tensor.shape) != static_cast<int64_t>(tensor.values.size())) {
      reader.Error("values", "has " + std::to_string(tensor.values.size()) + " numbers; the shape takes " +
                                 std::to_string(NumValues(tensor.shape)));
    } else if (!source.tensors.empty() && !source.tensors[0].shape.empty() &&
               source.tensors[0].shape[0] != tensor.shape[0]) {
      reader.Error("shape", "has " + std::to_string(tensor.shape[0]) + " rows and " + path + "[0] has " +
                                std::to_string(source.tensors[0].shape[0]) + "; all tensors need the same number");
    }
    source.tensors.push_back(std::move(tensor));
  }
  return source;
}

FunctionSource ParseFunction(ObjectReader& reader, std::vector<FieldError>* errors) {
  FunctionSource function;
  // The API server knows what a container's fields take; we need its command for local runs.
  if (const json* container = reader.Object("container")) {
    function.container = container->dump();
    ObjectReader fields(*container, reader.Path("container"), errors);
    fields.RequiredString("image", 1024);
    for (const char* name :
         {"imagePullPolicy", "command", "args", "workingDir", "env", "resources", "volumeMounts", "securityContext"}) {
      fields.Any(name);
    }
    for (const char* part : {"command", "args"}) {
      for (const json& word : container->value(part, json::array())) {
        if (word.is_string()) function.command.push_back(word.get<std::string>());
      }
    }
  }
  if (const json* command = reader.Array("command", 1, kMaxPaths)) {
    function.command.clear();
    for (size_t i = 0; i < command->size(); ++i) {
      const json& word = (*command)[i];
      if (word.is_string()) {
        function.command.push_back(word.get<std::string>());
      } else {
        reader.Error("command[" + std::to_string(i) + "]", "must be a string, not " + word.dump());
      }
    }
  }
  if (!reader.Has("container") && !reader.Has("command")) {
    reader.Error("", "needs a container (on Kubernetes) or a command (for local runs) that calls headrace.serve()");
  }
  function.max_element_bytes = reader.Int("maxElementBytes", 1, int64_t{1} << 40);
  return function;
}

Source ParseSource(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  Source source;
  ObjectReader reader(object, path, errors);
  const json* files = reader.Object("files");
  const json* range = reader.Object("range");
  const json* tensors = reader.Array("tensors", 1, kMaxFeatures);
  const json* function = reader.Object("function");
  const int found = reader.Has("files") + reader.Has("range") + reader.Has("tensors") + reader.Has("function");
  if (found != 1) {
    reader.Error("", "must hold exactly one of \"files\", \"range\", \"tensors\" or \"function\", and holds " +
                         std::to_string(found));
  }
  if (files != nullptr) {
    ObjectReader files_reader(*files, reader.Path("files"), errors);
    source = ParseFiles(files_reader, errors);
  } else if (range != nullptr) {
    ObjectReader range_reader(*range, reader.Path("range"), errors);
    source = ParseRange(range_reader);
  } else if (tensors != nullptr && tensors->is_array()) {
    source = ParseTensors(*tensors, reader.Path("tensors"), errors);
  } else if (function != nullptr) {
    ObjectReader function_reader(*function, reader.Path("function"), errors);
    source = ParseFunction(function_reader, errors);
  }
  return source;
}

Distribution ParseDistribution(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  ObjectReader reader(object, path, errors);
  Distribution distribution;
  distribution.strategy = reader.Enum<Strategy>("strategy",
                                                {{"Mirrored", Strategy::kMirrored},
                                                 {"MultiWorkerMirrored", Strategy::kMultiWorkerMirrored},
                                                 {"TPU", Strategy::kTpu},
                                                 {"ParameterServer", Strategy::kParameterServer}},
                                                Strategy::kMultiWorkerMirrored);
  distribution.auto_shard_policy = reader.Enum<AutoShardPolicy>("autoShardPolicy",
                                                                {{"Auto", AutoShardPolicy::kAuto},
                                                                 {"File", AutoShardPolicy::kFile},
                                                                 {"Data", AutoShardPolicy::kData},
                                                                 {"Off", AutoShardPolicy::kOff},
                                                                 {"Hint", AutoShardPolicy::kHint}},
                                                                AutoShardPolicy::kAuto);
  distribution.rebatch = reader.Enum<Rebatch>(
      "rebatch", {{"PerBatch", Rebatch::kPerBatch}, {"Continuous", Rebatch::kContinuous}}, Rebatch::kPerBatch);
  distribution.replicas_per_worker = reader.Int("replicasPerWorker", 1, 1024);
  if (const json* collective = reader.Object("collective")) {
    distribution.collective = ParseCollective(*collective, reader.Path("collective"), errors);
  }
  return distribution;
}

// A name of a pod's spec.resourceClaims, which Kubernetes has as a DNS label.
void CheckResourceClaim(const Delivery& delivery, ObjectReader& reader) {
  const std::string& claim = delivery.resource_claim;
  if (claim.empty()) return;
  if (claim.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos || claim.front() == '-' ||
      claim.back() == '-') {
    reader.Error("resourceClaim", "\"" + claim +
                                      "\" is no name of a pod's spec.resourceClaims: those are of lower-case letters, "
                                      "digits and '-', with no '-' at an end");
  }
  if (delivery.memory != MemoryKind::kDevice && delivery.memory != MemoryKind::kAuto) {
    reader.Error("resourceClaim",
                 "\"" + claim + "\" does not go with memory " + std::string(MemoryKindName(delivery.memory)) +
                     ", for which the loader needs no GPU; remove it, or set memory to Device or Auto");
  }
}

Delivery ParseDelivery(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  ObjectReader reader(object, path, errors);
  Delivery delivery;
  delivery.memory = reader.Enum<MemoryKind>("memory",
                                            {{"Auto", MemoryKind::kAuto},
                                             {"Host", MemoryKind::kHost},
                                             {"Pinned", MemoryKind::kPinned},
                                             {"Device", MemoryKind::kDevice}},
                                            MemoryKind::kAuto);
  delivery.resource_claim = reader.String("resourceClaim", 63);
  CheckResourceClaim(delivery, reader);
  delivery.prefetch_steps = reader.Int("prefetchSteps", 1, 4096);
  delivery.max_batch_bytes = reader.Int("maxBatchBytes", 1, int64_t{1} << 40);
  return delivery;
}

// The rules that join several fields.
void CheckTogether(const InputSpec& spec, std::vector<FieldError>* errors) {
  const bool files = std::holds_alternative<FilesSource>(spec.source);
  if (!files && !spec.features.empty()) {
    errors->push_back({"spec.features", "goes with spec.source.files only; range and tensors have their own types"});
  }
  if (std::holds_alternative<FunctionSource>(spec.source) && !spec.pipeline.empty()) {
    errors->push_back({"spec.pipeline",
                       "must be empty with spec.source.function: what the function yields is delivered as it is; "
                       "batch, shard and shuffle in the function"});
  }
  const AutoShardPolicy policy = spec.distribution.auto_shard_policy;
  const bool function = std::holds_alternative<FunctionSource>(spec.source);
  const bool by_file = files && !NumbersRecords(spec.pipeline);
  const bool data = !function && (policy == AutoShardPolicy::kData || (policy == AutoShardPolicy::kAuto && !by_file));
  if (data && spec.distribution.rebatch == Rebatch::kContinuous) {
    errors->push_back({"spec.distribution.rebatch",
                       "\"Continuous\" does not go with policy Data (to which Auto falls back without files, and with "
                       "enumerate): Data "
                       "cuts each batch on its own; use PerBatch"});
  }
  if (spec.distribution.strategy == Strategy::kParameterServer && policy != AutoShardPolicy::kAuto &&
      policy != AutoShardPolicy::kOff) {
    errors->push_back({"spec.distribution.autoShardPolicy",
                       "\"" + std::string(PolicyName(policy)) +
                           "\" does not go with strategy ParameterServer: each worker reads everything by itself, and "
                           "nothing is sharded; use Off, or strategy MultiWorkerMirrored"});
  }
  if (files) CheckFormat(spec, errors);
  CheckOnError(spec, errors);
  CheckCollective(spec, errors);
  int batches = 0;
  int enumerates = 0;
  const auto check_pipeline = [&](const std::vector<Transformation>& pipeline, const std::string& path) {
    for (size_t i = 0; i < pipeline.size(); ++i) {
      const std::string item = path + "[" + std::to_string(i) + "]." + std::string(TransformationName(pipeline[i]));
      if (std::holds_alternative<Interleave>(pipeline[i]) && (!files || i != 0)) {
        errors->push_back({item, files ? "must come first: it reads the files, and all others act on their records"
                                       : "goes with spec.source.files only"});
      }
      if (const auto* shuffle = std::get_if<Shuffle>(&pipeline[i]);
          shuffle != nullptr && shuffle->global && &pipeline == &spec.pipeline) {
        CheckGlobalShuffle(spec, i, item, errors);
      }
      if (std::holds_alternative<Batch>(pipeline[i]) && ++batches > 2) {
        errors->push_back({item, "is the third batch; at most two are offered"});
      }
      if (&pipeline == &spec.pipeline) CheckBuckets(spec, i, item, errors);
      if (std::holds_alternative<Enumerate>(pipeline[i])) {
        if (batches > 0) errors->push_back({item, "must come before batch: it numbers records"});
        if (++enumerates > 1) errors->push_back({item, "stands twice; one is offered"});
      }
      if (std::holds_alternative<Filter>(pipeline[i]) && batches > 0) {
        errors->push_back({item, "must come before batch: it keeps or drops records"});
      }
      if (std::holds_alternative<Pack>(pipeline[i]) && batches > 0) {
        errors->push_back({item, "must come before batch: it packs records"});
      }
      if (const auto* shard = std::get_if<Shard>(&pipeline[i]);
          shard != nullptr && shard->hint && policy != AutoShardPolicy::kHint) {
        errors->push_back({item,
                           "by: Hint takes effect under policy Hint only, and spec.distribution.autoShardPolicy "
                           "is " +
                               std::string(PolicyName(policy)) + "; set it to Hint, or give numShards and index"});
      }
    }
  };
  if (files) check_pipeline(std::get<FilesSource>(spec.source).pipeline, "spec.source.files.pipeline");
  check_pipeline(spec.pipeline, "spec.pipeline");
  if (errors->empty()) CheckComponents(spec, errors);
}

}  // namespace

std::string_view CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kAuto: return "Auto";
    case Compression::kNone: return "None";
    case Compression::kGzip: return "Gzip";
    case Compression::kZstd: return "Zstd";
    case Compression::kLz4: return "Lz4";
    case Compression::kBzip2: return "Bzip2";
    case Compression::kSnappy: return "Snappy";
  }
  return "Auto";
}

std::string_view PolicyName(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::kAuto: return "Auto";
    case AutoShardPolicy::kFile: return "File";
    case AutoShardPolicy::kData: return "Data";
    case AutoShardPolicy::kOff: return "Off";
    case AutoShardPolicy::kHint: return "Hint";
  }
  return "Auto";
}

std::string_view StrategyName(Strategy strategy) {
  switch (strategy) {
    case Strategy::kMirrored: return "Mirrored";
    case Strategy::kMultiWorkerMirrored: return "MultiWorkerMirrored";
    case Strategy::kTpu: return "TPU";
    case Strategy::kParameterServer: return "ParameterServer";
  }
  return "Mirrored";
}

std::string_view SourceName(const Source& source) {
  static constexpr std::string_view kNames[] = {"files", "range", "tensors", "function"};
  static_assert(std::size(kNames) == std::variant_size_v<Source>);
  return kNames[source.index()];
}

Result<InputSpec> ParseInputSpec(const json& spec, std::vector<FieldError>* errors) {
  std::vector<FieldError> own;
  InputSpec out;
  {
    ObjectReader reader(spec, "spec", &own);
    if (const json* source = reader.Object("source")) {
      out.source = ParseSource(*source, "spec.source", &own);
    } else if (!reader.Has("source")) {
      reader.Error("source", "is required: exactly one of \"files\", \"range\", \"tensors\" or \"function\"");
    }
    if (const json* features = reader.Array("features", 0, kMaxFeatures); features && features->is_array()) {
      out.features = ParseFeatures(*features, "spec.features", &own);
    }
    if (const json* pipeline = reader.Array("pipeline", 0, kMaxPipeline); pipeline && pipeline->is_array()) {
      out.pipeline = ParsePipeline(*pipeline, "spec.pipeline", false, &own);
    }
    if (const json* object = reader.Object("distribution")) {
      out.distribution = ParseDistribution(*object, "spec.distribution", &own);
    }
    if (const json* object = reader.Object("delivery")) out.delivery = ParseDelivery(*object, "spec.delivery", &own);
    reader.Object("loader");  // the pod's affair, and read there: operator/admission/loader_resources.h
    if (const json* object = reader.Object("onError")) out.on_error = ParseOnError(*object, "spec.onError", &own);
  }
  // Rules over several fields only make sense of fields that are right by themselves.
  if (own.empty()) CheckTogether(out, &own);
  if (own.empty()) return out;
  std::string joined;
  for (const FieldError& error : own) joined += (joined.empty() ? "" : "; ") + error.ToString();
  if (errors != nullptr) *errors = std::move(own);
  return InvalidArgument(std::move(joined));
}

json ToJson(const InputSpec& spec) {
  json out;
  if (const auto* files = std::get_if<FilesSource>(&spec.source)) {
    out["source"]["files"] = {{"format", FormatName(files->format)},
                              {"paths", files->paths},
                              {"compression", CompressionName(files->compression)},
                              {"pipeline", PipelineToJson(files->pipeline)}};
    FormatToJson(*files, &out["source"]["files"]);
    // Left out where it says nothing, so that plans of mounted files keep their hash.
    for (const auto& [name, value] :
         {std::pair("endpoint", &files->object_store.endpoint), std::pair("region", &files->object_store.region)}) {
      if (!value->empty()) out["source"]["files"]["objectStore"][name] = *value;
    }
    if (files->object_store.cache_bytes) {
      out["source"]["files"]["objectStore"]["cache"] = {{"maxBytes", *files->object_store.cache_bytes}};
    }
  } else if (const auto* range = std::get_if<RangeSource>(&spec.source)) {
    json& object = out["source"]["range"];
    object = {{"start", range->start}, {"step", range->step}, {"dtype", DTypeName(range->dtype)}};
    if (range->stop) object["stop"] = *range->stop;
  } else if (const auto* function = std::get_if<FunctionSource>(&spec.source)) {
    json& object = out["source"]["function"] = json::object();
    if (!function->container.empty()) object["container"] = json::parse(function->container);
    if (!function->command.empty()) object["command"] = function->command;
    if (function->max_element_bytes) object["maxElementBytes"] = *function->max_element_bytes;
  } else {
    json& list = out["source"]["tensors"] = json::array();
    for (const InlineTensor& tensor : std::get<TensorsSource>(spec.source).tensors) {
      list.push_back({{"name", tensor.name},
                      {"dtype", DTypeName(tensor.dtype)},
                      {"shape", tensor.shape},
                      {"values", tensor.values}});
    }
  }
  out["features"] = FeaturesToJson(spec.features);
  out["pipeline"] = PipelineToJson(spec.pipeline);
  json& distribution = out["distribution"];
  distribution = {{"strategy", StrategyName(spec.distribution.strategy)},
                  {"autoShardPolicy", PolicyName(spec.distribution.auto_shard_policy)},
                  {"rebatch", spec.distribution.rebatch == Rebatch::kPerBatch ? "PerBatch" : "Continuous"}};
  if (spec.distribution.replicas_per_worker) {
    distribution["replicasPerWorker"] = *spec.distribution.replicas_per_worker;
  }
  out["delivery"] = {{"memory", MemoryKindName(spec.delivery.memory)}};
  // Left out where they say nothing, so that plans without them keep their hash.
  if (spec.distribution.collective.backend != CollectiveBackend::kTcp) {
    distribution["collective"] = CollectiveToJson(spec.distribution.collective);
  }
  if (!spec.delivery.resource_claim.empty()) out["delivery"]["resourceClaim"] = spec.delivery.resource_claim;
  if (spec.delivery.prefetch_steps) out["delivery"]["prefetchSteps"] = *spec.delivery.prefetch_steps;
  if (spec.delivery.max_batch_bytes) out["delivery"]["maxBatchBytes"] = *spec.delivery.max_batch_bytes;
  // Left out where it says nothing, so that plans without it keep their hash.
  if (spec.on_error.skip) out["onError"] = OnErrorToJson(spec.on_error);
  return out;
}

}  // namespace headrace
