#include "sidecar/source/columns_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "sidecar/core/rows_copy.h"

namespace headrace::side {
namespace {

constexpr size_t kBlocksAhead = 2;
// As many blocks are read without passing over more before the thread reads ahead again.
constexpr int kBlocksAlone = 2;

class ColumnsStream : public Stream<Record> {
 public:
  ColumnsStream(std::unique_ptr<ColumnsFile> file, std::vector<size_t> places, BytesBlockPool* pool, bool mixed)
      : file_(std::move(file)), places_(std::move(places)), pool_(*pool), mixed_(mixed) {}
  ~ColumnsStream() override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      state_ = State::kStop;
    }
    changed_.notify_all();
    thread_.join();
  }
  ColumnsStream(const ColumnsStream&) = delete;
  ColumnsStream& operator=(const ColumnsStream&) = delete;

  Result<size_t> Read(std::span<Record> out) override {
    while (next_ == rows_) {
      ASSIGN_OR_RETURN(const bool more, NextBlock());
      if (!more) return size_t{0};
    }
    const auto read = std::min(out.size(), static_cast<size_t>(rows_ - next_));
    PointAtRows(out.first(read), block_, next_);
    next_ += static_cast<int64_t>(read);
    return read;
  }

  Result<uint64_t> PassOver(uint64_t n) override {
    uint64_t passed = 0;
    while (true) {
      const auto here = static_cast<int64_t>(std::min(n - passed, static_cast<uint64_t>(rows_ - next_)));
      next_ += here;
      passed += static_cast<uint64_t>(here);
      if (passed == n) return n;
      if (n - passed > kBlocksAhead * static_cast<uint64_t>(rows_)) break;
      ASSIGN_OR_RETURN(const bool more, NextBlock());
      if (!more) return passed;
    }
    ASSIGN_OR_RETURN(const uint64_t more, Jump(n - passed));
    return passed + more;
  }

 private:
  enum class State { kPaused, kAhead, kStop };
  using Block = Result<std::unique_ptr<ColumnsBlock>>;

  // Makes the next block the current one. false: the file is over.
  Result<bool> NextBlock() {
    if (alone_ > 0) {
      --alone_;
      return Take(ReadBlock(), 0);
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    std::unique_lock lock(mutex_);
    state_ = State::kAhead;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
    return TakeReady(0);
  }

  // Passes over n rows beyond the current block, and lets nothing be read that is among them.
  Result<uint64_t> Jump(uint64_t n) {
    alone_ = rows_ > 0 ? kBlocksAlone : 0;
    std::unique_lock lock(mutex_);
    state_ = State::kPaused;
    changed_.wait(lock, [&] { return !reading_; });
    uint64_t passed = 0;
    while (!ready_.empty()) {
      const auto rows = static_cast<uint64_t>(ready_.front()->rows);
      if (rows > n - passed) {
        RETURN_IF_ERROR(TakeReady(static_cast<int64_t>(n - passed)));
        return n;
      }
      ready_.pop_front();
      passed += rows;
    }
    RETURN_IF_ERROR(error_);
    Drop();
    if (ended_ || passed == n) return passed;
    ASSIGN_OR_RETURN(const uint64_t more, file_->PassOver(n - passed));
    return passed + more;
  }

  // REQUIRES: the lock is held.
  Result<bool> TakeReady(int64_t row) {
    if (ready_.empty()) {
      Drop();
      RETURN_IF_ERROR(error_);
      return false;
    }
    std::unique_ptr<ColumnsBlock> block = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return Take(std::move(block), row);
  }

  // Goes to row `row` of a block.
  Result<bool> Take(Block block, int64_t row) {
    Drop();
    RETURN_IF_ERROR(block);
    if (*block == nullptr) return false;
    (*block)->CountOn(&pool_);
    rows_ = (*block)->rows;
    next_ = row;
    block_ = BlockRef(block->release());
    return true;
  }

  void Drop() {
    block_ = {};
    rows_ = next_ = 0;
  }

  Block ReadBlock() {
    ASSIGN_OR_RETURN(std::unique_ptr<ColumnsBlock> block, file_->Next());
    if (block == nullptr) return block;
    std::vector<ColumnView> columns;
    columns.reserve(places_.size());
    for (const size_t place : places_) columns.push_back(block->columns[place]);
    block->columns = std::move(columns);
    return mixed_ ? ByRow(std::move(block)) : std::move(block);
  }

  // The thread's.
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] {
        return state_ == State::kStop || (state_ == State::kAhead && !ended_ && ready_.size() < kBlocksAhead);
      });
      if (state_ == State::kStop) return;
      reading_ = true;
      lock.unlock();
      Block block = ReadBlock();
      lock.lock();
      reading_ = false;
      if (block.ok() && *block != nullptr) {
        ready_.push_back(std::move(*block));
      } else {
        error_ = block.status();
        ended_ = true;
      }
      changed_.notify_all();
    }
  }

  const std::unique_ptr<ColumnsFile> file_;  // of the thread while it reads, else of whoever reads the stream
  const std::vector<size_t> places_;
  BytesBlockPool& pool_;
  const bool mixed_;
  BlockRef block_;
  int64_t rows_ = 0;  // of block_
  int64_t next_ = 0;  // of them, to be read
  int alone_ = 0;     // blocks that are read when they are asked for

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kPaused;
  bool reading_ = false;
  bool ended_ = false;  // there is nothing after ready_, because of ...
  Status error_;        // ... this, or because the file is over
  std::deque<std::unique_ptr<ColumnsBlock>> ready_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Stream<Record>> MakeColumnsStream(std::unique_ptr<ColumnsFile> file, std::vector<size_t> places,
                                                  BytesBlockPool* pool, bool mixed) {
  return std::make_unique<ColumnsStream>(std::move(file), std::move(places), pool, mixed);
}

}  // namespace headrace::side
