#include "sidecar/source/block_reader.h"

#include <algorithm>
#include <cstring>

namespace headrace::side {
namespace {

constexpr size_t kMostBytes = 4 << 20;  // of a block that is to hold several records

class BlockReader : public Stream<Record> {
 public:
  BlockReader(SourceContext& context, uint32_t file, std::unique_ptr<ByteStream> bytes, std::unique_ptr<Framer> framer)
      : context_(context),
        file_(file),
        indexing_(context.Remembers(file)),
        pool_(context.blocks),
        quarantine_(context.quarantine),
        path_(context.files.path(file)),
        bytes_(std::move(bytes)),
        framer_(std::move(framer)) {}

  Result<size_t> Read(std::span<Record> out) override {
    ASSIGN_OR_RETURN(const bool more, HaveRecords());
    if (!more) return size_t{0};
    const size_t read = std::min(out.size(), static_cast<size_t>(rows_ - next_));
    PointAtRows(out.first(read), block_, next_);
    next_ += static_cast<int64_t>(read);
    return read;
  }

  Result<uint64_t> PassOver(uint64_t n) override {
    uint64_t passed = 0;
    while (passed < n) {
      ASSIGN_OR_RETURN(const bool more, HaveRecords());
      if (!more) break;
      const auto here = std::min(n - passed, static_cast<uint64_t>(rows_ - next_));
      next_ += static_cast<int64_t>(here);
      passed += here;
    }
    return passed;
  }

 private:
  // Makes next_ < rows_. false: the file is over.
  Result<bool> HaveRecords() {
    while (next_ == rows_) {
      if (!error_.ok()) {
        // What follows such a place cannot be found: the rest of the file is left out with it.
        RETURN_IF_ERROR(quarantine_.Take(error_));
        return false;
      }
      if (ended_ && rest_.empty()) {
        FinishIndex();
        return false;
      }
      RETURN_IF_ERROR(ReadBlock());
      if (indexing_) AddToIndex();
    }
    return true;
  }

  // Where the records of block_ lie. A record ends where the next begins.
  void AddToIndex() {
    auto* const block = static_cast<BytesBlock*>(block_.get());
    indexing_ = error_.ok() && begins_.size() < context_.most_indexed_records();
    for (int64_t row = 0; indexing_ && row < rows_; ++row) {
      begins_.push_back(block->PlaceOf(row).offset);
    }
  }
  void FinishIndex() {
    if (indexing_ && bytes_->plain()) {
      begins_.push_back(offset_);
      context_.KeepIndex(file_, std::move(begins_));
    }
    indexing_ = false;
  }

  // Reads what follows into a new block, until it holds a record, or the file is over.
  Status ReadBlock() {
    size_t capacity = usual_bytes_;
    while (true) {
      BytesBlock* const block = pool_.Get(std::max(capacity, rest_.size() + 1));
      BlockRef held(block);
      block->origin = {&path_, offset_};
      std::copy(rest_.begin(), rest_.end(), block->data());
      size_t size = rest_.size();
      while (size < block->capacity() && !ended_) {
        ASSIGN_OR_RETURN(const size_t read, bytes_->Read(block->data() + size, block->capacity() - size));
        size += read;
        ended_ = read == 0;
      }
      Framer::Outcome outcome = framer_->Frame(block, size, ended_);
      rest_ = {block->data() + outcome.consumed, size - outcome.consumed};
      last_ = std::move(held);
      if (!outcome.error.ok()) {
        error_ = Status(outcome.error.code(), path_ + ": at byte " + std::to_string(offset_ + outcome.consumed) + ": " +
                                                  outcome.error.message());
        rest_ = {};
      } else if (ended_ && outcome.consumed < size) {
        return Internal(path_ + ": at byte " + std::to_string(offset_ + outcome.consumed) +
                        ": the format's reader left " + std::to_string(size - outcome.consumed) + " bytes over");
      } else if (outcome.consumed == 0 && !ended_) {
        // A record that is larger than the block. Its length is not believed before the bytes are there.
        capacity = std::clamp(outcome.wanted, block->capacity() * 2, block->capacity() * 16);
        continue;
      }
      offset_ += outcome.consumed;
      rows_ = block->rows();
      next_ = 0;
      block_ = last_;
      ChooseBytes(outcome.consumed);
      return {};
    }
  }

  // Blocks of some records each, so that not much of them is rest.
  void ChooseBytes(size_t consumed) {
    if (rows_ == 0) return;
    const size_t record_bytes = consumed / static_cast<size_t>(rows_);
    usual_bytes_ = BytesBlockPool::kUsualBytes;
    if (record_bytes <= usual_bytes_ / 2) return;
    usual_bytes_ = std::max(std::min(4 * record_bytes, kMostBytes), record_bytes + record_bytes / 4);
  }

  SourceContext& context_;
  const uint32_t file_;
  bool indexing_;                 // all records so far are in ...
  std::vector<uint64_t> begins_;  // ... this: where they begin in the file
  BytesBlockPool& pool_;
  Quarantine& quarantine_;
  const std::string& path_;
  const std::unique_ptr<ByteStream> bytes_;
  const std::unique_ptr<Framer> framer_;
  BlockRef block_;
  int64_t rows_ = 0;                                  // of block_
  int64_t next_ = 0;                                  // row of block_ to be read
  BlockRef last_;                                     // that was read
  std::span<const uint8_t> rest_;                     // of last_: what is no whole record
  uint64_t offset_ = 0;                               // in the file, of rest_
  size_t usual_bytes_ = BytesBlockPool::kUsualBytes;  // of the next block
  bool ended_ = false;                                // the file has no bytes after rest_
  Status error_;                                      // after the records of block_
};

}  // namespace

Result<std::unique_ptr<Stream<Record>>> ReadBlocks(SourceContext& context, uint32_t file,
                                                   std::unique_ptr<Framer> framer) {
  ASSIGN_OR_RETURN(auto bytes, OpenByteStream(context.files, file, context.compression, &context.bytes_read));
  return std::unique_ptr<Stream<Record>>(
      std::make_unique<BlockReader>(context, file, std::move(bytes), std::move(framer)));
}

}  // namespace headrace::side
