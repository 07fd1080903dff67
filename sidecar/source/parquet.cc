// A Parquet file is row groups, each of them a chunk of bytes for each column; its footer says where they lie. Columns
// of one number a row are read by NumberColumn, the others by Arrow's own readers, side by side.
#include "sidecar/source/parquet.h"

#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/size_statistics.h>

#include <algorithm>
#include <limits>

#include "sidecar/source/arrow_columns.h"
#include "sidecar/source/arrow_file.h"
#include "sidecar/source/parquet_leaves.h"
#include "sidecar/source/parquet_numbers.h"

namespace headrace::side {
namespace {

// A block is made of as many rows as these hold: few enough to stay in the processor's caches on their way.
constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kMostBlockRows = 64 << 10;
// The chunks of a row group of a mounted volume are read whole, unless they take more: then by pieces.
constexpr int64_t kWholeGroupBytes = 16 << 20;
constexpr int64_t kPieceBytes = 1 << 20;
// Of remote files, the next row group is fetched while one is read, if both together take no more.
constexpr int64_t kFetchedBytes = 128 << 20;
constexpr int64_t kHoleBytes = 64 << 10;
constexpr int64_t kRangeBytes = 64 << 20;

template <typename Fn>
arrow::Status CaughtParquet(Fn fn) {
  return Caught([&]() -> arrow::Status {
    try {
      return fn();
    } catch (const parquet::ParquetStatusException& e) {
      return e.status();
    }
  });
}

// A row group that is being read.
struct Group {
  int index = 0;
  int64_t rows = 0;
  int64_t next = 0;                                    // the row that the next block begins with
  int64_t block_rows = 0;                              // of a block
  std::vector<std::unique_ptr<NumberColumn>> numbers;  // by chosen column; null: Arrow reads it
  std::unique_ptr<arrow::RecordBatchReader> batches;   // null: there are none such
  std::shared_ptr<arrow::RecordBatch> batch;           // what is left of the last
};

class ParquetFile : public ColumnsFile {
 public:
  ParquetFile(std::shared_ptr<ArrowFile> file, const std::string* path) : file_(std::move(file)), path_(*path) {}

  Status Open() {
    return AsOurs(-1, CaughtParquet([&]() -> arrow::Status {
      ARROW_ASSIGN_OR_RAISE(const int64_t size, file_->GetSize());
      // Nothing of the footer has more entries than it has bytes.
      properties_.set_thrift_container_size_limit(
          static_cast<int32_t>(std::clamp<int64_t>(size, 1, parquet::kDefaultThriftContainerSizeLimit)));
      properties_.set_page_checksum_verification(true);
      RETURN_NOT_OK(OpenReader(nullptr));
      metadata_ = reader_->parquet_reader()->metadata();
      std::shared_ptr<arrow::Schema> schema;
      RETURN_NOT_OK(reader_->GetSchema(&schema));
      all_ = ColumnsOf(*schema);
      for (const SchemaColumn& column : all_) columns_.push_back(column.column);
      for (int group = 0; group < metadata_->num_row_groups(); ++group) {
        const int64_t rows = metadata_->RowGroup(group)->num_rows();
        if (rows < 0) return arrow::Status::Invalid("row group ", group, " has ", rows, " rows");
        group_rows_.push_back(rows);
      }
      return arrow::Status::OK();
    }));
  }

  const std::vector<FileColumn>& columns() const override { return columns_; }

  Status Choose(const std::vector<size_t>& columns) override {
    return AsOurs(-1, CaughtParquet([&] {
      std::vector<SchemaColumn> chosen;
      for (const size_t column : columns) chosen.push_back(all_[column]);
      leaves_ = LeavesOf(*metadata_->schema(), reader_->manifest(), chosen);
      return ReopenForChosen();
    }));
  }

  Result<std::unique_ptr<ColumnsBlock>> Next() override {
    while (group_ == nullptr) {
      if (next_group_ == group_rows_.size()) return std::unique_ptr<ColumnsBlock>();
      if (group_rows_[next_group_] == 0) {
        ++next_group_;
      } else {
        RETURN_IF_ERROR(OpenGroup(0));
      }
    }
    auto block = std::make_unique<ColumnsBlock>();
    RETURN_IF_ERROR(AsOurs(group_->index, CaughtParquet([&] { return ReadBlock(block.get()); })));
    if (group_->next == group_->rows) group_.reset();
    return block;
  }

