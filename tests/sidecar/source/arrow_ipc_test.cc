// Arrow's IPC files and streams as its own writers put them, with values written down here.
#include "sidecar/source/arrow_ipc.h"

#include <gmock/gmock.h>

#include "tests/sidecar/tables.h"

namespace headrace::side {
namespace {

using arrow::ipc::IpcWriteOptions;
using testing::ElementsAre;
using testing::HasSubstr;

IpcWriteOptions Compressed(arrow::Compression::type compression) {
  IpcWriteOptions options;
  options.codec = arrow::util::Codec::Create(compression).ValueOrDie();
  return options;
}

struct Storage {
  const char* name;
  IpcFormat format;
  int64_t batch_rows;
  IpcWriteOptions options;
};

class ArrowStorage : public testing::TestWithParam<Storage> {};

INSTANTIATE_TEST_SUITE_P(
    All, ArrowStorage,
    testing::Values(Storage{"File", IpcFormat::kFile, 100, {}}, Storage{"FileOfBatches", IpcFormat::kFile, 3, {}},
                    Storage{"FileLz4", IpcFormat::kFile, 3, Compressed(arrow::Compression::LZ4_FRAME)},
                    Storage{"Stream", IpcFormat::kStream, 100, {}},
                    Storage{"StreamOfBatches", IpcFormat::kStream, 1, {}},
                    Storage{"StreamZstd", IpcFormat::kStream, 3, Compressed(arrow::Compression::ZSTD)}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(ArrowStorage, HoldsTheSameRows) {
  const TableFolder folder("Arrow");
  const auto table =
      TableOf({{"unused", arrow::utf8(), R"(["x", "x", "x", "x", "x"])"},
               {"i", arrow::int64(), "[1, -2, null, 4, 5]"},
               {"f", arrow::float32(), "[0.5, 1.5, 2.5, 3.5, 4.5]"},
               {"b", arrow::boolean(), "[true, false, null, true, true]"},
               {"d", arrow::decimal128(9, 1), R"(["0.5", "1.5", "-2.5", "3.5", "4.5"])"},
               {"s", arrow::utf8(), R"(["a", "bc", "", "def", "a"])"},
               {"view", arrow::utf8_view(), R"(["short", "longer than twelve bytes", "", "x", "y"])"},
               {"words", arrow::dictionary(arrow::int16(), arrow::utf8()), R"(["no", "yes", "no", "no", "yes"])"},
               {"codes", arrow::dictionary(arrow::int8(), arrow::int32()), "[500, 600, 500, null, 600]"},
               {"l", arrow::large_list(arrow::int32()), "[[1], [], [2, 3], null, [4]]"},
               {"v", arrow::fixed_size_list(arrow::int8(), 2), "[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]"},
               {"in", arrow::struct_({arrow::field("x", arrow::uint8())}),
                R"([{"x": 1}, {"x": 2}, null, {"x": 4}, {"x": 5}])"}});
  folder.Write("a.arrow", IpcOf(table, GetParam().format, GetParam().batch_rows, GetParam().options));
  const Delivered all =
      folder.All(R"([{"name": "s", "dtype": "string"}, {"name": "i", "dtype": "int32", "default": [-9]},
      {"name": "x", "shape": [2], "columns": ["f", "d"]}, {"name": "b", "dtype": "bool", "default": [1]},
      {"name": "view", "dtype": "string"}, {"name": "words", "dtype": "string"},
      {"name": "codes", "dtype": "int32", "default": [-1]}, {"name": "l", "dtype": "int32", "shape": [-1]},
      {"name": "v", "dtype": "int8", "shape": [2]}, {"name": "in.x", "dtype": "uint8", "default": [0]}])");
  EXPECT_EQ(TextOf(all, 0), "abcdefa");
  EXPECT_THAT(all.Values<int32_t>(1), ElementsAre(1, -2, -9, 4, 5));
  EXPECT_THAT(all.Values<float>(2), ElementsAre(0.5, 0.5, 1.5, 1.5, 2.5, -2.5, 3.5, 3.5, 4.5, 4.5));
  EXPECT_THAT(all.Values<uint8_t>(3), ElementsAre(1, 0, 1, 1, 1));
  EXPECT_EQ(TextOf(all, 4), "shortlonger than twelve bytesxy");
  EXPECT_EQ(TextOf(all, 5), "noyesnonoyes");
  EXPECT_THAT(all.Values<int32_t>(6), ElementsAre(500, 600, 500, -1, 600));
  EXPECT_THAT(all.Values<int32_t>(7), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(all.splits[7], ElementsAre(0, 1, 1, 3, 3, 4));
  EXPECT_THAT(all.Values<int8_t>(8), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(all.Values<uint8_t>(9), ElementsAre(1, 2, 0, 4, 5));
}

TEST_P(ArrowStorage, EveryPositionCanBeSought) {
  const TableFolder folder("Arrow");
  folder.Write("a.arrow",
               IpcOf(TableOf({{"x", arrow::int64(), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"},
                              {"s", arrow::utf8(), R"(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"])"}}),
                     GetParam().format, GetParam().batch_rows, GetParam().options));
  for (size_t skip = 0; skip < 12; ++skip) {
    auto run = folder.Run("[]", R"([{"skip": {"count": )" + std::to_string(skip) + R"(}}, {"batch": {"size": 20}}])");
    const auto all = run.Epoch();
    ASSERT_TRUE(run.status().ok()) << run.status().ToString();
    ASSERT_EQ(all.size(), skip < 10 ? 1u : 0u);
    if (all.empty()) continue;
    EXPECT_EQ(TextOf(all[0], 1), std::string("0123456789").substr(skip));
    EXPECT_EQ(all[0].Values<int64_t>(0).front(), static_cast<int64_t>(skip));
  }
}

class Arrow : public testing::Test {
 protected:
  const TableFolder folder_{"Arrow"};
};

// Rows of 1,000 bytes in two columns.
std::shared_ptr<arrow::Table> Wide(int64_t rows) {
  arrow::Int64Builder numbers;
  arrow::FixedSizeBinaryBuilder bytes(arrow::fixed_size_binary(992));
  for (int64_t row = 0; row < rows; ++row) {
    EXPECT_TRUE(numbers.Append(row).ok());
    EXPECT_TRUE(bytes.Append(std::string(992, 'b')).ok());
  }
  return arrow::Table::Make(
      arrow::schema({arrow::field("n", arrow::int64()), arrow::field("bytes", arrow::fixed_size_binary(992))}),
      {numbers.Finish().ValueOrDie(), bytes.Finish().ValueOrDie()});
}

TEST_F(Arrow, OfFilesTheColumnsThatAreWantedAreRead) {
  const std::string bytes = IpcOf(Wide(2000), IpcFormat::kFile, 500);
  folder_.Write("a.arrow", bytes);
  auto run = folder_.Run(R"([{"name": "n", "dtype": "int64"}])");
  const std::vector<int64_t> values = run.Values<int64_t>();
  ASSERT_EQ(values.size(), 2000u) << run.status().ToString();
  EXPECT_EQ(values[1999], 1999);
  EXPECT_LT(run.pipeline().bytes_read(), bytes.size() / 20);
}

TEST_F(Arrow, OfFilesBatchesThatArePassedOverAreNotRead) {
  const std::string bytes = IpcOf(Wide(2000), IpcFormat::kFile, 100);
  folder_.Write("a.arrow", bytes);
  auto run = folder_.Run("[]", R"([{"skip": {"count": 1950}}, {"batch": {"size": 100}}])");
  EXPECT_EQ(run.Values<int64_t>().size(), 50u) << run.status().ToString();
  EXPECT_LT(run.pipeline().bytes_read(), bytes.size() / 8);
}

TEST_F(Arrow, StreamsMayBeCompressedAsAWhole) {
  const auto table = TableOf({{"x", arrow::int32(), "[1, 2, 3]"}});
  folder_.Write("a.arrows.gz", GzipOf(IpcOf(table, IpcFormat::kStream)));
  folder_.Write("b.arrow.gz", GzipOf(IpcOf(table, IpcFormat::kFile, 2)));
  EXPECT_THAT(folder_.All("[]").Values<int32_t>(), ElementsAre(1, 2, 3, 1, 2, 3));
}

// A stream may replace its dictionaries, or add to them.
TEST_F(Arrow, DictionariesOfStreamsMayChange) {
  const auto type = arrow::dictionary(arrow::int8(), arrow::utf8());
  const auto schema = arrow::schema({arrow::field("w", type)});
  for (const bool deltas : {false, true}) {
    IpcWriteOptions options;
    options.emit_dictionary_deltas = deltas;
    const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
    const auto writer = arrow::ipc::MakeStreamWriter(sink, schema, options).ValueOrDie();
    for (const char* words : {R"(["a", "b"])", R"(["a", "b", "c"])", R"(["x", "y", "z"])"}) {
      const auto array = arrow::json::DictArrayFromJSONString(type, "[1, 0]", words).ValueOrDie();
      ASSERT_TRUE(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, 2, {array})).ok());
    }
    ASSERT_TRUE(writer->Close().ok());
    folder_.Write("a.arrows", sink->Finish().ValueOrDie()->ToString());
    EXPECT_EQ(TextOf(folder_.All("[]"), 0), "babayx") << deltas;
  }
}

TEST_F(Arrow, FilesWithoutRowsAreRead) {
  const auto empty = TableOf({{"x", arrow::float32(), "[]"}});
  folder_.Write("a.arrow", IpcOf(empty, IpcFormat::kFile));
  folder_.Write("b.arrow", IpcOf(TableOf({{"x", arrow::float32(), "[1, 2]"}}), IpcFormat::kFile));
  folder_.Write("c.arrows", IpcOf(empty, IpcFormat::kStream));
  folder_.Write("d.arrows", IpcOf(TableOf({{"x", arrow::float64(), "[3]"}}), IpcFormat::kStream));
  EXPECT_THAT(folder_.All(R"([{"name": "x"}])").Values<float>(), ElementsAre(1, 2, 3));
}

TEST_F(Arrow, FilesOfAnotherKindAreCorrupt) {
  for (const std::string& bytes :
       {std::string(), std::string("a,b\n1,2\n"), std::string(5000, 'x'), std::string("ARROW1")}) {
    folder_.Write("a.arrow", bytes);
    const std::string error = folder_.ErrorOf(R"([{"name": "x"}])");
    EXPECT_THAT(error, HasSubstr("Corrupt: " + folder_.path() + "/a.arrow: "));
    EXPECT_THAT(error, HasSubstr("; the file is damaged, or of another format"));
  }
}

TEST_F(Arrow, CutFilesAreCorrupt) {
  const auto table = TableOf({{"x", arrow::float32(), "[1, 2, 3]"}});
  const std::string file = IpcOf(table, IpcFormat::kFile);
  for (size_t size = 0; size < file.size(); size += 13) {
    folder_.Write("a.arrow", file.substr(0, size));
    EXPECT_THAT(folder_.ErrorOf(R"([{"name": "x"}])"), HasSubstr("Corrupt: ")) << size;
  }
  // A stream may end behind any batch; but not within one.
  const std::string stream = IpcOf(table, IpcFormat::kStream);
  for (size_t size = 0; size + 72 < stream.size(); size += 13) {
    folder_.Write("a.arrow", stream.substr(0, size));
    auto run = folder_.Run(R"([{"name": "x"}])");
    const auto all = run.Epoch();
    EXPECT_TRUE(all.empty()) << size;
  }
}

// Found by the fuzzer: Arrow writes and reads them, and crashes where it computes with them.
TEST_F(Arrow, DecimalsOfAScaleBeyondTheirTypesAreCorrupt) {
  for (const int32_t scale : {100, -100}) {
    arrow::Decimal128Builder decimals(arrow::decimal128(9, scale));
    ASSERT_TRUE(decimals.Append(arrow::Decimal128(5)).ok());
    const auto table =
        arrow::Table::Make(arrow::schema({arrow::field("d", decimals.type())}), {decimals.Finish().ValueOrDie()});
    folder_.Write("a.arrow", IpcOf(table, IpcFormat::kFile));
    const std::string error = folder_.ErrorOf(R"([{"name": "d"}])");
    EXPECT_THAT(error, HasSubstr("Corrupt: " + folder_.path() + "/a.arrow: "));
    EXPECT_THAT(error, HasSubstr("decimals of scale " + std::to_string(scale)));
  }
}

// Offsets that a reader would follow out of the file.
TEST_F(Arrow, WrongOffsetsAreFound) {
  std::string bytes = IpcOf(TableOf({{"s", arrow::utf8(), R"(["abc", "defgh", "ij"])"}}), IpcFormat::kFile);
  const std::string offsets = LittleEndian(0, 4) + LittleEndian(3, 4) + LittleEndian(8, 4) + LittleEndian(10, 4);
  const size_t at = bytes.find(offsets);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 4, 4, LittleEndian(1000000, 4));
  folder_.Write("a.arrow", bytes);
  EXPECT_THAT(folder_.ErrorOf("[]"), HasSubstr("a.arrow: record batch 0: offsets of a column do not rise"));
}

TEST_F(Arrow, EntriesThatADictionaryLacksAreFound) {
  std::string bytes = IpcOf(
      TableOf({{"w", arrow::dictionary(arrow::int32(), arrow::utf8()), R"(["a", "b", "c", "a"])"}}), IpcFormat::kFile);
  const std::string entries = LittleEndian(0, 4) + LittleEndian(1, 4) + LittleEndian(2, 4) + LittleEndian(0, 4);
  const size_t at = bytes.rfind(entries);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 8, 4, LittleEndian(3, 4));
  folder_.Write("a.arrow", bytes);
  EXPECT_THAT(folder_.ErrorOf("[]"), HasSubstr("a.arrow: record batch 0: entry 3 of a dictionary of 3"));
}

}  // namespace
}  // namespace headrace::side
