#include "sidecar/loader/pipeline.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "sidecar/core/random.h"
#include "sidecar/distribute/deal.h"
#include "sidecar/loader/look_ahead.h"
#include "sidecar/source/framed_records.h"
#include "sidecar/source/mapped_file.h"
#include "sidecar/source/stored_block.h"
#include "sidecar/transform/batch.h"
#include "sidecar/transform/global_shuffle.h"
#include "sidecar/transform/table.h"

namespace headrace::side {
namespace {

// Pieces that are read ahead take about as much memory as the batches that they become. More than this, and their bytes
// have left the processors' caches when they are decoded.
constexpr uint64_t kLookAheadBytes = 4 << 20;
// Where rows differ in length, batches take a fraction of the room that they have.
constexpr uint64_t kVariableLookAheadBytes = 16 << 20;
constexpr uint64_t kLeastLookAhead = 2;
constexpr uint64_t kMostLookAhead = 64;
// What one thread decodes at a time: much more than handing it over costs.
constexpr uint64_t kPartBytes = 256 << 10;

// The shuffle of scope Global, which ParseInputSpec lets stand first, and where records can be had by number, only.
const Shuffle* GlobalShuffleOf(const InputSpec& spec) {
  const Shuffle* const first = spec.pipeline.empty() ? nullptr : std::get_if<Shuffle>(&spec.pipeline[0]);
  return first != nullptr && first->global ? first : nullptr;
}

using ByNumber = SourceContext::ByNumber;

// Whether a transformation looks into all records, or keeps them.
bool Looks(const Transformation& transformation) {
  const auto* const batch = std::get_if<headrace::Batch>(&transformation);
  return std::holds_alternative<Filter>(transformation) || std::holds_alternative<Cache>(transformation) ||
         std::holds_alternative<Pack>(transformation) || (batch != nullptr && batch->buckets);
}

bool Shuffles(const Transformation& transformation) { return std::holds_alternative<Shuffle>(transformation); }

// Whether a transformation gives the records another order than they have in the files.
bool Reorders(const Transformation& transformation) {
  const auto* const interleave = std::get_if<Interleave>(&transformation);
  return Shuffles(transformation) || (interleave != nullptr && interleave->cycle_length > 1);
}

// Always, where these are known, for several workers of whom each delivers some, and for an order of their own. Remote
// ones are read through instead, far ahead and in large parts, unless the order is all that counts.
ByNumber ReadsByNumber(const Plan& plan, const Topology& sharing, const SourceContext& source,
                       const SlotLayout& layout) {
  const std::vector<Transformation>& pipeline = plan.spec.pipeline;
  if (source.format->framer == nullptr) return ByNumber::kNever;
  if (GlobalShuffleOf(plan.spec) != nullptr) return ByNumber::kAlways;
  if (source.files.any_remote() || std::any_of(pipeline.begin(), pipeline.end(), Looks)) return ByNumber::kNever;
  if (plan.effective_policy == AutoShardPolicy::kData && sharing.num_workers > 1) return ByNumber::kAlways;
  // One by one they gain where they are decoded from where they lie, as rows of a fixed size are; but a shuffle's
  // buffer, whose records lie anywhere, does not, and holds less memory than it would map.
  const bool shuffles = std::any_of(pipeline.begin(), pipeline.end(), Shuffles);
  const bool gains = source.format->says_lengths && !shuffles && !(source.mixed && layout.has_variable());
  return gains ? ByNumber::kInMemory : ByNumber::kNever;
}

MakeDecoder SourceDecoder(const InputSpec& spec, SourceContext* source) {
  if (const auto* range = std::get_if<RangeSource>(&spec.source)) {
    return [range] { return MakeRangeDecoder(range->dtype); };
  }
  if (const auto* tensors = std::get_if<TensorsSource>(&spec.source)) {
    return [tensors] { return MakeTensorsDecoder(*tensors); };
  }
  const Format& format = FormatOf(std::get<FilesSource>(spec.source).format);
  return [&spec, &format, source] {
    const bool fetches = source->by_number != ByNumber::kNever;
    return fetches ? MakeFetchDecoder(format.decoder(spec), source) : format.decoder(spec);
  };
}

DatasetPtr<Record> MakeSource(const Plan& plan, const TransformContext& transform, SourceContext* context) {
  const Shuffle* const global = GlobalShuffleOf(plan.spec);
  const auto ordered = [&](std::unique_ptr<const IndexedDataset> records) -> DatasetPtr<Record> {
    if (global == nullptr) return records;
    return std::make_unique<GlobalShuffleDataset>(std::move(records), *global, 1);
  };
  if (const auto* range = std::get_if<RangeSource>(&plan.spec.source)) return ordered(MakeRange(*range));
  if (const auto* tensors = std::get_if<TensorsSource>(&plan.spec.source)) {
    return ordered(MakeRows(tensors->tensors[0].shape[0]));
  }
  if (global != nullptr) {
    return ordered(MakeIndexedFiles(MakeFileList(plan, transform, *context), *context->format, context));
  }
  Interleave interleave;
  if (!plan.spec.pipeline.empty()) {
    if (const auto* first = std::get_if<Interleave>(&plan.spec.pipeline[0])) interleave = *first;
  }
  // With one file open at a time the block length changes no order: read as much at once as is asked for.
  if (interleave.cycle_length == 1) interleave.block_length = INT64_MAX;
  return ReadFiles(MakeFileList(plan, transform, *context), interleave, *context->format, context);
}

}  // namespace

class Pipeline::Epoch : public FeedEpoch {
 public:
  Epoch(Pipeline& pipeline, Deal deal)
      : pipeline_(pipeline), ahead_(std::move(deal), Depth(pipeline), pipeline.signal_, &pipeline.read_clock_) {}

