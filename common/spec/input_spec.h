// The spec of a DistributedInput as a value: parsed strictly, defaulted, validated.
//
// The operator, the loader and the command line all read a spec through here, so they agree on every default and on
// every message. Field names are those of crds/headrace.dev_distributedinputs.yaml (a test compares the two).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/spec/dtype.h"

namespace headrace {

enum class FileFormat { kTFRecord, kText, kCsv, kJsonLines, kFixedLength, kNumPy, kParquet, kArrow, kWebDataset };
// Where a record is a string of bytes, which without features is delivered as such: the name of that component; else
// "".
constexpr const char* RecordName(FileFormat format) {
  switch (format) {
    case FileFormat::kText: return "line";
    case FileFormat::kTFRecord:
    case FileFormat::kJsonLines: return "record";
    default: return "";
  }
}
constexpr bool RecordsAreBytes(FileFormat format) { return *RecordName(format) != 0; }
// Whether the files name and type their columns, so that without features all of them are delivered. Which there are is
// known only when a file is opened.
constexpr bool FilesNameColumns(FileFormat format) {
  return format == FileFormat::kParquet || format == FileFormat::kArrow;
}
enum class Compression { kAuto, kNone, kGzip, kZstd, kLz4, kBzip2, kSnappy };  // kAuto: by the file's first bytes

// How one tensor is read out of a record (tf.io.FixedLenFeature).
struct Feature {
  std::string name;  // of the component, and of what it is read from: a key of the tf.train.Example, a column
  // The columns that it is made of, one value of each in row-major order; empty: the one of its name.
  std::vector<std::string> columns;
  std::string path;  // JSONLines: a JSON pointer to where it stands; "": the field of its name
  DType dtype = DType::kFloat32;
  // Of one record; [] is a scalar. uint8 reads a bytes_list of exactly that many bytes, string one of one value. -1, as
  // the first, is as many as the record holds: what a paddedBatch pads (tf.io.FixedLenSequenceFeature), or else ragged
  // (tf.io.RaggedFeature).
  std::vector<int64_t> shape;
  std::vector<double> default_value;  // empty: the feature is required. One value fills the whole shape
  bool has_default = false;
  std::optional<double> padding;  // of PaddedFeatures: what fills a record that holds fewer values
};

// tf.data's transformations. Counts are of elements at that point of the pipeline.
struct Shuffle {
  int64_t buffer_size = 0;      // of scope Buffer
  std::optional<int64_t> seed;  // none: a seed of the run, the same on every worker
  bool reshuffle_each_iteration = true;
  bool global = false;  // scope Global: all records in one random order, of an index; first in the pipeline
};
struct Repeat {
  int64_t count = -1;
};  // -1: endless
struct Batch {
  // What paddedBatch makes of a component whose length varies.
  struct Padding {
    std::string feature;
    std::vector<int64_t> shape;
    double value = 0;
    bool operator==(const Padding&) const = default;
  };
  // What bucketBatch batches records of like length by (tf.data's bucket_by_sequence_length): bucket b takes those of
  // boundaries[b - 1] <= length < boundaries[b], and makes batches of sizes[b] of them.
  struct Buckets {
    std::string feature;              // whose length; "": the only component
    std::vector<int64_t> boundaries;  // rising
    std::vector<int64_t> sizes;       // one more
  };
  int64_t size = 0;
  bool drop_remainder = false;
  bool padded = false;  // written as paddedBatch
  std::vector<Padding> paddings;
  std::optional<Buckets> buckets;  // written as bucketBatch; `size` is their largest
};
struct Take {
  int64_t count = 0;
};  // -1: all
struct Skip {
  int64_t count = 0;
};  // -1: all
struct Interleave {
  int64_t cycle_length = 1;
  int64_t block_length = 1;
  // tf.data's num_parallel_calls and deterministic. The order is that of deterministic: true whatever they say.
  std::optional<int64_t> num_parallel_calls;  // -1: tf.data.AUTOTUNE
  bool deterministic = true;
};  // over the files; first in the pipeline
struct Enumerate {
  int64_t start = 0;
};  // adds the int64 component "index" before the others
struct Prefetch {
  int64_t buffer_size = 1;
};
// shard(num_shards, index), or by hint: shard(workers, worker) under policy Hint (tf.data's SHARD_HINT).
struct Shard {
  bool hint = false;
  int64_t num_shards = 1;
  int64_t index = 0;
};

// The operations of map, on one component of each record. Before or after a batch they mean the same.
struct CastOp {
  DType dtype = DType::kFloat32;
};
// x * scale + offset, in the component's own float dtype: of all values, or one for each of the last dimension.
struct AffineOp {
  std::optional<double> scale;
  std::optional<double> offset;
  std::vector<double> scales;   // in place of `scale`
  std::vector<double> offsets;  // in place of `offset`
};
struct OneHotOp {
  int64_t depth = 1;
  DType dtype = DType::kFloat32;
};
struct ReshapeOp {
  std::vector<int64_t> shape;  // at most one -1: what is left
};
// tf.strings.to_number
struct StringToNumberOp {
  DType dtype = DType::kFloat32;
};
enum class ResizeMethod { kNone, kNearest, kBilinear };
// tf.io.decode_image and tf.image.resize, of JPEG and PNG.
struct DecodeImageOp {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 3;                       // 1, 3 or 4
  ResizeMethod resize = ResizeMethod::kNone;  // kNone: the image must have that height and width
};
// tf.io.decode_raw: the bytes of a string as values, little-endian.
struct DecodeRawOp {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // of one record; the string must have exactly its bytes
};
// tf.transpose of one record.
struct TransposeOp {
  std::vector<int64_t> axes;  // dimension d of the result is axes[d] of what it was
};
using MapOperation =
    std::variant<CastOp, AffineOp, OneHotOp, ReshapeOp, StringToNumberOp, DecodeImageOp, DecodeRawOp, TransposeOp>;

struct Map {
  std::string feature;  // the component it acts on; "": the only one
  std::string as;       // the component it adds, after the others; "": it replaces `feature`
  MapOperation operation;
};

// Keeps the records for which the expression (common/spec/expression.h) is true. Before any batch.
struct Filter {
  std::string expression;
};

// In memory, filled by the first whole pass.
struct Cache {
  std::optional<int64_t> max_bytes;  // more is an error; none: as much as it takes
};

// Packs the sequences of consecutive records, in their order, into rows of `length` values. Before any batch.
struct Pack {
  int64_t length = 1;
  std::vector<std::string> features;  // empty: all that are ragged
  bool split = false;                 // a sequence may go on in the next row; else it begins one where it does not fit
};

using Transformation =
    std::variant<Shuffle, Repeat, Batch, Take, Skip, Interleave, Enumerate, Prefetch, Shard, Map, Filter, Cache, Pack>;
// The field of the CRD that holds it: "shuffle", "repeat", ...
std::string_view TransformationName(const Transformation& transformation);

// How s3:// and gs:// paths are reached.
struct ObjectStoreOptions {
  std::string
      endpoint;  // "https://minio.example:9000", without a '/' at its end; "": the store's own, or the environment's
  std::string region;                  // "": the environment's, else us-east-1
  std::optional<int64_t> cache_bytes;  // that objects may take in the cache; none: there is no cache
};

// How the files of format CSV are written.
struct CsvOptions {
  bool header = true;                // each file's first line names its columns
  std::vector<std::string> columns;  // without a header: their names
  char delimiter = ',';
};

// Where records of one length lie in a file (tf.data.FixedLengthRecordDataset).
struct FixedLength {
  std::optional<int64_t> record_bytes;  // none: what the features take
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
};

struct FilesSource {
  FileFormat format = FileFormat::kTFRecord;
  std::vector<std::string> paths;  // globs; each glob's matches in lexical order
  Compression compression = Compression::kAuto;
  ObjectStoreOptions object_store;
  CsvOptions csv;            // of format CSV
  FixedLength fixed_length;  // of format FixedLength
  std::vector<Transformation>
      pipeline;  // on the list of file names, before reading: Repeat, Take, Skip, Shard, Shuffle
};
// tf.data's range; without stop, its counter: endless.
struct RangeSource {
  int64_t start = 0;
  std::optional<int64_t> stop;
  int64_t step = 1;
  DType dtype = DType::kInt64;
};
// tf.data's from_tensor_slices of inline values: one element for each row.
struct InlineTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<double> values;
};
struct TensorsSource {
  std::vector<InlineTensor> tensors;
};  // shape[0], the number of rows, is the same in all

