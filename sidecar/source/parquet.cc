// A Parquet file is row groups, each of them a chunk of bytes for each column; its footer says where they lie. Columns
// of one number a row are read by NumberColumn, the others by Arrow's own readers, side by side.
#include "sidecar/source/parquet.h"

#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <limits>

#include "sidecar/source/arrow_columns.h"
#include "sidecar/source/arrow_file.h"
#include "sidecar/source/parquet_group.h"
#include "sidecar/source/parquet_leaves.h"

namespace headrace::side {
namespace {

// The chunks of a row group of a mounted volume are read whole, unless they take more: then by pieces.
constexpr int64_t kWholeGroupBytes = 16 << 20;
constexpr int64_t kPieceBytes = 1 << 20;
// Of remote files, the next row group is fetched while one is read, if both together take no more.
constexpr int64_t kFetchedBytes = 128 << 20;
constexpr int64_t kHoleBytes = 64 << 10;
constexpr int64_t kRangeBytes = 64 << 20;

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
    block->origin = {&path_, "row group " + std::to_string(group_->index()), group_->next()};
    RETURN_IF_ERROR(AsOurs(group_->index(), group_->Read(block.get())));
    if (group_->left() == 0) group_.reset();
    return block;
  }

  Result<uint64_t> PassOver(uint64_t rows) override {
    uint64_t passed = 0;
    while (passed < rows) {
      const bool fresh = group_ == nullptr;
      if (fresh && next_group_ == group_rows_.size()) break;
      const int64_t left = fresh ? group_rows_[next_group_] : group_->left();
      const auto here = static_cast<int64_t>(std::min<uint64_t>(rows - passed, static_cast<uint64_t>(left)));
      if (here == left) {  // all of it: it need not even be opened
        next_group_ += fresh ? 1 : 0;
        group_.reset();
      } else if (fresh) {
        RETURN_IF_ERROR(OpenGroup(here));
      } else {
        RETURN_IF_ERROR(AsOurs(group_->index(), group_->Skip(here)));
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
    RETURN_NOT_OK(FetchFrom(index));
    group_ = std::make_unique<ParquetGroup>(reader_.get(), &leaves_, index);
    return first > 0 ? group_->Skip(first) : arrow::Status::OK();
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
  std::unique_ptr<ParquetGroup> group_;
};

}  // namespace

Result<std::unique_ptr<ColumnsFile>> OpenParquet(std::unique_ptr<StoredFile> file, const std::string* path) {
  auto opened = std::make_unique<ParquetFile>(MakeArrowFile(std::move(file)), path);
  RETURN_IF_ERROR(opened->Open());
  return std::unique_ptr<ColumnsFile>(std::move(opened));
}

}  // namespace headrace::side