  Result<Next> Advance(Delivery* delivery) override {
    ASSIGN_OR_RETURN(const LookAhead::State state, ahead_.Look(next_));
    if (state != LookAhead::State::kThere) return state == LookAhead::State::kEnd ? Next::kEnd : Next::kNotYet;
    const Dealt& dealt = ahead_.piece(next_);
    *delivery = {dealt.step,  dealt.replica, dealt.piece.rows, static_cast<int64_t>(dealt.piece.records.size()),
                 dealt.spare, next_++};
    return Next::kDelivery;
  }

  Result<size_t> Begin(const Delivery& delivery, Place* place) override {
    const Piece& piece = ahead_.piece(delivery.number).piece;
    const uint64_t bytes = pipeline_.layout_.Extents(piece.rows, piece.row_records, &place->extents);
    if (bytes > place->slot_bytes) return Internal("a batch of " + std::to_string(bytes) + " bytes outgrew its slot");
    return pipeline_.Parts(piece.records.size());
  }

  Status WritePart(const Delivery& delivery, size_t part, size_t thread, Place* place) override {
    const std::span<const Record> records(ahead_.piece(delivery.number).piece.records);
    const size_t parts = pipeline_.Parts(records.size());
    const size_t begin = records.size() * part / parts;
    const size_t end = records.size() * (part + 1) / parts;
    const SlotLayout& layout = pipeline_.layout_;
    Desk& desk = pipeline_.desks_[thread];
    desk.columns.clear();
    for (size_t c = 0; c < place->extents.size(); ++c) {
      if (layout.is_variable(c)) {
        desk.rows[c].resize(records.size());
        desk.columns.push_back(reinterpret_cast<uint8_t*>(desk.rows[c].data()));
      } else {
        desk.columns.push_back(place->slot + place->extents[c].offset + begin * layout.record_bytes(c));
      }
    }
    Status decoded = Decode(records.subspan(begin, end - begin), &desk);
    if (!decoded.ok() && pipeline_.source_.quarantine.skips()) {
      decoded = DecodeEach(records.subspan(begin, end - begin), delivery.number, begin, &desk);
    }
    RETURN_IF_ERROR(decoded);
    return layout.has_variable() ? layout.Gather(desk.rows, place->slot, &place->extents) : Status();
  }

