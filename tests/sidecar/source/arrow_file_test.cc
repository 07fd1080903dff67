#include "sidecar/source/arrow_file.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include "sidecar/source/arrow.h"
#include "tests/sidecar/files.h"

namespace headrace::side {
namespace {

using testing::HasSubstr;

// Rows {x: int64} with the given values, as Arrow's own writer puts them.
std::string ParquetOf(const std::vector<int64_t>& values) {
  arrow::Int64Builder builder;
  EXPECT_TRUE(builder.AppendValues(values).ok());
  const auto table =
      arrow::Table::Make(arrow::schema({arrow::field("x", arrow::int64())}), {builder.Finish().ValueOrDie()});
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink).ok());
  return sink->Finish().ValueOrDie()->ToString();
}

// Column x of a Parquet file; the reader's error with what FromArrow makes of it.
Result<std::vector<int64_t>> ReadX(std::unique_ptr<StoredFile> file) {
  auto reader = parquet::arrow::OpenFile(MakeArrowFile(std::move(file)), arrow::default_memory_pool());
  if (!reader.ok()) return FromArrow(reader.status(), "a: ");
  const auto table = (*reader)->ReadTable();
  if (!table.ok()) return FromArrow(table.status(), "a: ");
  std::vector<int64_t> values;
  for (const auto& chunk : (*table)->GetColumnByName("x")->chunks()) {
    const auto& column = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < column.length(); ++i) values.push_back(column.Value(i));
  }
  return values;
}

TEST(ArrowFile, ReadsParquetFromStorage) {
  const Folder folder;
  std::atomic<uint64_t> bytes_read{0};
  auto file = OpenLocal(folder.Write("a.parquet", ParquetOf({3, 1, 4, 1, 5})), &bytes_read);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const auto values = ReadX(std::move(*file));
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  EXPECT_EQ(*values, (std::vector<int64_t>{3, 1, 4, 1, 5}));
  EXPECT_GT(bytes_read, 0u);
}

TEST(ArrowFile, DamageIsCorrupt) {
  const Folder folder;
  std::atomic<uint64_t> bytes_read{0};
  std::string bytes = ParquetOf({1, 2, 3});
  bytes.resize(bytes.size() - 3);  // the magic at the end
  auto file = OpenLocal(folder.Write("a.parquet", bytes), &bytes_read);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ReadX(std::move(*file)).status().code(), Code::kCorrupt);
}

// Fails each read.
class FailingFile : public StoredFile {
 public:
  Result<size_t> ReadAt(uint64_t, std::span<uint8_t>) override { return Unavailable("b/x: at byte 7: gone"); }
  uint64_t size() const override { return 1000; }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_ = "b/x";
};

TEST(ArrowFile, ErrorsOfStorageComeBackAsTheyWere) {
  const Status status = ReadX(std::make_unique<FailingFile>()).status();
  EXPECT_EQ(status.ToString(), "Unavailable: b/x: at byte 7: gone");
}

TEST(Arrow, ModuleOpensWhereItWasBuilt) {
  const Result<std::string> version = ArrowVersion();
  ASSERT_TRUE(version.ok()) << version.status().ToString();
  EXPECT_EQ(*version, arrow::GetBuildInfo().version_string);
}

}  // namespace
}  // namespace headrace::side
