#include "sidecar/transform/batch.h"

#include <iterator>

namespace headrace::side {
namespace {

class BatchDataset : public Dataset<Batch> {
 public:
  BatchDataset(DatasetPtr<Record> input, int64_t size, bool drop_remainder)
      : input_(std::move(input)), size_(size), drop_remainder_(drop_remainder) {}

  std::unique_ptr<Stream<Batch>> Iterate(Pass pass) const override;

 private:
  class BatchStream;
  DatasetPtr<Record> input_;
  size_t size_;
  bool drop_remainder_;
};

class BatchDataset::BatchStream : public Stream<Batch> {
 public:
  BatchStream(const BatchDataset& batch, std::unique_ptr<Stream<Record>> input)
      : batch_(batch), input_(std::move(input)) {}

  Result<size_t> Read(std::span<Batch> out) override {
    std::vector<Record>& records = out[0].records;
    records.resize(batch_.size_);  // a batch read into again keeps its memory
    size_t filled = 0;
    while (filled < batch_.size_ && !ended_) {
      ASSIGN_OR_RETURN(const size_t read, input_->Read(std::span<Record>(records).subspan(filled)));
      filled += read;
      ended_ = read == 0;
    }
    if (filled == 0 || (filled < batch_.size_ && batch_.drop_remainder_)) return size_t{0};
    records.resize(filled);
    out[0].rows = static_cast<int64_t>(filled);
    out[0].row_records = 1;
    return size_t{1};
  }

  Result<uint64_t> PassOver(uint64_t n) override {
    if (ended_ || n == 0) return uint64_t{0};
    const uint64_t size = batch_.size_;
    ASSIGN_OR_RETURN(const uint64_t records, input_->PassOver(n * size));
    ended_ = records < n * size;
    return records / size + (records % size != 0 && !batch_.drop_remainder_ ? 1 : 0);
  }

 private:
  const BatchDataset& batch_;
  std::unique_ptr<Stream<Record>> input_;
  bool ended_ = false;
};

std::unique_ptr<Stream<Batch>> BatchDataset::Iterate(Pass pass) const {
  return std::make_unique<BatchStream>(*this, input_->Iterate(pass));
}

class BatchOfBatchesDataset : public Dataset<Batch> {
 public:
  BatchOfBatchesDataset(DatasetPtr<Batch> input, int64_t size, bool drop_remainder, std::string field)
      : input_(std::move(input)), size_(size), drop_remainder_(drop_remainder), field_(std::move(field)) {}

  std::unique_ptr<Stream<Batch>> Iterate(Pass pass) const override;

 private:
  class OuterStream;
  DatasetPtr<Batch> input_;
  int64_t size_;
  bool drop_remainder_;
  std::string field_;
};

class BatchOfBatchesDataset::OuterStream : public Stream<Batch> {
 public:
  OuterStream(const BatchOfBatchesDataset& outer, std::unique_ptr<Stream<Batch>> input)
      : outer_(outer), input_(std::move(input)) {}

  Result<size_t> Read(std::span<Batch> out) override {
    Batch& batch = out[0];
    batch.records.clear();
    batch.rows = 0;
    int64_t other_records = 0;  // of an inner batch that does not fit the others, if there is one
    while (batch.rows < outer_.size_) {
      ASSIGN_OR_RETURN(const bool more, ReadOne(*input_, inner_));
      if (!more) break;
      if (batch.rows > 0 && batch.row_records != inner_.rows) other_records = inner_.rows;
      if (batch.rows == 0) batch.row_records = inner_.rows;
      batch.records.insert(batch.records.end(), std::make_move_iterator(inner_.records.begin()),
                           std::make_move_iterator(inner_.records.end()));
      ++batch.rows;
    }
    if (batch.rows == 0 || (batch.rows < outer_.size_ && outer_.drop_remainder_)) return size_t{0};
    // A remainder that is dropped may hold what it likes.
    if (other_records != 0) {
      return InvalidArgument(outer_.field_ + ": cannot join batches of " + std::to_string(batch.row_records) +
                             " and of " + std::to_string(other_records) +
                             " records; give the batch before it dropRemainder: true");
    }
    return size_t{1};
  }

 private:
  const BatchOfBatchesDataset& outer_;
  std::unique_ptr<Stream<Batch>> input_;
  Batch inner_;
};

std::unique_ptr<Stream<Batch>> BatchOfBatchesDataset::Iterate(Pass pass) const {
  return std::make_unique<OuterStream>(*this, input_->Iterate(pass));
}

}  // namespace

DatasetPtr<Batch> MakeBatch(DatasetPtr<Record> input, int64_t size, bool drop_remainder) {
  return std::make_unique<BatchDataset>(std::move(input), size, drop_remainder);
}

DatasetPtr<Batch> MakeBatchOfBatches(DatasetPtr<Batch> input, int64_t size, bool drop_remainder, std::string field) {
  return std::make_unique<BatchOfBatchesDataset>(std::move(input), size, drop_remainder, std::move(field));
}

DatasetPtr<Batch> MakeSingles(DatasetPtr<Record> input) { return MakeBatch(std::move(input), 1, false); }

}  // namespace headrace::side
