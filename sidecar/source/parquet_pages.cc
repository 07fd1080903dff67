#include "sidecar/source/parquet_pages.h"

#include <cstring>
#include <span>
#include <utility>

namespace headrace::side {
namespace {

using Bytes = std::span<const uint8_t>;

// Whether the levels are a single run of `level`, which is how writers put them where nothing is null: twice the run's
// length as a varint, and the level (Parquet's "RLE / bit-packing hybrid").
bool AreAll(int16_t level, int32_t rows, Bytes levels) {
  uint64_t header = 0;
  size_t at = 0;
  for (int shift = 0; at < levels.size() && shift < 35; shift += 7) {
    const uint8_t byte = levels[at++];
    header |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) != 0) continue;
    return (header & 1) == 0 && header / 2 >= static_cast<uint64_t>(rows) && at < levels.size() && levels[at] == level;
  }
  return false;
}

// What follows a page's levels, if these say that no row is null; nothing if not, or if they are not made so.
std::optional<Bytes> WithoutLevels(const parquet::DataPage& page, int16_t present) {
  Bytes data(page.data(), static_cast<size_t>(page.size()));
  size_t levels = 0;
  if (page.type() == parquet::PageType::DATA_PAGE_V2) {
    const auto& v2 = static_cast<const parquet::DataPageV2&>(page);
    if (v2.repetition_levels_byte_length() != 0) return std::nullopt;
    levels = static_cast<size_t>(v2.definition_levels_byte_length());
  } else if (present > 0) {
    uint32_t size = 0;
    const auto encoding = static_cast<const parquet::DataPageV1&>(page).definition_level_encoding();
    if (encoding != parquet::Encoding::RLE || data.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, data.data(), sizeof size);
    data = data.subspan(sizeof size);
    levels = size;
  }
  if (levels > data.size()) return std::nullopt;
  if (present > 0 && !AreAll(present, page.num_values(), data.first(levels))) return std::nullopt;
  return data.subspan(levels);
}

bool IsData(const std::shared_ptr<parquet::Page>& page) {
  return page != nullptr &&
         (page->type() == parquet::PageType::DATA_PAGE || page->type() == parquet::PageType::DATA_PAGE_V2);
}

}  // namespace

std::optional<ColumnPages::Plain> ColumnPages::TakePlain() {
  if (value_bytes_ == 0 || next_ != nullptr) return std::nullopt;
  next_ = pages_->NextPage();
  if (!IsData(next_)) return std::nullopt;
  const auto& page = static_cast<const parquet::DataPage&>(*next_);
  const std::optional<Bytes> values = WithoutLevels(page, column_.max_definition_level());
  if (!values || page.encoding() != parquet::Encoding::PLAIN || page.num_values() <= 0 ||
      values->size() / value_bytes_ < static_cast<size_t>(page.num_values())) {
    return std::nullopt;
  }
  Plain plain{stay_ ? page.buffer() : nullptr, values->data(), page.num_values()};
  taken_ = std::exchange(next_, nullptr);
  return plain;
}

std::shared_ptr<parquet::Page> ColumnPages::NextPage() {
  std::shared_ptr<parquet::Page> page = next_ != nullptr ? std::exchange(next_, nullptr) : pages_->NextPage();
  if (IsData(page)) {
    const auto& data = static_cast<const parquet::DataPage&>(*page);
    rows_ = data.num_values();
    no_nulls_ = WithoutLevels(data, column_.max_definition_level()).has_value();
  }
  return page;
}

}  // namespace headrace::side
