#include "sidecar/source/framed_records.h"

#include <algorithm>
#include <deque>
#include <map>

#include "sidecar/core/bytes_block.h"
#include "sidecar/core/prefetch.h"
#include "sidecar/core/uncounted.h"
#include "sidecar/source/block_reader.h"

namespace headrace::side {
namespace {

// Bytes of neighbours: in the decoder's memory, or where they lie in a mapped file, which nobody writes to.
class FetchedBlock final : public BytesBlock {
 public:
  FetchedBlock() : BytesBlock(nullptr, nullptr, 0) {}
  // `records` are those that the bytes will be found to be.
  void Hold(const uint8_t* data, size_t size, std::span<const Record> records) {
    Refill(const_cast<uint8_t*>(data), size);
    records_ = records;
  }
  std::string Place(int64_t row) const override { return records_[static_cast<size_t>(row)].Place(); }

 private:
  std::span<const Record> records_;
};

class FetchDecoder : public Decoder {
 public:
  FetchDecoder(std::unique_ptr<Decoder> rest, SourceContext* context) : rest_(std::move(rest)), context_(*context) {}

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    fetched_.Clear();
    Plan(records);
    RETURN_IF_ERROR(ReadRuns());
    for (size_t r = 0, next = 0; r <= runs_.size(); ++r) {
      const size_t until = r < runs_.size() ? runs_[r].first : records.size();
      for (; next < until; ++next) fetched_.Add(records[next].block.get(), records[next].value, records[next].index);
      if (r == runs_.size()) break;
      const Run& run = runs_[r];
      if (r + kPrefetchAhead < runs_.size())
        PrefetchBytes(runs_[r + kPrefetchAhead].data, runs_[r + kPrefetchAhead].bytes);
      RETURN_IF_ERROR(FrameRun(run, records.subspan(run.first, run.count), &blocks_[r]));
      for (size_t i = 0; i < run.count; ++i) {
        fetched_.Add(&blocks_[r], static_cast<int64_t>(i), records[next++].index);
      }
    }
    return rest_->Decode(fetched_.all(), columns);
  }

 private:
  // Neighbours in a file.
  struct Run {
    const FramedBlock* block = nullptr;
    size_t first = 0;  // of the records
    size_t count = 0;
    uint64_t offset = 0;  // in the file
    size_t bytes = 0;
    size_t at = 0;  // in memory_, if it is read
    const uint8_t* data = nullptr;
  };

  void Plan(std::span<const Record> records) {
    runs_.clear();
    size_t at = 0;
    const Block* last = nullptr;
    const FramedBlock* block = nullptr;
    for (size_t i = 0; i < records.size(); ++i) {
      if (i == 0 || records[i].block.get() != last) {
        last = records[i].block.get();
        // What holds no records is a FramedBlock here: no other format's come to this decoder.
        block = last->holds_records() ? nullptr : static_cast<const FramedBlock*>(last);
      }
      if (block == nullptr) continue;
      const StoredBlock::Extent extent = block->Find(records[i].value);
      Run* const run = runs_.empty() ? nullptr : &runs_.back();
      if (run != nullptr && run->block == block && run->first + run->count == i &&
          run->offset + run->bytes == extent.offset) {
        ++run->count;
        run->bytes += extent.bytes;
      } else {
        runs_.push_back({block, i, 1, extent.offset, static_cast<size_t>(extent.bytes), at, nullptr});
      }
      at += extent.bytes;
    }
    // Shorter is not worth the zeros that come with the next growth.
    memory_.resize(std::max(memory_.size(), at + BytesBlock::kPadding));
    while (blocks_.size() < runs_.size()) blocks_.emplace_back();
  }

  Status ReadRuns() {
    StoredReads reads;
    for (Run& run : runs_) {
      ASSIGN_OR_RETURN(run.data, reads.Look(*run.block, run.offset, run.bytes, BytesBlock::kPadding));
      if (run.data != nullptr) continue;
      run.data = &memory_[run.at];
      RETURN_IF_ERROR(reads.Begin(*run.block, run.offset, {&memory_[run.at], run.bytes}));
    }
    return reads.Finish();
  }

  Status FrameRun(const Run& run, std::span<const Record> records, FetchedBlock* block) {
    ASSIGN_OR_RETURN(Framer* const framer, FramerOf(*run.block));
    block->Hold(run.data, run.bytes, records);
    block->origin = {&run.block->path(), run.offset};
    const Framer::Outcome outcome = framer->Frame(block, run.bytes, true);
    if (!outcome.error.ok()) {
      const auto found = static_cast<size_t>(block->rows());
      const Record& wrong = records[std::min(found, records.size() - 1)];
      return Status(outcome.error.code(), wrong.Place() + ": " + outcome.error.message());
    }
    if (block->rows() == static_cast<int64_t>(records.size()) && outcome.consumed == run.bytes) return {};
    return Changed(run);
  }

  static Status Changed(const Run& run) {
    return Corrupt(run.block->path() + ": at byte " + std::to_string(run.offset) +
                   ": the record is not where it was when the file was indexed: the file has changed; start the run "
                   "again, after `headrace index` if " +
                   RecordIndexPath(run.block->path()) + " is there");
  }

  // Of this thread. A file's header, which says what its records are, is read once.
  Result<Framer*> FramerOf(const FramedBlock& block) {
    if (&block == last_framed_) return last_framer_;
    std::unique_ptr<Framer>& framer = framers_[&block];
    if (framer == nullptr) {
      ASSIGN_OR_RETURN(framer, MakeFramer(block));
    }
    last_framed_ = &block;
    last_framer_ = framer.get();
    return framer.get();
  }
  Result<std::unique_ptr<Framer>> MakeFramer(const FramedBlock& block) const {
    auto made = context_.format->framer(context_);
    if (const uint64_t header = block.index().begin(0); header > 0) {
      ASSIGN_OR_RETURN(StoredFile* const file, block.file());
      std::vector<uint8_t> bytes(header + BytesBlock::kPadding);
      ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, {bytes.data(), header}));
      FetchedBlock begin;
      begin.Hold(bytes.data(), read, {});
      begin.origin = {&block.path(), 0};
      RETURN_IF_ERROR(made->Frame(&begin, read, false).error);
    }
    return made;
  }

  const std::unique_ptr<Decoder> rest_;
  SourceContext& context_;
  std::map<const FramedBlock*, std::unique_ptr<Framer>> framers_;
  const FramedBlock* last_framed_ = nullptr;
  Framer* last_framer_ = nullptr;
  std::vector<Run> runs_;
  std::vector<uint8_t> memory_;
  std::deque<FetchedBlock> blocks_;  // of the runs
  Uncounted fetched_;
};

}  // namespace

std::unique_ptr<Decoder> MakeFetchDecoder(std::unique_ptr<Decoder> rest, SourceContext* context) {
  return std::make_unique<FetchDecoder>(std::move(rest), context);
}

}  // namespace headrace::side
