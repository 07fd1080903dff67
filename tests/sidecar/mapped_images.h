// Images through a pipeline of maps, one map after another: what quicker ways are held to.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "common/spec/components.h"
#include "sidecar/decode/decoder.h"

namespace headrace::side {

// Record i holds the bytes of the random numbers of seed i.
class RandomImages : public Decoder {
 public:
  explicit RandomImages(size_t row_bytes) : row_bytes_(row_bytes) {}
  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    uint8_t* out = columns[0];
    for (const Record& record : records) {
      std::mt19937 random(static_cast<uint32_t>(record.value));
      for (size_t b = 0; b < row_bytes_; ++b) *out++ = static_cast<uint8_t>(random());
    }
    return {};
  }

 private:
  const size_t row_bytes_;
};

class MappedImages {
 public:
  using Columns = std::vector<std::vector<uint8_t>>;

  // The component "x", of `shape`, and the bodies of maps.
  MappedImages(const nlohmann::json& shape, const nlohmann::json& maps, const char* dtype = "uint8") {
    nlohmann::json spec = {{"source", {{"files", {{"paths", {"a"}}}}}},
                           {"features", {{{"name", "x"}, {"dtype", dtype}, {"shape", shape}}}}};
    for (const nlohmann::json& map : maps) spec["pipeline"].push_back({{"map", map}});
    auto parsed = ParseInputSpec(spec);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    spec_ = std::move(*parsed);
  }

  const InputSpec& spec() const { return spec_; }
  std::optional<PixelMaps> pixel_maps() const { return FindPixelMaps(spec_, 0, spec_.pipeline.size()); }
  std::unique_ptr<Decoder> Source() const {
    return std::make_unique<RandomImages>(RowBytes(RecordComponents(spec_, 0, nullptr)[0]));
  }

  // As MakePipelineDecoder does it.
  Columns AtOnce(size_t records) const {
    return Decoded(MakePipelineDecoder(spec_, spec_.pipeline.size(), Source()), spec_.pipeline.size(), records);
  }
  // Every map by itself; `maps` of them.
  Columns OneByOne(size_t records, size_t maps) const {
    std::unique_ptr<Decoder> decoder = Source();
    for (size_t i = 0; i < maps; ++i) {
      decoder = MakeMapDecoder(std::move(decoder), RecordComponents(spec_, i, nullptr),
                               std::get<Map>(spec_.pipeline[i]), "spec.pipeline", false);
    }
    return Decoded(std::move(decoder), maps, records);
  }
  Columns OneByOne(size_t records) const { return OneByOne(records, spec_.pipeline.size()); }

 private:
  // What lies behind each component must stay as it is.
  Columns Decoded(std::unique_ptr<Decoder> decoder, size_t maps, size_t count) const {
    constexpr size_t kBehind = 64;
    std::vector<Record> records(count);
    for (size_t i = 0; i < count; ++i) records[i].value = static_cast<int64_t>(i);
    Columns columns;
    std::vector<uint8_t*> places;
    for (const TensorSpec& component : RecordComponents(spec_, maps, nullptr)) {
      columns.emplace_back(count * RowBytes(component) + kBehind, uint8_t{0xee});
      places.push_back(columns.back().data());
    }
    EXPECT_TRUE(decoder->Decode(records, places).ok());
    for (std::vector<uint8_t>& column : columns) {
      EXPECT_EQ(std::vector<uint8_t>(column.end() - kBehind, column.end()), std::vector<uint8_t>(kBehind, 0xee));
      column.resize(column.size() - kBehind);
    }
    return columns;
  }

  InputSpec spec_;
};

// x / 255, - mean, / deviation, as photographs are put before networks.
inline nlohmann::json Normalised(const char* within, const char* result, const nlohmann::json& transpose) {
  nlohmann::json maps = {{{"cast", within}}, {{"scale", 1 / 255.0}}, {{"offsets", {-0.485, -0.456, -0.406}}}};
  maps.push_back({{"scales", {1 / 0.229, 1 / 0.224, 1 / 0.225}}});
  if (!transpose.is_null()) maps.push_back({{"transpose", transpose}});
  maps.push_back({{"cast", result}});
  return maps;
}

}  // namespace headrace::side
