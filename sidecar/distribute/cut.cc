#include "sidecar/distribute/cut.h"

#include <algorithm>
#include <iterator>

namespace headrace::side {
namespace {

// Moves rows of a batch to the end of a piece.
void MoveRows(Batch& batch, int64_t begin, int64_t rows, Piece* piece) {
  const auto from = batch.records.begin() + begin * batch.row_records;
  piece->records.insert(piece->records.end(), std::make_move_iterator(from),
                        std::make_move_iterator(from + rows * batch.row_records));
  piece->rows += rows;
  piece->row_records = batch.row_records;
}

void Clear(Piece* piece) {
  piece->records.clear();
  piece->rows = 0;
  piece->row_records = 1;
}

class WholeCut : public Cut {
 public:
  explicit WholeCut(std::unique_ptr<Stream<Batch>> batches) : batches_(std::move(batches)) {}
  Result<bool> Next(Piece* piece) override { return ReadOne(*batches_, *piece); }
  Result<uint64_t> PassOver(uint64_t n) override { return batches_->PassOver(n); }

 private:
  std::unique_ptr<Stream<Batch>> batches_;
};

class PerBatchCut : public Cut {
 public:
  PerBatchCut(std::unique_ptr<Stream<Batch>> batches, int64_t pieces)
      : batches_(std::move(batches)), pieces_(pieces), next_(pieces) {}

  Result<bool> Next(Piece* piece) override {
    ASSIGN_OR_RETURN(const bool more, HavePieces());
    if (!more) return false;
    const int64_t rows = (batch_.rows + pieces_ - 1) / pieces_;
    const int64_t begin = std::min(next_ * rows, batch_.rows);
    Clear(piece);
    MoveRows(batch_, begin, std::min(rows, batch_.rows - begin), piece);
    ++next_;
    return true;
  }

  Result<uint64_t> PassOver(uint64_t n) override {
    const auto pieces = static_cast<uint64_t>(pieces_);
    const uint64_t of_this = std::min(n, static_cast<uint64_t>(pieces_ - next_));
    next_ += static_cast<int64_t>(of_this);
    ASSIGN_OR_RETURN(const uint64_t whole, batches_->PassOver((n - of_this) / pieces));
    const uint64_t passed = of_this + whole * pieces;
    if (whole < (n - of_this) / pieces) return passed;
    if (passed == n) return n;
    ASSIGN_OR_RETURN(const bool more, HavePieces());
    if (!more) return passed;
    next_ += static_cast<int64_t>(n - passed);
    return n;
  }

 private:
  // Makes next_ < pieces_. false: there are no more batches.
  Result<bool> HavePieces() {
    if (next_ < pieces_) return true;
    ASSIGN_OR_RETURN(const bool more, ReadOne(*batches_, batch_));
    if (more) next_ = 0;
    return more;
  }

  std::unique_ptr<Stream<Batch>> batches_;
  const int64_t pieces_;
  int64_t next_;
  Batch batch_;
};

class ContinuousCut : public Cut {
 public:
  ContinuousCut(std::unique_ptr<Stream<Batch>> batches, int64_t global_batch, int64_t pieces, int64_t rotation)
      : batches_(std::move(batches)),
        smaller_(global_batch / pieces),
        larger_count_(global_batch % pieces),
        pieces_(pieces),
        next_(rotation % pieces) {}

  Result<bool> Next(Piece* piece) override {
    if (ended_) return false;
    if (!started_) {
      // Data that cannot be read is an error before the first piece, also where that one takes no rows.
      started_ = true;
      RETURN_IF_ERROR(NextBatch().status());
    }
    const int64_t wanted = smaller_ + (next_ < larger_count_ ? 1 : 0);
    next_ = (next_ + 1) % pieces_;
    Clear(piece);
    while (piece->rows < wanted) {
      if (position_ == batch_.rows) {
        ASSIGN_OR_RETURN(const bool more, NextBatch());
        if (!more) {
          ended_ = true;
          break;
        }
      }
      RETURN_IF_ERROR(Gather(std::min(wanted - piece->rows, batch_.rows - position_), piece));
    }
    // A piece of no rows is produced whatever the stream has; any other needs at least one.
    return wanted == 0 || piece->rows > 0;
  }

 private:
  Result<bool> NextBatch() {
    ASSIGN_OR_RETURN(const bool more, ReadOne(*batches_, batch_));
    position_ = 0;
    if (!more) batch_.rows = 0;
    return more;
  }

  Status Gather(int64_t rows, Piece* piece) {
    if (piece->rows > 0 && piece->row_records != batch_.row_records) {
      return InvalidArgument("spec.distribution.rebatch: Continuous cannot join batches whose inner batches hold " +
                             std::to_string(piece->row_records) + " and " + std::to_string(batch_.row_records) +
                             " records; give the first batch dropRemainder: true, or use PerBatch");
    }
    MoveRows(batch_, position_, rows, piece);
    position_ += rows;
    return {};
  }

  std::unique_ptr<Stream<Batch>> batches_;
  const int64_t smaller_;
  const int64_t larger_count_;
  const int64_t pieces_;
  int64_t next_;
  Batch batch_;
  int64_t position_ = 0;  // first row of batch_ not yet taken
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace

Result<uint64_t> Cut::PassOver(uint64_t n) {
  Piece piece;
  uint64_t passed = 0;
  while (passed < n) {
    ASSIGN_OR_RETURN(const bool more, Next(&piece));
    if (!more) break;
    ++passed;
  }
  return passed;
}

std::unique_ptr<Cut> PassWhole(std::unique_ptr<Stream<Batch>> batches) {
  return std::make_unique<WholeCut>(std::move(batches));
}

std::unique_ptr<Cut> CutPerBatch(std::unique_ptr<Stream<Batch>> batches, int64_t pieces) {
  return std::make_unique<PerBatchCut>(std::move(batches), pieces);
}

std::unique_ptr<Cut> CutContinuous(std::unique_ptr<Stream<Batch>> batches, int64_t global_batch, int64_t pieces,
                                   int64_t rotation) {
  return std::make_unique<ContinuousCut>(std::move(batches), global_batch, pieces, rotation);
}

}  // namespace headrace::side
