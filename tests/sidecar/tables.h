// Files of tables as Apache Arrow's own writers put them, for the tests of their readers.
#pragma once

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/json/from_string.h>
#include <arrow/util/compression.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {

struct TestColumn {
  std::string name;
  std::shared_ptr<arrow::DataType> type;
  std::string json;  // the values of all rows
  bool nullable = true;
};

inline std::shared_ptr<arrow::Table> TableOf(const std::vector<TestColumn>& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const TestColumn& column : columns) {
    const auto array = arrow::json::ArrayFromJSONString(column.type, column.json);
    EXPECT_TRUE(array.ok()) << column.name << ": " << array.status().ToString();
    fields.push_back(arrow::field(column.name, column.type, column.nullable));
    arrays.push_back(array.ValueOrDie());
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

// Row groups of that many rows each.
inline std::string ParquetOf(
    const std::shared_ptr<arrow::Table>& table, int64_t group_rows = 1 << 20,
    const std::shared_ptr<parquet::WriterProperties>& properties = parquet::default_writer_properties()) {
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto stored = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  const arrow::Status written =
      parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, group_rows, properties, stored);
  EXPECT_TRUE(written.ok()) << written.ToString();
  return sink->Finish().ValueOrDie()->ToString();
}

enum class IpcFormat { kFile, kStream };

// Record batches of at most that many rows each.
inline std::string IpcOf(const std::shared_ptr<arrow::Table>& table, IpcFormat format, int64_t batch_rows = 1 << 20,
                         const arrow::ipc::IpcWriteOptions& options = arrow::ipc::IpcWriteOptions::Defaults()) {
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto writer = (format == IpcFormat::kFile ? arrow::ipc::MakeFileWriter(sink, table->schema(), options)
                                                  : arrow::ipc::MakeStreamWriter(sink, table->schema(), options))
                          .ValueOrDie();
  const arrow::Status written = writer->WriteTable(*table, batch_rows);
  EXPECT_TRUE(written.ok()) << written.ToString();
  EXPECT_TRUE(writer->Close().ok());
  return sink->Finish().ValueOrDie()->ToString();
}

// A folder of files of one format, read by the whole pipeline.
class TableFolder {
 public:
  explicit TableFolder(std::string format) : format_(std::move(format)) {}

  std::string Write(const std::string& name, const std::string& bytes) const { return folder_.Write(name, bytes); }
  // All files in lexical order; `features` and `pipeline` are JSON lists.
  PipelineRun Run(const std::string& features, const std::string& pipeline = R"([{"batch": {"size": 100}}])",
                  Topology topology = {}, const std::string& files = "") const {
    return PipelineRun(R"({"source": {"files": {"format": ")" + format_ + R"(", "paths": ["*"])" + files +
                           R"(}}, "features": )" + features + R"(, "pipeline": )" + pipeline + "}",
                       topology, folder_.path());
  }
  // The batch of all rows, of which there are a hundred at most.
  Delivered All(const std::string& features) const {
    auto run = Run(features);
    std::vector<Delivered> all = run.Epoch();
    EXPECT_TRUE(run.status().ok()) << run.status().ToString();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Delivered() : all[0];
  }
  // What a run that must fail says.
  std::string ErrorOf(const std::string& features) const {
    auto run = Run(features);
    run.Epoch();
    EXPECT_FALSE(run.status().ok());
    return run.status().ToString();
  }
  const std::string& path() const { return folder_.path(); }

 private:
  const Folder folder_;
  const std::string format_;
};

// For tests of one Parquet file.
class OneParquetFile : public testing::Test {
 protected:
  void Write(
      const std::vector<TestColumn>& columns, int64_t group_rows = 1 << 20,
      const std::shared_ptr<parquet::WriterProperties>& properties = parquet::default_writer_properties()) const {
    folder_.Write("a.parquet", ParquetOf(TableOf(columns), group_rows, properties));
  }
  Delivered All(const std::string& features) const { return folder_.All(features); }

  const TableFolder folder_{"Parquet"};
};

inline std::string TextOf(const Delivered& delivered, size_t component) {
  return {delivered.bytes[component].begin(), delivered.bytes[component].end()};
}

}  // namespace headrace::side