  Result<uint64_t> PassOver(uint64_t rows) override {
    uint64_t passed = 0;
    while (passed < rows) {
      const bool fresh = group_ == nullptr;
      if (fresh && next_group_ == group_rows_.size()) break;
      const int64_t left = fresh ? group_rows_[next_group_] : group_->rows - group_->next;
      const auto here = static_cast<int64_t>(std::min<uint64_t>(rows - passed, static_cast<uint64_t>(left)));
      if (here == left) {  // all of it: it need not even be opened
        next_group_ += fresh ? 1 : 0;
        group_.reset();
      } else if (fresh) {
        RETURN_IF_ERROR(OpenGroup(here));
      } else {
        RETURN_IF_ERROR(AsOurs(group_->index, CaughtParquet([&] { return SkipRows(here); })));
      }
      passed += static_cast<uint64_t>(here);
    }
    return passed;
  }

 private:
  // `group` is where it happened; -1: nowhere in particular.
  Status AsOurs(int64_t group, const arrow::Status& status) const {
    if (status.ok()) return {};
    return FromArrow(status, path_ + ": " + (group < 0 ? "" : "row group " + std::to_string(group) + ": "));
  }

  arrow::Status OpenReader(std::shared_ptr<parquet::FileMetaData> metadata) {
    properties_.set_memory_pool(ArrowMemory());
    parquet::arrow::FileReaderBuilder builder;
    RETURN_NOT_OK(builder.Open(file_, properties_, std::move(metadata)));
    parquet::ArrowReaderProperties arrow_properties(false);
    arrow_properties.set_pre_buffer(false);
    builder.memory_pool(ArrowMemory());
    builder.properties(arrow_properties);
    return builder.Build(&reader_);
  }

  // Row groups whose chunks are large are read by pieces, which the reader must know when it opens the file.
  arrow::Status ReopenForChosen() {
    int64_t most = 0;
    for (int group = 0; group < metadata_->num_row_groups(); ++group) most = std::max(most, ChunkBytes(group));
    if (file_->fetches() || most <= kWholeGroupBytes) return arrow::Status::OK();
    properties_.enable_buffered_stream();
    properties_.set_buffer_size(
        std::max<int64_t>(kWholeGroupBytes / static_cast<int64_t>(std::max<size_t>(leaves_.all.size(), 1)), 16 << 10));
    properties_.set_buffer_size(std::min(properties_.buffer_size(), kPieceBytes));
    return OpenReader(metadata_);
  }

  int64_t ChunkBytes(int group) const {
    const auto row_group = metadata_->RowGroup(group);
    int64_t bytes = 0;
    for (const int leaf : leaves_.all)
      bytes += std::max<int64_t>(row_group->ColumnChunk(leaf)->total_compressed_size(), 0);
    return bytes;
  }

  // Goes to the next row group, and to its row `first`.
  Status OpenGroup(int64_t first) {
    const size_t index = next_group_++;
    return AsOurs(static_cast<int64_t>(index),
                  CaughtParquet([&] { return OpenGroup(static_cast<int>(index), first); }));
  }

  arrow::Status OpenGroup(int index, int64_t first) {
    auto group = std::make_unique<Group>();
    group->index = index;
    group->rows = group_rows_[static_cast<size_t>(index)];
    const auto row_group = metadata_->RowGroup(index);
    RETURN_NOT_OK(FetchFrom(group->index));
    group->block_rows = BlockRows(*row_group);
    const auto reader = reader_->parquet_reader()->RowGroup(group->index);
    for (const ParquetLeaves::Column& column : leaves_.columns) {
      const bool number = column.number >= 0;
      group->numbers.push_back(number ? NumberColumn::Make(reader->Column(column.number), *column.type) : nullptr);
    }
    if (!leaves_.by_arrow.empty()) {
      reader_->set_batch_size(group->block_rows);
      ARROW_ASSIGN_OR_RAISE(group->batches, reader_->GetRecordBatchReader({group->index}, leaves_.by_arrow));
    }
    group_ = std::move(group);
    return first > 0 ? SkipRows(first) : arrow::Status::OK();
  }

  // Fetches the group, if that was not done before, and the next one.
  arrow::Status FetchFrom(int group) {
    if (!file_->fetches()) return arrow::Status::OK();
    fetched_.erase(std::remove_if(fetched_.begin(), fetched_.end(), [&](const auto& f) { return f.first < group; }),
                   fetched_.end());
    int64_t bytes = 0;
    for (int next = group; next < std::min(group + 2, metadata_->num_row_groups()); ++next) {
      bytes += ChunkBytes(next);
      if (next > group && bytes > kFetchedBytes) break;
      if (std::any_of(fetched_.begin(), fetched_.end(), [&](const auto& f) { return f.first == next; })) continue;
      ARROW_ASSIGN_OR_RAISE(const auto ranges,
                            reader_->parquet_reader()->GetReadRanges({next}, leaves_.all, kHoleBytes, kRangeBytes));
      ARROW_ASSIGN_OR_RAISE(const int64_t size, file_->GetSize());
      for (const arrow::io::ReadRange& range : ranges) {
        if (range.offset < 0 || range.length < 0 || range.offset > size || range.length > size - range.offset) {
          return arrow::Status::Invalid("a column lies at byte ", range.offset, ", beyond the file's end");
        }
      }
      fetched_.emplace_back(next, file_->Fetch(ranges));
    }
    return arrow::Status::OK();
  }