// The user's own generator (tf.distribute's distribute_datasets_from_function), in a process of its own which calls the
// client's headrace.serve(). What it yields is delivered as it is.
struct FunctionSource {
  std::string container;                     // on Kubernetes: the container, as JSON; empty: none
  std::vector<std::string> command;          // for local runs; empty: the container's command and args
  std::optional<int64_t> max_element_bytes;  // none: by the first element
};

using Source = std::variant<FilesSource, RangeSource, TensorsSource, FunctionSource>;
// "files", "range", ...: the field of spec.source that holds it.
std::string_view SourceName(const Source& source);

enum class Strategy { kMirrored, kMultiWorkerMirrored, kTpu, kParameterServer };
enum class AutoShardPolicy { kAuto, kFile, kData, kOff, kHint };
enum class Rebatch { kPerBatch, kContinuous };
// Where batches lie when the trainer gets them. kAuto: the trainer's client picks, by what its process finds.
enum class MemoryKind { kAuto, kHost, kPinned, kDevice };

std::string_view FormatName(FileFormat format);             // "TFRecord", "CSV", ...
std::string_view CompressionName(Compression compression);  // "Auto", "None", ...
std::string_view PolicyName(AutoShardPolicy policy);        // "Auto", "File", ...
std::string_view StrategyName(Strategy strategy);           // "Mirrored", ...
std::string_view MemoryKindName(MemoryKind memory);         // "Auto", "Host", ...
std::optional<MemoryKind> ParseMemoryKind(std::string_view name);

