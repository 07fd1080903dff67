// Runs of maps of images, in one pass. Of uint8 images, each channel's 256 values are mapped once, by the maps
// themselves, when the loader starts; a pixel is then a look into that table. What is asked for most is computed
// instead, where the processor has a quick way (pixels_quick.h), which is the only one for images of floats.
#include <algorithm>
#include <cstring>
#include <utility>

#include "common/spec/map.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/map_operation.h"
#include "sidecar/decode/pixels_quick.h"

namespace headrace::side {
namespace {

constexpr size_t kValues = 256;        // of a uint8
constexpr size_t kBlockPixels = 4096;  // that stay in a level-1 cache while one channel after the other is written

// What the maps make of each value, [256, channels].
std::vector<uint8_t> Mapped(const PixelMaps& maps, size_t channels) {
  MapSite site;
  site.input = {maps.input.name, DType::kUint8, {static_cast<int64_t>(kValues), static_cast<int64_t>(channels)}};
  std::vector<uint8_t> values(kValues * channels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i / channels);
  for (const MapOperation& operation : maps.values) {
    site.output = *MappedType(operation, site.input);
    std::vector<uint8_t> mapped(RowBytes(site.output));
    const auto map = std::visit([&](const auto& op) { return MakeMapOperator(op, site); }, operation);
    // PixelMaps::values are operations on values.
    static_cast<ValueOperator&>(*map).ApplyValues(kValues * channels, values.data(), mapped.data());
    values = std::move(mapped);
    site.input = site.output;
  }
  return values;
}

template <typename T>
class TableOperator : public MapOperator {
 public:
  explicit TableOperator(const PixelMaps& maps)
      : pixels_(static_cast<size_t>(maps.pixels)),
        channels_(static_cast<size_t>(maps.channels)),
        channels_first_(maps.channels_first),
        tables_(maps.by_channel ? channels_ : 1),
        table_(tables_ * kValues) {
    const std::vector<uint8_t> mapped = Mapped(maps, tables_);
    for (size_t i = 0; i < table_.size(); ++i) {
      std::memcpy(&table_[i % tables_ * kValues + i / tables_], &mapped[i * sizeof(T)], sizeof(T));
    }
  }

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    for (size_t i = 0; i < records.size(); ++i) {
      auto* const to = reinterpret_cast<T*>(out) + i * pixels_ * channels_;
      const uint8_t* const from = in + i * pixels_ * channels_;
      channels_first_ ? ChannelsFirst(from, to) : ChannelsLast(from, to);
    }
    return {};
  }

 private:
  const T* TableOf(size_t channel) const { return &table_[tables_ == 1 ? 0 : channel * kValues]; }

  void ChannelsFirst(const uint8_t* in, T* out) const {
    for (size_t begin = 0; begin < pixels_; begin += kBlockPixels) {
      const size_t end = std::min(begin + kBlockPixels, pixels_);
      for (size_t c = 0; c < channels_; ++c) {
        const T* const table = TableOf(c);
        for (size_t p = begin; p < end; ++p) out[c * pixels_ + p] = table[in[p * channels_ + c]];
      }
    }
  }

  void ChannelsLast(const uint8_t* in, T* out) const {
    const size_t values = pixels_ * channels_;
    if (tables_ == 1) {
      for (size_t i = 0; i < values; ++i) out[i] = table_[in[i]];
      return;
    }
    for (size_t i = 0; i < values; i += tables_) {
      for (size_t c = 0; c < tables_; ++c) out[i + c] = table_[c * kValues + in[i + c]];
    }
  }

  const size_t pixels_;
  const size_t channels_;
  const bool channels_first_;
  const size_t tables_;  // one for each channel, or one for all
  std::vector<T> table_;
};

class QuickOperator : public MapOperator {
 public:
  QuickOperator(const PixelProgram& program, DType from, QuickPixels quick)
      : program_(program),
        quick_(quick),
        in_bytes_(static_cast<size_t>(program.pixels * program.channels) * DTypeSize(from)),
        out_bytes_(static_cast<size_t>(program.pixels * program.channels) * DTypeSize(program.result)) {}

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    if (!program_.channels_first) {  // in their order the pixels of all images are those of one
      PixelProgram all = program_;
      all.pixels *= static_cast<int64_t>(records.size());
      quick_(all, in, out);
      return {};
    }
    for (size_t i = 0; i < records.size(); ++i) quick_(program_, in + i * in_bytes_, out + i * out_bytes_);
    return {};
  }

 private:
  const PixelProgram program_;
  const QuickPixels quick_;
  const size_t in_bytes_;
  const size_t out_bytes_;
};

}  // namespace

std::unique_ptr<MapOperator> MakePixelsOperator(const PixelMaps& maps) {
  if (const std::optional<PixelProgram> program = ProgramOf(maps)) {
    const QuickPixels quick = QuickPixelsFor(*program, maps.input.dtype);
    if (quick != nullptr) return std::make_unique<QuickOperator>(*program, maps.input.dtype, quick);
  }
  if (maps.input.dtype != DType::kUint8 || maps.stages.size() == 1) return nullptr;
  switch (DTypeSize(maps.output.dtype)) {
    case 1: return std::make_unique<TableOperator<uint8_t>>(maps);
    case 2: return std::make_unique<TableOperator<uint16_t>>(maps);
    case 4: return std::make_unique<TableOperator<uint32_t>>(maps);
    default: return std::make_unique<TableOperator<uint64_t>>(maps);
  }
}

}  // namespace headrace::side