  // Even shares of the row group, each of about kBlockBytes.
  int64_t BlockRows(const parquet::RowGroupMetaData& row_group) const {
    double row_bytes = 0;
    for (const int leaf : leaves_.all) {
      const auto chunk = row_group.ColumnChunk(leaf);
      auto bytes = static_cast<double>(std::max<int64_t>(chunk->total_uncompressed_size(), 0));
      // Values that are stored once take their length in each row.
      if (chunk->type() < parquet::Type::BYTE_ARRAY) {
        bytes = std::max(bytes, static_cast<double>(chunk->num_values()) * parquet::GetTypeByteSize(chunk->type()));
      }
      const auto sizes = chunk->size_statistics();
      if (sizes != nullptr && sizes->unencoded_byte_array_data_bytes.has_value()) {
        bytes = std::max(bytes, static_cast<double>(*sizes->unencoded_byte_array_data_bytes));
      } else if (chunk->type() == parquet::Type::BYTE_ARRAY && chunk->has_dictionary_page()) {
        bytes *= kOftenRepeated;
      }
      row_bytes += bytes / static_cast<double>(row_group.num_rows());
    }
    const auto most = static_cast<int64_t>(
        std::clamp(static_cast<double>(kBlockBytes) / std::max(row_bytes, 1.0), 1.0, double{kMostBlockRows}));
    const int64_t blocks = (row_group.num_rows() - 1) / most + 1;
    return (row_group.num_rows() - 1) / blocks + 1;
  }

  arrow::Status SkipRows(int64_t rows) {
    for (const auto& column : group_->numbers) {
      if (column != nullptr) column->Skip(rows);
    }
    group_->next += rows;
    while (rows > 0 && group_->batches != nullptr) {
      RETURN_NOT_OK(HaveBatch());
      const int64_t here = std::min(rows, group_->batch->num_rows());
      group_->batch = group_->batch->Slice(here);
      rows -= here;
    }
    return arrow::Status::OK();
  }

  // Makes group_->batch hold rows.
  arrow::Status HaveBatch() {
    while (group_->batch == nullptr || group_->batch->num_rows() == 0) {
      RETURN_NOT_OK(group_->batches->ReadNext(&group_->batch));
      if (group_->batch == nullptr) {
        return arrow::Status::Invalid("a column has fewer values than the row group has rows");
      }
    }
    return arrow::Status::OK();
  }

  arrow::Status ReadBlock(ColumnsBlock* block) {
    block->origin = {&path_, "row group " + std::to_string(group_->index), group_->next};
    block->rows = std::min(group_->block_rows, group_->rows - group_->next);
    std::shared_ptr<arrow::RecordBatch> batch;
    if (group_->batches != nullptr) {
      RETURN_NOT_OK(HaveBatch());
      block->rows = std::min(block->rows, group_->batch->num_rows());
      batch = group_->batch->Slice(0, block->rows);
      group_->batch = group_->batch->Slice(block->rows);
    }
    for (size_t c = 0; c < leaves_.columns.size(); ++c) {
      if (group_->numbers[c] != nullptr) {
        group_->numbers[c]->Read(block->rows, &levels_, block);
      } else {
        RETURN_NOT_OK(AddColumn(batch->column(leaves_.columns[c].batch_column), leaves_.columns[c].path_within, block));
      }
    }
    group_->next += block->rows;
    return arrow::Status::OK();
  }

  static constexpr double kOftenRepeated = 16;

  const std::shared_ptr<ArrowFile> file_;
  const std::string& path_;
  parquet::ReaderProperties properties_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<SchemaColumn> all_;
  std::vector<FileColumn> columns_;  // of all_
  ParquetLeaves leaves_;
  std::vector<int64_t> group_rows_;
  std::vector<std::pair<int, std::unique_ptr<FetchedRanges>>> fetched_;  // by row group
  size_t next_group_ = 0;
  std::unique_ptr<Group> group_;
  std::vector<int16_t> levels_;
};

}  // namespace

Result<std::unique_ptr<ColumnsFile>> OpenParquet(std::unique_ptr<StoredFile> file, const std::string* path) {
  auto opened = std::make_unique<ParquetFile>(MakeArrowFile(std::move(file)), path);
  RETURN_IF_ERROR(opened->Open());
  return std::unique_ptr<ColumnsFile>(std::move(opened));
}

}  // namespace headrace::side