// What carries batches between the loaders of a run, beside the words that go over TCP always.
enum class CollectiveBackend { kTcp, kNccl };
struct Collective {
  CollectiveBackend backend = CollectiveBackend::kTcp;  // kTcp: nothing is carried, each worker reads by itself
  bool falls_back = true;                               // on an error, to that; else the input fails
  int64_t timeout_seconds = 30;                         // of one batch's way
};

struct Distribution {
  Strategy strategy = Strategy::kMultiWorkerMirrored;
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
  Rebatch rebatch = Rebatch::kPerBatch;
  std::optional<int64_t> replicas_per_worker;  // none: the trainer's nvidia.com/gpu limit, else 1
  Collective collective;
};

struct Delivery {
  MemoryKind memory = MemoryKind::kAuto;
  // Of Device and Auto: the entry of the pod's spec.resourceClaims that holds the GPU of loader and trainer; "": with
  // Device the pod's only one, with Auto none.
  std::string resource_claim;
  std::optional<int64_t> prefetch_steps;  // none: the number of replicas in sync
  // That the components of variable length of one replica's batch may take together; none: see VariableBytes.
  std::optional<int64_t> max_batch_bytes;
};

// What becomes of records that are not what their format and features demand.
struct OnError {
  bool skip = false;          // policy Skip: they are left out of their batches; else the input fails
  int64_t max_skipped = 0;    // different records of one loader; more, and the input fails
  double max_fraction = 0.0;  // instead, if not 0: of the records so far
};

struct InputSpec {
  Source source;
  std::vector<Feature> features;
  std::vector<Transformation> pipeline;
  Distribution distribution;
  Delivery delivery;
  OnError on_error;
};

// One thing wrong with a spec: the field's path ("spec.pipeline[1].batch.size"), and what, the value and the remedy.
struct FieldError {
  std::string field;
  std::string message;
  std::string ToString() const { return field + ": " + message; }
};

// Parses `spec` (the object under "spec"), applies defaults and checks every rule that needs neither the data nor the
// size of a run. Unknown fields are errors, with the nearest known name as remedy. On failure `errors` (may be null)
// receives every error found and the status, InvalidArgument, joins them with "; ".
Result<InputSpec> ParseInputSpec(const nlohmann::json& spec, std::vector<FieldError>* errors = nullptr);

// The spec with every default written out, in the CRD's spelling: what ParseInputSpec would read back unchanged.
nlohmann::json ToJson(const InputSpec& spec);

}  // namespace headrace