  Status End(Delivery* delivery, Place* place) override {
    ahead_.Release(delivery->number);
    const std::lock_guard lock(left_out_mutex_);
    if (const auto found = left_out_.find(delivery->number); found != left_out_.end()) {
      std::vector<size_t>& rows = found->second;
      std::sort(rows.begin(), rows.end());
      pipeline_.layout_.LeaveOut(rows, place->slot, &place->extents);
      delivery->rows -= static_cast<int64_t>(rows.size());
      delivery->records -= static_cast<int64_t>(rows.size());
      left_out_.erase(found);
    }
    pipeline_.source_.quarantine.CountGood(static_cast<uint64_t>(delivery->records));
    return {};
  }

 private:
  Status Decode(std::span<const Record> records, Desk* desk) {
    // Rows of varying length refer to where their values lie until they are gathered.
    if (!pipeline_.layout_.has_variable()) {
      const MappedReads reads;
      const Status decoded = desk->decoder->Decode(records, desk->columns);
      if (!reads.failed()) return decoded;
    }
    return desk->decoder->Decode(records, desk->columns);
  }

  // Decodes a part that holds a bad record one by one, and notes those that are to be left out. `first`: the row of the
  // delivery that the part begins with.
  Status DecodeEach(std::span<const Record> records, uint64_t number, size_t first, Desk* desk) {
    const SlotLayout& layout = pipeline_.layout_;
    std::vector<uint8_t*> row = desk->columns;
    desk->kept.Reset();
    for (size_t i = 0; i < records.size(); ++i) {
      const Status decoded = desk->decoder->Decode(records.subspan(i, 1), row);
      if (!decoded.ok()) {
        RETURN_IF_ERROR(pipeline_.source_.quarantine.Take(decoded));
        const std::lock_guard lock(left_out_mutex_);
        left_out_[number].push_back(first + i);
      }
      for (size_t c = 0; c < row.size(); ++c) {
        if (!layout.is_variable(c)) {
          row[c] += layout.record_bytes(c);
          continue;
        }
        // Values live until the next Decode only.
        BytesRef& values = desk->rows[c][i];
        if (!decoded.ok()) values = {};
        uint8_t* const kept = desk->kept.Take(values.size);
        if (values.size > 0) std::memcpy(kept, values.data, values.size);
        values.data = kept;
        row[c] += sizeof(BytesRef);
      }
    }
    return {};
  }

  static size_t Depth(const Pipeline& pipeline) {
    const uint64_t bytes = pipeline.layout_.has_variable() ? kVariableLookAheadBytes : kLookAheadBytes;
    const uint64_t depth =
        std::clamp(bytes / std::max<uint64_t>(pipeline.max_bytes(), 1), kLeastLookAhead, kMostLookAhead);
    // The pieces of a step may all be held until the last of them is there (Engine::Held), and the thread that reads
    // ahead goes on when half of its pieces are given back.
    return std::max(depth, 2 * static_cast<uint64_t>(pipeline.topology_.replicas_per_worker));
  }

