// Record batches, each of which becomes a block as it is: by number where the file has a footer, else one after
// another.
#include "sidecar/source/arrow_ipc.h"

#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include <algorithm>
#include <climits>

#include "sidecar/source/arrow_columns.h"
#include "sidecar/source/arrow_file.h"
#include "sidecar/source/arrow_stream.h"

namespace headrace::side {
namespace {

arrow::ipc::IpcReadOptions Options() {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = ArrowMemory();
  options.use_threads = false;
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

// The field whose values take the least, as far as that is known.
int Narrowest(const arrow::Schema& schema) {
  int narrowest = 0;
  int least = INT_MAX;
  for (int field = 0; field < schema.num_fields(); ++field) {
    const arrow::DataType& type = *schema.field(field)->type();
    const int bits =
        arrow::is_fixed_width(type.id()) && type.id() != arrow::Type::DICTIONARY ? type.bit_width() : INT_MAX;
    if (bits >= least) continue;
    least = bits;
    narrowest = field;
  }
  return narrowest;
}

// The record batches of a file, in order.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  // From now on, batches have the fields of the schema that `options` includes.
  virtual arrow::Status Choose(const arrow::ipc::IpcReadOptions& options) = 0;
  // null: the end.
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
  // The rows of the next batch, if they are known without reading it; -1: they are not, or it is the end.
  virtual arrow::Result<int64_t> NextRows() = 0;
  // Passes over it. REQUIRES: NextRows() is not -1.
  virtual void PassOver() = 0;
};

class FileBatches : public Batches {
 public:
  // `ordered` is the same file, or null.
  explicit FileBatches(std::shared_ptr<arrow::io::RandomAccessFile> file, std::shared_ptr<OrderedFile> ordered)
      : file_(std::move(file)), ordered_(std::move(ordered)) {}

  arrow::Status Open() {
    ARROW_ASSIGN_OR_RAISE(reader_, arrow::ipc::RecordBatchFileReader::Open(file_, Options()));
    return arrow::Status::OK();
  }

  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  arrow::Status Choose(const arrow::ipc::IpcReadOptions& options) override {
    if (!options.included_fields.empty()) {
      ARROW_ASSIGN_OR_RAISE(reader_, arrow::ipc::RecordBatchFileReader::Open(file_, options));
    }
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    if (next_ == reader_->num_record_batches()) return nullptr;
    if (ordered_ != nullptr) ordered_->ReadAhead();
    return reader_->ReadRecordBatch(next_++);
  }
  arrow::Result<int64_t> NextRows() override {
    if (next_ == reader_->num_record_batches()) return -1;
    if (rows_ == nullptr) {  // reads how many rows there are, and for want of nothing the narrowest column
      arrow::ipc::IpcReadOptions options = Options();
      options.included_fields = {Narrowest(*schema())};
      ARROW_ASSIGN_OR_RAISE(rows_, arrow::ipc::RecordBatchFileReader::Open(file_, options));
    }
    ARROW_ASSIGN_OR_RAISE(const auto batch, rows_->ReadRecordBatch(next_));
    return batch->num_rows();
  }
  void PassOver() override { ++next_; }

 private:
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const std::shared_ptr<OrderedFile> ordered_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> rows_;
  int next_ = 0;
};

// Messages whose first was read before.
class RestOfMessages : public arrow::ipc::MessageReader {
 public:
  RestOfMessages(std::unique_ptr<arrow::ipc::Message> first, std::unique_ptr<arrow::ipc::MessageReader> rest)
      : first_(std::move(first)), rest_(std::move(rest)) {}
  arrow::Result<std::unique_ptr<arrow::ipc::Message>> ReadNextMessage() override {
    return first_ != nullptr ? std::move(first_) : rest_->ReadNextMessage();
  }

 private:
  std::unique_ptr<arrow::ipc::Message> first_;
  const std::unique_ptr<arrow::ipc::MessageReader> rest_;
};

class StreamBatches : public Batches {
 public:
  explicit StreamBatches(std::shared_ptr<arrow::io::InputStream> stream) : stream_(std::move(stream)) {}

