// What the fuzzers of files of columns share: all of a file is read and decoded, by its own columns as features.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sidecar/core/rows_copy.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/source/columns_file.h"

namespace headrace::fuzz {

using namespace headrace::side;

class MemoryFile : public StoredFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (offset >= bytes_.size()) return size_t{0};
    const size_t read = std::min<size_t>(out.size(), bytes_.size() - offset);
    if (read > 0) std::memcpy(out.data(), bytes_.data() + offset, read);
    return read;
  }
  uint64_t size() const override { return bytes_.size(); }
  const std::string& path() const override { return path_; }

 private:
  const std::span<const uint8_t> bytes_;
  const std::string path_ = "fuzz";
};

class MemoryStream : public ByteStream {
 public:
  explicit MemoryStream(std::span<const uint8_t> bytes) : rest_(bytes) {}
  Result<size_t> Read(uint8_t* out, size_t n) override {
    const size_t read = std::min(n, rest_.size());
    if (read > 0) std::memcpy(out, rest_.data(), read);
    rest_ = rest_.subspan(read);
    return read;
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }

 private:
  std::span<const uint8_t> rest_;
};

// An error must say where it is.
inline bool Ok(const Status& status) {
  if (!status.ok() && status.message().rfind("fuzz: ", 0) != 0) std::abort();
  return status.ok();
}

inline void DecodeAll(Decoder& decoder, std::unique_ptr<ColumnsBlock> block, const std::vector<Feature>& features) {
  constexpr int64_t kMostRows = 4096;
  constexpr size_t kMostBytes = 16 << 20;
  std::vector<Record> records(static_cast<size_t>(std::min(block->rows, kMostRows)));
  const BlockRef held(block.release());
  PointAtRows(records, held, 0);
  std::vector<std::vector<uint8_t>> columns;
  std::vector<uint8_t*> outs;
  for (const Feature& feature : features) {
    const bool variable = feature.dtype == DType::kString || (!feature.shape.empty() && feature.shape[0] < 0);
    const size_t bytes = variable ? sizeof(BytesRef) : RowBytes({feature.name, feature.dtype, feature.shape});
    if (bytes * records.size() > kMostBytes) return;
    columns.emplace_back(bytes * records.size());
    outs.push_back(columns.back().data());
  }
  if (!Ok(decoder.Decode(records, outs))) return;
  uint8_t sum = 0;  // what is referred to must be there
  for (size_t f = 0; f < features.size(); ++f) {
    if (columns[f].size() != records.size() * sizeof(BytesRef)) continue;
    if (features[f].dtype != DType::kString && (features[f].shape.empty() || features[f].shape[0] >= 0)) continue;
    for (size_t row = 0; row < records.size(); ++row) {
      BytesRef ref;
      std::memcpy(&ref, &columns[f][row * sizeof ref], sizeof ref);
      for (uint64_t i = 0; i < ref.size; ++i) sum = static_cast<uint8_t>(sum + ref.data[i]);
    }
  }
  [[maybe_unused]] static volatile uint8_t seen = sum;  // so that nothing of it is left out
}

// `choice` decides how much is passed over before, and whether rows are laid together as they are for a shuffle.
inline void ReadAll(Result<std::unique_ptr<ColumnsFile>> opened, size_t choice) {
  constexpr size_t kMostColumns = 32;
  constexpr int kMostBlocks = 64;
  constexpr size_t kMostDefaultBytes = 1 << 16;  // a default row of a shape without bounds takes longer than all else
  if (!Ok(opened.status())) return;
  ColumnsFile& file = **opened;
  std::vector<Feature> features;
  std::vector<size_t> chosen;
  for (size_t c = 0; c < file.columns().size() && chosen.size() < kMostColumns; ++c) {
    const FileColumn& column = file.columns()[c];
    if (!column.offered) continue;
    Feature& feature = features.emplace_back();
    feature.name = column.name;
    feature.dtype = column.dtype;
    feature.shape = column.shape;
    const bool numbers = column.dtype != DType::kString;
    if (numbers && c % 2 == 0 && RowBytes({feature.name, feature.dtype, feature.shape}) <= kMostDefaultBytes) {
      feature.has_default = true;
      feature.default_value = {1};
    }
    chosen.push_back(c);
  }
  if (chosen.empty() || !Ok(file.Choose(chosen))) return;
  if (choice % 3 > 0 && !Ok(file.PassOver(choice % 7).status())) return;
  const auto decoder = MakeColumnsDecoder(features);
  for (int i = 0; i < kMostBlocks; ++i) {
    auto block = file.Next();
    if (!Ok(block.status()) || *block == nullptr) return;
    if ((*block)->rows <= 0 || (*block)->columns.size() != chosen.size()) std::abort();
    DecodeAll(*decoder, choice % 2 > 0 ? ByRow(std::move(*block)) : std::move(*block), features);
  }
}

}  // namespace headrace::fuzz
