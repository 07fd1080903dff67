// The decoder of a pipeline: the source's, wrapped by one for each transformation that changes components.
#include <algorithm>
#include <utility>

#include "common/spec/components.h"
#include "common/spec/pixel_maps.h"
#include "common/spec/variable.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

constexpr size_t kBlockBytes = 128 << 10;  // about half of a level-2 cache
constexpr size_t kMaxBlockRecords = 1024;

class BlockDecoder : public Decoder {
 public:
  BlockDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components) : rest_(std::move(rest)) {
    size_t record_bytes = 1;
    for (const TensorSpec& component : components) {
      row_bytes_.push_back(RowBytes(component));
      record_bytes += row_bytes_.back();
    }
    records_ = std::clamp<size_t>(kBlockBytes / record_bytes, 1, kMaxBlockRecords);
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    columns_.assign(columns.begin(), columns.end());
    while (!records.empty()) {
      const size_t count = std::min(records_, records.size());
      RETURN_IF_ERROR(rest_->Decode(records.first(count), columns_));
      for (size_t c = 0; c < columns_.size(); ++c) columns_[c] += count * row_bytes_[c];
      records = records.subspan(count);
    }
    return {};
  }

 private:
  const std::unique_ptr<Decoder> rest_;
  std::vector<size_t> row_bytes_;
  size_t records_ = 1;
  std::vector<uint8_t*> columns_;
};

// Whether one of these stages is a map of the component.
bool ActsOn(const std::string& component, const InputSpec& spec, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const auto* const map = std::get_if<Map>(&spec.pipeline[i]);
    if (map != nullptr && (map->feature.empty() || map->feature == component)) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Decoder> MakeBlockDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components) {
  return std::make_unique<BlockDecoder>(std::move(rest), components);
}

std::unique_ptr<Decoder> MakePipelineDecoder(const InputSpec& spec, size_t stages, std::unique_ptr<Decoder> source) {
  std::unique_ptr<Decoder> decoder = std::move(source);
  bool maps = false;
  std::vector<bool> done(stages);  // with a map before
  for (size_t i = 0; i < stages; ++i) {
    if (std::holds_alternative<Enumerate>(spec.pipeline[i])) decoder = MakeIndexDecoder(std::move(decoder));
    if (const auto* pack = std::get_if<Pack>(&spec.pipeline[i])) {
      decoder = MakePackedDecoder(std::move(decoder), RecordComponents(spec, i, nullptr), *pack);
    }
    const auto* map = std::get_if<Map>(&spec.pipeline[i]);
    if (map == nullptr || done[i]) continue;
    const std::vector<TensorSpec> components = RecordComponents(spec, i, nullptr);
    const std::optional<PixelMaps> pixels = FindPixelMaps(spec, i, stages);
    if (std::unique_ptr<MapOperator> run = pixels ? MakePixelsOperator(*pixels) : nullptr) {
      decoder = MakePixelsDecoder(std::move(decoder), components, *map, *pixels, std::move(run));
      for (const size_t stage : pixels->stages) done[stage] = true;
    } else {
      const std::string field = "spec.pipeline[" + std::to_string(i) + "].map";
      const std::string& made = map->as.empty() ? components[*FindComponent(components, map->feature)].name : map->as;
      const bool read_next = ActsOn(made, spec, i + 1, stages);
      decoder = MakeMapDecoder(std::move(decoder), components, *map, field, read_next);
    }
    maps = true;
  }
  const std::vector<TensorSpec> components = RecordComponents(spec, stages, nullptr);
  // What one block's rows refer to would be gone with the next.
  if (!maps || std::any_of(components.begin(), components.end(), IsVariable)) return decoder;
  return MakeBlockDecoder(std::move(decoder), components);
}

size_t RowBytes(const TensorSpec& component) {
  if (IsVariable(component)) return sizeof(BytesRef);
  size_t bytes = DTypeSize(component.dtype);
  for (const int64_t dim : component.shape) bytes *= static_cast<size_t>(dim);
  return bytes;
}

}  // namespace headrace::side