  Pipeline& pipeline_;
  LookAhead ahead_;
  uint64_t next_ = 0;
  std::mutex left_out_mutex_;
  std::map<uint64_t, std::vector<size_t>> left_out_;  // rows, by the delivery's number
};

size_t Pipeline::Parts(size_t records) const {
  const uint64_t parts = records * layout_.all_record_bytes() / kPartBytes;
  // Where values of variable length go is known one after another only.
  if (layout_.has_variable()) return 1;
  return static_cast<size_t>(std::clamp<uint64_t>(parts, records > 0 ? 1 : 0, records));
}

Pipeline::Pipeline(Plan plan, const Topology& topology, uint64_t run_seed, size_t threads, Signal* signal,
                   LastMaps last_maps)
    : plan_(std::move(plan)),
      topology_(topology),
      sharing_(SharingTopology(plan_, topology)),
      run_seed_(run_seed),
      gpu_images_(last_maps == LastMaps::kOnGpu ? FindGpuImages(plan_.spec) : std::vector<GpuImages>()),
      decoded_spec_(WithoutMapsOf(plan_.spec, gpu_images_)),
      layout_(plan_.spec, gpu_images_, sharing_),
      element_spec_(ElementSpec(plan_, topology)),
      holds_steps_(MayDropLastStep(sharing_, PipelineElement(plan_.spec).components)),
      signal_(signal),
      desks_(threads) {}

Result<std::unique_ptr<Pipeline>> Pipeline::Create(Plan plan, const Topology& topology, const std::string& data_dir,
                                                   const std::string& run_id, const std::string& quarantine,
                                                   size_t threads, Signal* signal, LastMaps last_maps) {
  RETURN_IF_ERROR(CheckTopology(plan, topology));
  FileTable files;
  if (const auto* source = std::get_if<FilesSource>(&plan.spec.source)) {
    ASSIGN_OR_RETURN(files, ListFiles(*source, data_dir));
    RETURN_IF_ERROR(FillFeatures(&plan.spec, files));
  }
  // Workers that read everything by themselves should not all see it in one order.
  const bool alone = SharingTopology(plan, topology).num_workers < topology.num_workers;
  const uint64_t run_seed =
      SeedOf(plan.hash + run_id + (alone ? "/" + std::to_string(topology.worker_index) : std::string()));
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(plan), topology, run_seed, threads, signal, last_maps));
  const Plan& made = pipeline->plan_;
  const TransformContext transform{
      pipeline->sharing_, &made.spec, SourceDecoder(made.spec, &pipeline->source_), &pipeline->source_.blocks,
      [pipeline = pipeline.get()](const Status& error) { return pipeline->source_.quarantine.Take(error); }};
  if (const auto* source = std::get_if<FilesSource>(&made.spec.source)) {
    pipeline->source_.files = std::move(files);
    pipeline->source_.spec = &made.spec;
    pipeline->source_.quarantine.Configure(made.spec.on_error, quarantine);
    pipeline->source_.format = &FormatOf(source->format);
    pipeline->source_.compression = source->compression;
    pipeline->source_.mixed = std::any_of(made.spec.pipeline.begin(), made.spec.pipeline.end(), Reorders);
    pipeline->source_.by_number = ReadsByNumber(made, pipeline->sharing_, pipeline->source_, pipeline->layout_);
    RETURN_IF_ERROR(CheckFileCount(made, transform, pipeline->source_));
    RETURN_IF_ERROR(CheckFirstHeader(made, transform, &pipeline->source_));
  }
  AnyDataset dataset = ApplyPipeline(transform, MakeSource(made, transform, &pipeline->source_));
  if (auto* records = std::get_if<DatasetPtr<Record>>(&dataset)) {
    pipeline->batches_ = MakeSingles(std::move(*records));
  } else {
    pipeline->batches_ = std::get<DatasetPtr<Batch>>(std::move(dataset));
  }
  for (Desk& desk : pipeline->desks_) {
    desk.rows.resize(pipeline->layout_.components());
    const InputSpec& decoded = pipeline->decoded_spec_;
    desk.decoder = MakePipelineDecoder(decoded, decoded.pipeline.size(), transform.source_decoder());
  }
  return pipeline;
}

Result<std::unique_ptr<FeedEpoch>> Pipeline::Start(const ring::Position& start) {
  Deal deal(plan_, sharing_, batches_->Iterate({start.epoch, start.seed}));
  RETURN_IF_ERROR(deal.PassOverSteps(static_cast<int64_t>(start.step)));
  return std::unique_ptr<FeedEpoch>(std::make_unique<Epoch>(*this, std::move(deal)));
}

Result<bool> Pipeline::ReadsAll() {
  if (source_.format == nullptr || source_.format->framer == nullptr) return false;
  ASSIGN_OR_RETURN(const bool any, source_.files.Has(0));
  if (!any) return false;
  if (source_.by_number != ByNumber::kAlways) return true;
  // Of what is compressed no place can be sought.
  std::atomic<uint64_t> not_data{0};
  ASSIGN_OR_RETURN(const auto bytes, OpenByteStream(source_.files, 0, source_.compression, &not_data));
  uint8_t first = 0;
  RETURN_IF_ERROR(bytes->Read(&first, 1));
  return !bytes->plain();
}

void Pipeline::Stop() { source_.files.Stop(); }

uint64_t SeedOf(const std::string& text) {
  uint64_t seed = 0;
  for (const char c : text) seed = Mix(seed, static_cast<unsigned char>(c));
  return seed == 0 ? 1 : seed;
}

}  // namespace headrace::side