  // Which fields batches shall have is to be said before the first is read, and after the schema is.
  arrow::Status Open() {
    messages_ = arrow::ipc::MessageReader::Open(stream_);
    ARROW_ASSIGN_OR_RAISE(first_, messages_->ReadNextMessage());
    if (first_ == nullptr) return arrow::Status::Invalid("the file is empty, without even a schema");
    // ReadSchema takes any message for one.
    if (first_->type() != arrow::ipc::MessageType::SCHEMA) {
      return arrow::Status::Invalid("the first message is no schema but a ",
                                    arrow::ipc::FormatMessageType(first_->type()));
    }
    arrow::ipc::DictionaryMemo dictionaries;
    ARROW_ASSIGN_OR_RAISE(schema_, arrow::ipc::ReadSchema(*first_, &dictionaries));
    return arrow::Status::OK();
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::Status Choose(const arrow::ipc::IpcReadOptions& options) override {
    auto messages = std::make_unique<RestOfMessages>(std::move(first_), std::move(messages_));
    ARROW_ASSIGN_OR_RAISE(reader_, arrow::ipc::RecordBatchStreamReader::Open(std::move(messages), options));
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override { return reader_->Next(); }
  arrow::Result<int64_t> NextRows() override { return -1; }
  void PassOver() override {}

 private:
  const std::shared_ptr<arrow::io::InputStream> stream_;
  std::unique_ptr<arrow::ipc::MessageReader> messages_;
  std::unique_ptr<arrow::ipc::Message> first_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::RecordBatchReader> reader_;
};

class IpcFile : public ColumnsFile {
 public:
  IpcFile(std::unique_ptr<Batches> batches, const std::string* path)
      : path_(*path), batches_(std::move(batches)), all_(ColumnsOf(*batches_->schema())) {
    for (const SchemaColumn& column : all_) columns_.push_back(column.column);
  }

  const std::vector<FileColumn>& columns() const override { return columns_; }

  Status Choose(const std::vector<size_t>& columns) override {
    std::vector<int> fields;
    for (const size_t c : columns) fields.push_back(all_[c].path[0]);
    std::sort(fields.begin(), fields.end());
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
    for (const size_t c : columns) {
      SchemaColumn& column = chosen_.emplace_back(all_[c]);
      column.path[0] =
          static_cast<int>(std::lower_bound(fields.begin(), fields.end(), column.path[0]) - fields.begin());
    }
    arrow::ipc::IpcReadOptions options = Options();
    const bool some = fields.size() < static_cast<size_t>(batches_->schema()->num_fields());
    if (some) options.included_fields = std::move(fields);
    return AsOurs(Caught([&] { return batches_->Choose(options); }));
  }

  Result<std::unique_ptr<ColumnsBlock>> Next() override {
    auto block = std::make_unique<ColumnsBlock>();
    RETURN_IF_ERROR(AsOurs(Caught([&] { return ReadBlock(block.get()); })));
    if (block->rows == 0) block.reset();
    return block;
  }

  Result<uint64_t> PassOver(uint64_t rows) override {
    uint64_t passed = 0;
    RETURN_IF_ERROR(AsOurs(Caught([&] { return PassOver(rows, &passed); })));
    return passed;
  }

 private:
  Status AsOurs(const arrow::Status& status) const {
    if (status.ok()) return {};
    return FromArrow(status, path_ + ": record batch " + std::to_string(index_) + ": ");
  }

  // Makes batch_ hold rows; null at the end.
  arrow::Status HaveBatch() {
    while (batch_ == nullptr || batch_->num_rows() == 0) {
      ARROW_ASSIGN_OR_RAISE(batch_, batches_->Next());
      if (batch_ == nullptr) break;
      RETURN_NOT_OK(batch_->Validate());
      if (batch_->num_rows() == 0) ++index_;
      first_row_ = 0;
    }
    return arrow::Status::OK();
  }

  arrow::Status ReadBlock(ColumnsBlock* block) {
    RETURN_NOT_OK(HaveBatch());
    if (batch_ == nullptr) return arrow::Status::OK();
    block->rows = batch_->num_rows();
    block->origin = {&path_, "record batch " + std::to_string(index_), first_row_};
    for (const SchemaColumn& column : chosen_) {
      RETURN_NOT_OK(AddColumn(batch_->column(column.path[0]), std::span(column.path).subspan(1), block));
    }
    batch_ = nullptr;
    ++index_;
    return arrow::Status::OK();
  }

  arrow::Status PassOver(uint64_t rows, uint64_t* passed) {
    while (*passed < rows) {
      const uint64_t left = rows - *passed;
      if (batch_ == nullptr) {
        ARROW_ASSIGN_OR_RAISE(const int64_t known, batches_->NextRows());
        if (known >= 0 && static_cast<uint64_t>(known) <= left) {
          batches_->PassOver();
          *passed += static_cast<uint64_t>(known);
          ++index_;
          continue;
        }
        RETURN_NOT_OK(HaveBatch());
        if (batch_ == nullptr) break;
      }
      const auto here = static_cast<int64_t>(std::min(left, static_cast<uint64_t>(batch_->num_rows())));
      *passed += static_cast<uint64_t>(here);
      first_row_ += here;
      batch_ = batch_->Slice(here);
      if (batch_->num_rows() > 0) continue;
      batch_ = nullptr;
      ++index_;
    }
    return arrow::Status::OK();
  }

  const std::string& path_;
  const std::unique_ptr<Batches> batches_;
  const std::vector<SchemaColumn> all_;
  std::vector<FileColumn> columns_;   // of all_
  std::vector<SchemaColumn> chosen_;  // their paths in the batches
  std::shared_ptr<arrow::RecordBatch>
      batch_;              // the next one, if it was read, without the rows that were passed over ...
  int64_t first_row_ = 0;  // ... which are as many
  int64_t index_ = 0;      // of the next batch
};

template <typename Kind>
Result<std::unique_ptr<ColumnsFile>> Opened(std::unique_ptr<Kind> batches, const std::string* path) {
  std::unique_ptr<ColumnsFile> file;
  const arrow::Status status = Caught([&]() -> arrow::Status {
    RETURN_NOT_OK(batches->Open());
    file = std::make_unique<IpcFile>(std::move(batches), path);
    return arrow::Status::OK();
  });
  if (!status.ok()) return FromArrow(status, *path + ": ");
  return file;
}

}  // namespace

Result<std::unique_ptr<ColumnsFile>> OpenArrowFile(std::unique_ptr<StoredFile> file, std::unique_ptr<ByteStream> ahead,
                                                   const std::string* path) {
  if (ahead == nullptr) return Opened(std::make_unique<FileBatches>(MakeArrowFile(std::move(file)), nullptr), path);
  const auto ordered = MakeOrderedFile(std::move(file), std::move(ahead));
  return Opened(std::make_unique<FileBatches>(ordered, ordered), path);
}

Result<std::unique_ptr<ColumnsFile>> OpenArrowStream(std::unique_ptr<ByteStream> bytes, const std::string* path) {
  return Opened(std::make_unique<StreamBatches>(MakeArrowStream(std::move(bytes))), path);
}

}  // namespace headrace::side
