// Small files as Arrow's own writers put them, of all that is offered.
#pragma once

#include <string>
#include <vector>

#include "tests/sidecar/tables.h"

namespace headrace::fuzz {

inline std::shared_ptr<arrow::Table> NumbersTable() {
  return side::TableOf({{"i", arrow::int64(), "[1, null, 3, 4]"},
                        {"f", arrow::float32(), "[0.5, 1.5, 2.5, 3.5]", false},
                        {"b", arrow::boolean(), "[true, null, false, true]"},
                        {"d", arrow::decimal128(20, 2), R"(["1.25", "2.50", null, "0.75"])"},
                        {"t", arrow::timestamp(arrow::TimeUnit::MILLI), "[1, 2, 3, 4]"}});
}

inline std::shared_ptr<arrow::Table> NestedTable() {
  return side::TableOf(
      {{"s", arrow::utf8(), R"(["a", "bc", null, "def"])"},
       {"w", arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["x", "y", "x", null])"},
       {"c", arrow::dictionary(arrow::int16(), arrow::int32()), "[5, 6, 5, 6]"},
       {"l", arrow::list(arrow::int32()), "[[1, 2], [], null, [3]]"},
       {"v", arrow::fixed_size_list(arrow::float32(), 2), "[[1, 2], [3, 4], [5, 6], [7, 8]]"},
       {"z", arrow::fixed_size_binary(3), R"(["abc", "def", "ghi", "jkl"])"},
       {"in", arrow::struct_({arrow::field("x", arrow::uint8()), arrow::field("y", arrow::list(arrow::float64()))}),
        R"([{"x": 1, "y": [0.5]}, null, {"x": 3, "y": []}, {"x": null, "y": null}])"}});
}

inline std::vector<std::string> ParquetSeeds() {
  using parquet::WriterProperties;
  const auto small = WriterProperties::Builder().disable_dictionary()->data_pagesize(1)->write_batch_size(1)->build();
  const auto packed = WriterProperties::Builder()
                          .data_page_version(parquet::ParquetDataPageVersion::V2)
                          ->compression(arrow::Compression::SNAPPY)
                          ->build();
  return {side::ParquetOf(NumbersTable()),
          side::ParquetOf(NestedTable()),
          side::ParquetOf(NumbersTable(), 2, small),
          side::ParquetOf(NestedTable(), 3, small),
          side::ParquetOf(NumbersTable(), 4, packed),
          side::ParquetOf(NestedTable(), 4, packed)};
}

inline std::vector<std::string> ArrowSeeds() {
  arrow::ipc::IpcWriteOptions packed;
  packed.codec = arrow::util::Codec::Create(arrow::Compression::LZ4_FRAME).ValueOrDie();
  std::vector<std::string> seeds;
  for (const side::IpcFormat format : {side::IpcFormat::kFile, side::IpcFormat::kStream}) {
    for (const auto& table : {NumbersTable(), NestedTable()}) {
      seeds.push_back(side::IpcOf(table, format));
      seeds.push_back(side::IpcOf(table, format, 3));
      seeds.push_back(side::IpcOf(table, format, 2, packed));
    }
  }
  return seeds;
}

}  // namespace headrace::fuzz
