#include "sidecar/source/parquet_group.h"

#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/size_statistics.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "sidecar/source/arrow_parallel.h"

namespace headrace::side {
namespace {

// A block is made of as many rows as these hold: few enough to stay in the processor's caches on their way.
constexpr double kBlockBytes = 1 << 20;
constexpr int64_t kMostBlockRows = 64 << 10;
// A block ends where a page does, so that its rows need no copy, unless that makes it smaller than this.
constexpr int64_t kFewRows = 4 << 10;
// Row groups of fewer bytes are read sooner than another thread wakes up.
constexpr double kWorthThreadsBytes = 256 << 10;

// The leaves' values in all rows, about, in bytes.
double BytesOf(const parquet::RowGroupMetaData& group, const std::vector<int>& leaves) {
  constexpr double kOftenRepeated = 16;
  double all = 0;
  for (const int leaf : leaves) {
    const auto chunk = group.ColumnChunk(leaf);
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
    all += bytes;
  }
  return all;
}

// Even shares of the rows, each of about kBlockBytes.
int64_t BlockRows(int64_t rows, double bytes) {
  const double row_bytes = std::max(bytes / static_cast<double>(rows), 1.0);
  const auto most = static_cast<int64_t>(std::clamp(kBlockBytes / row_bytes, 1.0, double{kMostBlockRows}));
  const int64_t blocks = (rows - 1) / most + 1;
  return (rows - 1) / blocks + 1;
}

}  // namespace

ParquetGroup::ParquetGroup(parquet::arrow::FileReader* file, const ParquetLeaves* leaves, int index)
    : file_(*file),
      leaves_(*leaves),
      index_(index),
      group_(file->parquet_reader()->RowGroup(index)),
      rows_(group_->metadata()->num_rows()),
      numbers_(leaves->numbers.size()),
      fields_(leaves->fields.size()) {
  const double bytes = BytesOf(*group_->metadata(), leaves->all);
  block_rows_ = BlockRows(rows_, bytes);
  worth_threads_ = bytes >= kWorthThreadsBytes;
  file_.set_batch_size(block_rows_);
}

arrow::Status ParquetGroup::ForEach(const std::vector<size_t>& all,
                                    const std::function<arrow::Status(size_t)>& fn) const {
  if (worth_threads_ && all.size() > 1) return InParallel(all.size(), [&](size_t i) { return fn(all[i]); });
  for (const size_t i : all) RETURN_NOT_OK(fn(i));
  return arrow::Status::OK();
}

bool ParquetGroup::HasRow(size_t part) const {
  if (part < numbers_.size()) return numbers_[part] != nullptr && numbers_[part]->HasRow();
  const Field& field = fields_[part - numbers_.size()];
  return field.batch != nullptr && field.batch->num_rows() > 0;
}

arrow::Status ParquetGroup::HaveRow(size_t part) {
  return CaughtParquet([&]() -> arrow::Status {
    if (part < numbers_.size()) {
      auto& column = numbers_[part];
      if (column == nullptr) {
        const auto& [leaf, type] = leaves_.numbers[part];
        column = NumberColumn::Make(group_.get(), leaf, *type);
      }
      column->HaveRow();
      return arrow::Status::OK();
    }
    Field& field = fields_[part - numbers_.size()];
    if (field.reader == nullptr) {
      const std::vector<int>& leaves = leaves_.fields[part - numbers_.size()];
      ARROW_ASSIGN_OR_RAISE(field.reader, file_.GetRecordBatchReader({index_}, leaves));
    }
    while (field.batch == nullptr || field.batch->num_rows() == 0) {
      RETURN_NOT_OK(field.reader->ReadNext(&field.batch));
      if (field.batch == nullptr) {
        return arrow::Status::Invalid("a column has fewer values than the row group has rows");
      }
    }
    return arrow::Status::OK();
  });
}

arrow::Status ParquetGroup::HaveRows() {
  std::vector<size_t> without;
  for (size_t part = 0; part < parts(); ++part) {
    if (!HasRow(part)) without.push_back(part);
  }
  return ForEach(without, [this](size_t part) { return HaveRow(part); });
}

arrow::Status ParquetGroup::SkipPart(size_t part, int64_t rows) {
  while (rows > 0) {
    RETURN_NOT_OK(HaveRow(part));
    if (part < numbers_.size()) {
      return CaughtParquet([&] {
        numbers_[part]->Skip(rows);
        return arrow::Status::OK();
      });
    }
    Field& field = fields_[part - numbers_.size()];
    const int64_t here = std::min(rows, field.batch->num_rows());
    field.batch = field.batch->Slice(here);
    rows -= here;
  }
  return arrow::Status::OK();
}

arrow::Status ParquetGroup::Skip(int64_t rows) {
  next_ += rows;
  std::vector<size_t> all(parts());
  for (size_t part = 0; part < all.size(); ++part) all[part] = part;
  return ForEach(all, [this, rows](size_t part) { return SkipPart(part, rows); });
}

int64_t ParquetGroup::RowsOfBlock() const {
  int64_t rows = std::min(block_rows_, left());
  for (const Field& field : fields_) rows = std::min(rows, field.batch->num_rows());
  for (const auto& column : numbers_) {
    if (column->RowsAsTheyLie() >= kFewRows) rows = std::min(rows, column->RowsAsTheyLie());
  }
  return rows;
}

arrow::Status ParquetGroup::ReadColumn(size_t column, int64_t rows, ColumnsBlock* block) {
  const ParquetLeaves::Column& is = leaves_.columns[column];
  return CaughtParquet([&]() -> arrow::Status {
    if (is.number >= 0) {
      numbers_[static_cast<size_t>(is.number)]->Read(rows, block);
      return arrow::Status::OK();
    }
    const Field& field = fields_[static_cast<size_t>(is.field)];
    return AddColumn(field.batch->column(0)->Slice(0, rows), is.path_within, block);
  });
}

arrow::Status ParquetGroup::Read(ColumnsBlock* block) {
  RETURN_NOT_OK(HaveRows());
  block->rows = RowsOfBlock();
  std::vector<ColumnsBlock> columns(leaves_.columns.size());
  std::vector<size_t> decoded;
  for (size_t c = 0; c < columns.size(); ++c) {
    const int number = leaves_.columns[c].number;
    const bool lies = number >= 0 && numbers_[static_cast<size_t>(number)]->RowsAsTheyLie() >= block->rows;
    if (!lies) decoded.push_back(c);
    if (lies) RETURN_NOT_OK(ReadColumn(c, block->rows, &columns[c]));
  }
  RETURN_NOT_OK(ForEach(decoded, [&](size_t c) { return ReadColumn(c, block->rows, &columns[c]); }));
  for (ColumnsBlock& column : columns) {
    block->columns.push_back(column.columns.front());
    std::move(column.keeps.begin(), column.keeps.end(), std::back_inserter(block->keeps));
    block->bytes += column.bytes;
  }
  for (Field& field : fields_) field.batch = field.batch->Slice(block->rows);
  next_ += block->rows;
  return arrow::Status::OK();
}

}  // namespace headrace::side
