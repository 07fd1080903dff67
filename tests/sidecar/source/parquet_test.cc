// Parquet files as Arrow's own writer puts them, with values written down here.
#include "sidecar/source/parquet.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "tests/sidecar/tables.h"

namespace headrace::side {
namespace {

using parquet::WriterProperties;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using ParquetTest = OneParquetFile;

// ---- However it is stored

struct Storage {
  const char* name;
  std::shared_ptr<WriterProperties> properties;
  int64_t group_rows;
};

class ParquetStorage : public testing::TestWithParam<Storage> {};

WriterProperties::Builder Plain() {
  WriterProperties::Builder builder;
  builder.disable_dictionary();
  return builder;
}

INSTANTIATE_TEST_SUITE_P(
    All, ParquetStorage,
    testing::Values(
        Storage{"Defaults", parquet::default_writer_properties(), 1000}, Storage{"Plain", Plain().build(), 1000},
        Storage{"Groups", Plain().build(), 3},
        Storage{"SmallPages", Plain().data_pagesize(1)->write_batch_size(2)->build(), 1000},
        Storage{"PagesV2", WriterProperties::Builder().data_page_version(parquet::ParquetDataPageVersion::V2)->build(),
                4},
        Storage{"Version1", WriterProperties::Builder().version(parquet::ParquetVersion::PARQUET_1_0)->build(), 1000},
        Storage{"Snappy", WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->build(), 5},
        Storage{"Zstd", WriterProperties::Builder().compression(arrow::Compression::ZSTD)->build(), 1000},
        Storage{"Lz4", WriterProperties::Builder().compression(arrow::Compression::LZ4)->build(), 1000},
        Storage{"Gzip", WriterProperties::Builder().compression(arrow::Compression::GZIP)->build(), 1000},
        Storage{"Brotli", WriterProperties::Builder().compression(arrow::Compression::BROTLI)->build(), 1000},
        Storage{"DeltaPacked",
                Plain()
                    .encoding("i", parquet::Encoding::DELTA_BINARY_PACKED)
                    ->encoding("s", parquet::Encoding::DELTA_BYTE_ARRAY)
                    ->encoding("f", parquet::Encoding::BYTE_STREAM_SPLIT)
                    ->build(),
                1000},
        Storage{"Checksums", WriterProperties::Builder().enable_page_checksum()->build(), 4}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(ParquetStorage, HoldsTheSameRows) {
  const TableFolder folder("Parquet");
  const auto table = TableOf({{"i", arrow::int64(), "[1, -2, 3, null, 5, 6, 7, 8]"},
                              {"f", arrow::float32(), "[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]"},
                              {"required", arrow::float32(), "[10, 11, 12, 13, 14, 15, 16, 17]", false},
                              {"b", arrow::boolean(), "[true, false, null, true, true, false, false, true]"},
                              {"s", arrow::utf8(), R"(["a", "bc", "", "def", "a", "bc", "ghij", ""])"},
                              {"l", arrow::list(arrow::int32()), "[[1], [], [2, 3], null, [4], [5, 6, 7], [], [8]]"}});
  folder.Write("a.parquet", ParquetOf(table, GetParam().group_rows, GetParam().properties));
  auto run = folder.Run(
      R"([{"name": "i", "dtype": "int64", "default": [-9]}, {"name": "x", "shape": [2], "columns": ["f", "required"]},
      {"name": "b", "dtype": "bool", "default": [1]}, {"name": "s", "dtype": "string"}, {"name": "l", "dtype": "int32", "shape": [-1]}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().ToString();
  EXPECT_THAT(all[0].Values<int64_t>(0), ElementsAre(1, -2, 3, -9, 5, 6, 7, 8));
  EXPECT_THAT(all[0].Values<float>(1),
              ElementsAre(0.5, 10, 1.5, 11, 2.5, 12, 3.5, 13, 4.5, 14, 5.5, 15, 6.5, 16, 7.5, 17));
  EXPECT_THAT(all[0].dims[1], ElementsAre(8, 2));
  EXPECT_THAT(all[0].Values<uint8_t>(2), ElementsAre(1, 0, 1, 1, 1, 0, 0, 1));
  EXPECT_EQ(TextOf(all[0], 3), "abcdefabcghij");
  EXPECT_THAT(all[0].splits[3], ElementsAre(0, 1, 3, 3, 6, 7, 9, 13, 13));
  EXPECT_THAT(all[0].Values<int32_t>(4), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(all[0].splits[4], ElementsAre(0, 1, 1, 3, 3, 4, 7, 7, 8));
}

// ---- Types

TEST_F(ParquetTest, ReadsNumbersOfEveryType) {
  Write({{"i8", arrow::int8(), "[-128, 127]"},
         {"u8", arrow::uint8(), "[0, 255]"},
         {"i16", arrow::int16(), "[-32768, 32767]"},
         {"u16", arrow::uint16(), "[0, 65535]"},
         {"i32", arrow::int32(), "[-2147483648, 2147483647]"},
         {"u32", arrow::uint32(), "[0, 4294967295]"},
         {"i64", arrow::int64(), "[-9223372036854775808, 9223372036854775807]"},
         {"u64", arrow::uint64(), "[0, 18446744073709551615]"},
         {"f16", arrow::float16(), "[1, -65504]"},
         {"f32", arrow::float32(), "[0.5, -1e30]"},
         {"f64", arrow::float64(), "[0.1, -1e300]"}});
  const Delivered all = All("[]");
  EXPECT_THAT(all.Values<int8_t>(0), ElementsAre(-128, 127));
  EXPECT_THAT(all.Values<uint8_t>(1), ElementsAre(0, 255));
  EXPECT_THAT(all.Values<int16_t>(2), ElementsAre(-32768, 32767));
  EXPECT_THAT(all.Values<uint16_t>(3), ElementsAre(0, 65535));
  EXPECT_THAT(all.Values<int32_t>(4), ElementsAre(INT32_MIN, INT32_MAX));
  EXPECT_THAT(all.Values<uint32_t>(5), ElementsAre(0, UINT32_MAX));
  EXPECT_THAT(all.Values<int64_t>(6), ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(all.Values<uint64_t>(7), ElementsAre(0, UINT64_MAX));
  EXPECT_THAT(all.Values<uint16_t>(8), ElementsAre(0x3c00, 0xfbff));
  EXPECT_THAT(all.Values<float>(9), ElementsAre(0.5, -1e30F));
  EXPECT_THAT(all.Values<double>(10), ElementsAre(0.1, -1e300));
}

TEST_F(ParquetTest, DecimalsAreFloatsAndTimesAreIntegers) {
  Write({{"d9", arrow::decimal128(9, 2), R"(["1.25", "-0.50"])"},
         {"d38", arrow::decimal128(38, 3), R"(["12345678901.500", "-1.000"])"},
         {"d76", arrow::decimal256(76, 1), R"(["2.5", "-2.5"])"},
         {"day", arrow::date32(), "[0, 19000]"},
         {"ms", arrow::date64(), "[0, 86400000]"},
         {"us", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"), "[-1, 1700000000000000]"},
         {"time", arrow::time32(arrow::TimeUnit::MILLI), "[0, 1000]"},
         {"took", arrow::duration(arrow::TimeUnit::NANO), "[5, -5]"}});
  const Delivered all = All("[]");
  EXPECT_THAT(all.Values<double>(0), ElementsAre(1.25, -0.5));
  EXPECT_THAT(all.Values<double>(1), ElementsAre(12345678901.5, -1));
  EXPECT_THAT(all.Values<double>(2), ElementsAre(2.5, -2.5));
  EXPECT_THAT(all.Values<int64_t>(3), ElementsAre(0, 19000));
  EXPECT_THAT(all.Values<int64_t>(5), ElementsAre(-1, 1700000000000000));
  EXPECT_THAT(all.Values<int64_t>(6), ElementsAre(0, 1000));
  EXPECT_THAT(all.Values<int64_t>(7), ElementsAre(5, -5));
  EXPECT_THAT(All(R"([{"name": "d9", "dtype": "float32"}])").Values<float>(), ElementsAre(1.25F, -0.5F));
}

TEST_F(ParquetTest, ReadsStringsHoweverTheyAreTyped) {
  Write({{"utf8", arrow::utf8(), R"(["a", "", "bcd"])"},
         {"large", arrow::large_utf8(), R"(["e", "fg", ""])"},
         {"words", arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["yes", "no", "yes"])"},
         {"bytes", arrow::fixed_size_binary(2), R"(["pq", "rs", "tu"])"},
         {"raw", arrow::binary(), R"(["\u0001\u0002", "\u0003\u0004", "\u0005\u0006"])"}});
  const Delivered all = All(R"([{"name": "utf8", "dtype": "string"}, {"name": "large", "dtype": "string"},
      {"name": "words", "dtype": "string"}, {"name": "bytes", "dtype": "string"},
      {"name": "raw", "dtype": "uint8", "shape": [2]}])");
  EXPECT_EQ(TextOf(all, 0), "abcd");
  EXPECT_THAT(all.splits[0], ElementsAre(0, 1, 1, 4));
  EXPECT_EQ(TextOf(all, 1), "efg");
  EXPECT_THAT(all.splits[1], ElementsAre(0, 1, 3, 3));
  EXPECT_EQ(TextOf(all, 2), "yesnoyes");
  EXPECT_EQ(TextOf(all, 3), "pqrstu");
  EXPECT_THAT(all.Values<uint8_t>(4), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(All(R"([{"name": "bytes", "dtype": "uint8", "shape": [2]}])").Values<uint8_t>(),
              ElementsAre('p', 'q', 'r', 's', 't', 'u'));
  const Delivered ragged = All(R"([{"name": "utf8", "dtype": "uint8", "shape": [-1]}])");
  EXPECT_EQ(TextOf(ragged, 0), "abcd");
  EXPECT_THAT(ragged.splits[0], ElementsAre(0, 1, 1, 4));
}

TEST_F(ParquetTest, ReadsLists) {
  Write({{"any", arrow::list(arrow::float32()), "[[1, 2], [], null, [3]]"},
         {"same", arrow::list(arrow::int64()), "[[1, 2], [3, 4], [5, 6], [7, 8]]"},
         {"fixed", arrow::fixed_size_list(arrow::float64(), 2), "[[1, 2], [3, 4], [5, 6], [7, 8]]"},
         {"boxes", arrow::list(arrow::fixed_size_list(arrow::int16(), 2)), "[[[1, 2]], [], [[3, 4], [5, 6]], []]"}});
  const Delivered all = All(R"([{"name": "any", "shape": [-1]}, {"name": "same", "dtype": "int32", "shape": [2]},
      {"name": "fixed", "dtype": "float32", "shape": [2, 1]}, {"name": "boxes", "dtype": "int64", "shape": [-1, 2]}])");
  EXPECT_THAT(all.Values<float>(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(all.splits[0], ElementsAre(0, 2, 2, 2, 3));
  EXPECT_THAT(all.Values<int32_t>(1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(all.Values<float>(2), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(all.dims[2], ElementsAre(4, 2, 1));
  EXPECT_THAT(all.Values<int64_t>(3), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(all.splits[3], ElementsAre(0, 1, 1, 3, 3));
}

TEST_F(ParquetTest, ReadsColumnsWithinStructs) {
  const auto inner = arrow::struct_({arrow::field("x", arrow::float32()), arrow::field("y", arrow::utf8())});
  Write({{"a",
          arrow::struct_({arrow::field("n", arrow::int32()), arrow::field("in", inner),
                          arrow::field("l", arrow::list(arrow::int8()))}),
          R"([{"n": 1, "in": {"x": 0.5, "y": "p"}, "l": [1]}, {"n": null, "in": {"x": 1.5, "y": "q"}, "l": [2, 3]},
              {"n": 3, "in": {"x": null, "y": "r"}, "l": []}])"},
         {"b", arrow::int64(), "[7, 8, 9]"}});
  const Delivered all = All(R"([{"name": "a.in.y", "dtype": "string"}, {"name": "b", "dtype": "int64"},
      {"name": "a.n", "dtype": "int32", "default": [-1]}, {"name": "a.in.x", "default": [-2]},
      {"name": "a.l", "dtype": "int8", "shape": [-1]}])");
  EXPECT_EQ(TextOf(all, 0), "pqr");
  EXPECT_THAT(all.Values<int64_t>(1), ElementsAre(7, 8, 9));
  EXPECT_THAT(all.Values<int32_t>(2), ElementsAre(1, -1, 3));
  EXPECT_THAT(all.Values<float>(3), ElementsAre(0.5, 1.5, -2));
  EXPECT_THAT(all.Values<int8_t>(4), ElementsAre(1, 2, 3));
}

// What is within a struct that is null is null.
TEST_F(ParquetTest, AStructThatIsNullHasNoColumns) {
  Write({{"a", arrow::struct_({arrow::field("n", arrow::int32()), arrow::field("l", arrow::list(arrow::int32()))}),
          R"([{"n": 1, "l": [1]}, null, {"n": 3, "l": [2, 3]}])"}});
  const Delivered all = All(R"([{"name": "a.n", "dtype": "int32", "default": [-1]},
                                {"name": "a.l", "dtype": "int32", "shape": [-1]}])");
  EXPECT_THAT(all.Values<int32_t>(0), ElementsAre(1, -1, 3));
  EXPECT_THAT(all.Values<int32_t>(1), ElementsAre(1, 2, 3));
  EXPECT_THAT(all.splits[1], ElementsAre(0, 1, 1, 3));
}

// ---- What is wrong

TEST_F(ParquetTest, FilesOfAnotherKindAreCorrupt) {
  for (const std::string& bytes : {std::string(), std::string("a,b\n1,2\n"), std::string(5000, 'x')}) {
    folder_.Write("a.parquet", bytes);
    const std::string error = folder_.ErrorOf(R"([{"name": "x"}])");
    EXPECT_THAT(error, HasSubstr("Corrupt: " + folder_.path() + "/a.parquet: "));
    EXPECT_THAT(
        error,
        HasSubstr(
            "; the file is damaged, or of another format; write it again or take it out of spec.source.files.paths"));
  }
}

TEST_F(ParquetTest, CutFilesAreCorrupt) {
  const std::string whole = ParquetOf(TableOf({{"x", arrow::float32(), "[1, 2, 3]"}}));
  for (size_t size = 0; size < whole.size(); size += 7) {
    folder_.Write("a.parquet", whole.substr(0, size));
    EXPECT_THAT(folder_.ErrorOf(R"([{"name": "x"}])"), HasSubstr("Corrupt: ")) << size;
  }
}

TEST_F(ParquetTest, ADamagedPageNamesItsRowGroup) {
  const auto properties = Plain().enable_page_checksum()->build();
  std::string bytes = ParquetOf(TableOf({{"x", arrow::float32(), "[1, 2, 3, 77, 5, 6]"}}), 3, properties);
  const float value = 77;
  const std::string stored(reinterpret_cast<const char*>(&value), sizeof value);
  bytes[bytes.find(stored) + 1] ^= 1;
  folder_.Write("a.parquet", bytes);
  auto run = folder_.Run(R"([{"name": "x"}])", R"([{"batch": {"size": 3}}])");
  EXPECT_EQ(run.Epoch().size(), 1u) << "the first row group is whole";
  EXPECT_THAT(run.status().ToString(), HasSubstr("Corrupt: " + folder_.path() + "/a.parquet: row group 1: "));
  EXPECT_THAT(run.status().message(), HasSubstr("CRC"));
}

// ---- Which bytes are read

// Ten columns of distinct integers, c0 = row, c1 = row + 1, ...
std::shared_ptr<arrow::Table> TenColumns(int64_t rows) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (int64_t c = 0; c < 10; ++c) {
    arrow::Int64Builder builder;
    for (int64_t row = 0; row < rows; ++row) EXPECT_TRUE(builder.Append(row + c).ok());
    fields.push_back(arrow::field("c" + std::to_string(c), arrow::int64()));
    arrays.push_back(builder.Finish().ValueOrDie());
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

TEST_F(ParquetTest, ReadsTheColumnsThatAreWantedOnly) {
  const std::string bytes = ParquetOf(TenColumns(50000), 10000, Plain().build());
  folder_.Write("a.parquet", bytes);
  auto run = folder_.Run(R"([{"name": "c7", "dtype": "int64"}])", R"([{"batch": {"size": 50000}}])");
  const std::vector<int64_t> values = run.Values<int64_t>();
  ASSERT_EQ(values.size(), 50000u) << run.status().ToString();
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values[49999], 50006);
  // A tenth, and Arrow's guess at the footer twice: before any trainer waits, and to read.
  constexpr size_t kFooterGuess = 64 << 10;
  EXPECT_LT(run.pipeline().bytes_read(), bytes.size() / 9 + 2 * kFooterGuess);
}

TEST_F(ParquetTest, RowGroupsThatArePassedOverAreNotRead) {
  const std::string bytes = ParquetOf(TenColumns(50000), 1000, Plain().build());
  folder_.Write("a.parquet", bytes);
  auto run = folder_.Run("[]", R"([{"skip": {"count": 47500}}, {"batch": {"size": 50000}}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().ToString();
  EXPECT_EQ(all[0].rows, 2500);
  EXPECT_EQ(all[0].Values<int64_t>(3)[0], 47503);
  EXPECT_LT(run.pipeline().bytes_read(), bytes.size() / 8);
}

// Row groups larger than what is held at once are read by pieces; the values are the same.
TEST_F(ParquetTest, ReadsLargeRowGroupsByPieces) {
  constexpr int64_t kRows = 400000;
  folder_.Write("a.parquet", ParquetOf(TenColumns(kRows), kRows, Plain().build()));
  auto run = folder_.Run("[]", R"([{"skip": {"count": 1234}}, {"batch": {"size": 100000}}])");
  const std::vector<int64_t> values = run.Values<int64_t>(9);
  ASSERT_EQ(values.size(), static_cast<size_t>(kRows - 1234)) << run.status().ToString();
  for (size_t i = 0; i < values.size(); i += 1111) ASSERT_EQ(values[i], static_cast<int64_t>(i) + 1234 + 9);
}

// ---- Pages

std::shared_ptr<arrow::Array> Int32Of(int64_t rows, const std::function<std::optional<int32_t>(int64_t)>& value) {
  arrow::Int32Builder builder;
  for (int64_t row = 0; row < rows; ++row) {
    const std::optional<int32_t> is = value(row);
    EXPECT_TRUE((is ? builder.Append(*is) : builder.AppendNull()).ok());
  }
  return builder.Finish().ValueOrDie();
}

// Columns whose pages end at different rows, and of which some pages hold plain numbers and others do not: nulls in a
// part of them, and a dictionary until there are too many values for one.
TEST_F(ParquetTest, ReadsPagesOfAllKindsInOneColumn) {
  constexpr int64_t kRows = 30000;
  const auto wide = [](int64_t row) { return std::optional<int32_t>(static_cast<int32_t>(row) * 3); };
  const auto gaps = [](int64_t row) {
    const bool null = row >= 12000 && row < 12100 && row % 3 == 0;
    return null ? std::nullopt : std::optional<int32_t>(static_cast<int32_t>(row) + 7);
  };
  const auto words = [](int64_t row) { return std::optional<int32_t>(static_cast<int32_t>(row < 11000 ? 5 : row)); };
  const auto required = arrow::field("wide", arrow::int32(), false);
  const auto table = arrow::Table::Make(
      arrow::schema({required, arrow::field("gaps", arrow::int32()), arrow::field("words", arrow::int32())}),
      {Int32Of(kRows, wide), Int32Of(kRows, gaps), Int32Of(kRows, words)});
  for (const auto version : {parquet::ParquetDataPageVersion::V1, parquet::ParquetDataPageVersion::V2}) {
    for (const int64_t page_rows : {100, 6000, 20000}) {
      const auto properties = WriterProperties::Builder()
                                  .disable_dictionary("wide")
                                  ->disable_dictionary("gaps")
                                  ->dictionary_pagesize_limit(4000)
                                  ->data_page_version(version)
                                  ->data_pagesize(page_rows * 4)
                                  ->write_batch_size(500)
                                  ->build();
      folder_.Write("a.parquet", ParquetOf(table, kRows, properties));
      for (const int64_t skip : {0, 5999, 6000, 12050, 29999}) {
        SCOPED_TRACE(std::to_string(page_rows) + " rows a page, from row " + std::to_string(skip));
        auto run =
            folder_.Run(R"([{"name": "wide", "dtype": "float64"}, {"name": "gaps", "dtype": "int32", "default": [-1]},
                                   {"name": "words", "dtype": "int32"}])",
                        R"([{"skip": {"count": )" + std::to_string(skip) + R"(}}, {"batch": {"size": 700}}])");
        int64_t row = skip;
        for (const Delivered& batch : run.Epoch()) {
          const auto first = batch.Values<double>(0);
          const auto second = batch.Values<int32_t>(1);
          const auto third = batch.Values<int32_t>(2);
          for (size_t i = 0; i < first.size(); ++i, ++row) {
            ASSERT_EQ(first[i], *wide(row)) << row;
            ASSERT_EQ(second[i], gaps(row).value_or(-1)) << row;
            ASSERT_EQ(third[i], *words(row)) << row;
          }
        }
        ASSERT_EQ(row, kRows) << run.status().ToString();
      }
    }
  }
}

// A page that holds several blocks' rows holds them one after another: they are where the file was read to.
TEST_F(ParquetTest, PlainPagesAreNotCopied) {
  constexpr int64_t kRows = 60000;
  const std::string path = folder_.Write("a.parquet", ParquetOf(TenColumns(kRows), kRows, Plain().build()));
  std::atomic<uint64_t> bytes_read{0};
  auto file = OpenParquet(*OpenLocal(path, &bytes_read), &path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  ASSERT_TRUE((*file)->Choose({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).ok());
  std::vector<const uint8_t*> end(10);
  int64_t row = 0;
  int64_t adjoining = 0;
  while (true) {
    const auto block = (*file)->Next();
    ASSERT_TRUE(block.ok()) << block.status().ToString();
    if (*block == nullptr) break;
    for (size_t c = 0; c < end.size(); ++c) {
      const uint8_t* const values = (*block)->columns[c].values;
      int64_t value = 0;
      std::memcpy(&value, values, sizeof value);
      ASSERT_EQ(value, row + static_cast<int64_t>(c));
      adjoining += values == end[c] ? 1 : 0;
      end[c] = values + (*block)->rows * 8;
    }
    row += (*block)->rows;
  }
  EXPECT_EQ(row, kRows);
  EXPECT_GE(adjoining, 20);
}

// A shuffle's rows are laid together, whose columns come from wherever they were.
TEST_F(ParquetTest, ShuffledRowsStayWhole) {
  constexpr int64_t kRows = 20000;
  const auto number = [](int64_t row) { return std::optional<int32_t>(static_cast<int32_t>(row)); };
  const auto gaps = [](int64_t row) {
    return row % 10 == 0 ? std::nullopt : std::optional<int32_t>(static_cast<int32_t>(row) * 2);
  };
  arrow::StringBuilder text;
  for (int64_t row = 0; row < kRows; ++row) ASSERT_TRUE(text.Append("t" + std::to_string(row)).ok());
  const auto table =
      arrow::Table::Make(arrow::schema({arrow::field("x", arrow::int32()), arrow::field("y", arrow::int32()),
                                        arrow::field("gaps", arrow::int32()), arrow::field("text", arrow::utf8())}),
                         {Int32Of(kRows, number), Int32Of(kRows, number), Int32Of(kRows, gaps), *text.Finish()});
  folder_.Write("a.parquet", ParquetOf(table, 3000));
  auto run = folder_.Run(
      R"([{"name": "pair", "dtype": "int32", "shape": [2], "columns": ["x", "y"]}, {"name": "wide", "dtype": "float64", "columns": ["x"]},
          {"name": "gaps", "dtype": "int32", "default": [-1]}, {"name": "text", "dtype": "string"}])",
      R"([{"shuffle": {"bufferSize": 700, "seed": 5}}, {"batch": {"size": 100}}])");
  std::vector<bool> seen(kRows);
  int64_t in_order = 0;
  int32_t before = -1;
  for (const Delivered& batch : run.Epoch()) {
    const auto pairs = batch.Values<int32_t>(0);
    const auto wide = batch.Values<double>(1);
    const auto with_gaps = batch.Values<int32_t>(2);
    std::string all_text;
    for (size_t i = 0; i < wide.size(); ++i) {
      const int32_t row = pairs[2 * i];
      ASSERT_FALSE(seen.at(static_cast<size_t>(row)));
      seen[static_cast<size_t>(row)] = true;
      ASSERT_EQ(pairs[2 * i + 1], row);
      ASSERT_EQ(wide[i], row);
      ASSERT_EQ(with_gaps[i], gaps(row).value_or(-1));
      all_text += "t" + std::to_string(row);
      in_order += row == before + 1 ? 1 : 0;
      before = row;
    }
    ASSERT_EQ(TextOf(batch, 3), all_text);
  }
  EXPECT_TRUE(run.status().ok()) << run.status().ToString();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kRows);
  EXPECT_LT(in_order, kRows / 100);
}

// ---- Files

TEST_F(ParquetTest, FilesWithoutRowsAreRead) {
  folder_.Write("a.parquet", ParquetOf(TableOf({{"x", arrow::float32(), "[]"}})));
  folder_.Write("b.parquet", ParquetOf(TableOf({{"x", arrow::float32(), "[1, 2]"}})));
  folder_.Write("c.parquet", ParquetOf(TableOf({{"x", arrow::float64(), "[]"}})));
  folder_.Write("d.parquet", ParquetOf(TableOf({{"x", arrow::float64(), "[3]"}})));
  EXPECT_THAT(All(R"([{"name": "x"}])").Values<float>(), ElementsAre(1, 2, 3));
}

TEST_F(ParquetTest, EveryPositionCanBeSought) {
  Write({{"x", arrow::int64(), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]"},
         {"s", arrow::utf8(), R"(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"])"}},
        5, Plain().data_pagesize(1)->write_batch_size(1)->build());
  for (int skip = 0; skip < 15; ++skip) {
    auto run = folder_.Run(R"([{"name": "x", "dtype": "int64"}, {"name": "s", "dtype": "string"}])",
                           R"([{"skip": {"count": )" + std::to_string(skip) + R"(}}, {"batch": {"size": 20}}])");
    const auto all = run.Epoch();
    std::vector<int64_t> numbers;
    std::string text;
    for (int64_t x = skip; x < 13; ++x) {
      numbers.push_back(x);
      text += std::to_string(x);
    }
    if (numbers.empty()) {
      EXPECT_THAT(all, IsEmpty());
      continue;
    }
    ASSERT_EQ(all.size(), 1u) << run.status().ToString();
    EXPECT_EQ(all[0].Values<int64_t>(0), numbers);
    EXPECT_EQ(TextOf(all[0], 1), text);
  }
}

}  // namespace
}  // namespace headrace::side
