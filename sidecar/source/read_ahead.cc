#include "sidecar/source/read_ahead.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <vector>

#include "sidecar/source/raw_stream.h"

namespace headrace::side {
namespace {

// Of this process: the memory is its.
std::atomic<int> open_streams{0};

class ReadAhead : public RawStream {
 public:
  ReadAhead(std::unique_ptr<StoredFile> file, std::unique_ptr<ObjectCache::Writer> keeper)
      : file_(std::move(file)), remote_(*file_->remote()), keeper_(std::move(keeper)) {
    open_streams.fetch_add(1, std::memory_order_relaxed);
    Fill();
  }
  ~ReadAhead() override { open_streams.fetch_sub(1, std::memory_order_relaxed); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  Result<size_t> Read(uint8_t* out, size_t n) override {
    if (position_ >= file_->size()) return size_t{0};
    Fill();
    Part& part = parts_.front();
    if (part.read != nullptr) {
      RETURN_IF_ERROR(part.read->Finish());
      part.read.reset();
      Keep(part);
    }
    const auto begin = static_cast<size_t>(position_ - part.offset);
    const size_t read = std::min(n, part.size - begin);
    std::memcpy(out, part.memory.get() + begin, read);
    position_ += read;
    DropRead();
    Fill();
    return read;
  }

  Status PassOver(uint64_t n) override {
    position_ += n;
    DropRead();
    if (parts_.empty()) {  // far from what was read so far: begin small again
      next_ = started_ = position_;
      next_bytes_ = kLeastPartBytes;
    }
    return {};
  }

  void Rewind() override {
    position_ = started_ = 0;
    if (!parts_.empty() && parts_.front().offset == 0) return;
    parts_.clear();
    next_ = 0;
    next_bytes_ = kLeastPartBytes;
  }

  std::optional<uint64_t> size() const override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }

 private:
  struct Part {
    uint64_t offset = 0;
    size_t size = 0;
    size_t capacity = 0;
    std::unique_ptr<uint8_t[]> memory;
    std::unique_ptr<PendingRead> read;  // gone before its memory; null: it is there
  };

  // Passes a part on to the cache. One that is passed over ends that: the object is not kept.
  void Keep(const Part& part) {
    if (keeper_ == nullptr || part.offset < keeper_->size()) return;  // it has that already
    const bool next = part.offset == keeper_->size();
    if (!next || !keeper_->Append({part.memory.get(), part.size})) {
      keeper_.reset();
    } else if (keeper_->size() == file_->size()) {
      keeper_->Commit();
      keeper_.reset();
    }
  }

  // Lets go of the parts before position_.
  void DropRead() {
    while (!parts_.empty() && parts_.front().offset + parts_.front().size <= position_) {
      parts_.front().read.reset();
      spare_ = std::move(parts_.front());
      parts_.pop_front();
    }
  }

  // Begins to read what comes next, as far as the window goes, and at least what is read next.
  void Fill() {
    const int streams = open_streams.load(std::memory_order_relaxed);
    const size_t window = ReadAheadWindow(streams, position_ - started_);
    const size_t most = std::clamp(ReadAheadShare(streams) / 8, kLeastPartBytes, kMostPartBytes);
    while (next_ < file_->size()) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(std::min(next_bytes_, most), file_->size() - next_));
      // Whole parts only: what a reader frees a little at a time would be asked for a little at a time.
      if (!parts_.empty() && next_ - parts_.front().offset + size > window) break;
      Part part;
      if (spare_.memory != nullptr) part = std::move(spare_);
      if (part.capacity < size) {
        part.memory = std::make_unique_for_overwrite<uint8_t[]>(size);
        part.capacity = size;
      }
      part.offset = next_;
      part.size = size;
      part.read = remote_.Begin(next_, {part.memory.get(), size});
      parts_.push_back(std::move(part));
      next_ += size;
      next_bytes_ = std::min(2 * next_bytes_, kMostPartBytes);
    }
  }

  const std::unique_ptr<StoredFile> file_;
  RemoteFile& remote_;
  std::unique_ptr<ObjectCache::Writer> keeper_;  // null: the object is not to be kept, or it is
  uint64_t position_ = 0;                        // of the reader; in parts_.front(), if there is one
  uint64_t started_ = 0;                         // where it began to read in order
  uint64_t next_ = 0;                            // of the next part to be asked for
  size_t next_bytes_ = kLeastPartBytes;
  Part spare_;              // memory of one that was read
  std::deque<Part> parts_;  // in order, without gaps
};

}  // namespace

size_t ReadAheadShare(int streams) {
  return std::max(kReadAheadBytes / static_cast<size_t>(std::max(streams, 1)), 2 * kLeastPartBytes);
}

size_t ReadAheadWindow(int streams, uint64_t consumed) {
  const uint64_t earned = kMostPartBytes / 2 + 4 * consumed;
  return static_cast<size_t>(std::min<uint64_t>(ReadAheadShare(streams), earned));
}

std::unique_ptr<RawStream> MakeReadAhead(std::unique_ptr<StoredFile> file,
                                         std::unique_ptr<ObjectCache::Writer> keeper) {
  return std::make_unique<ReadAhead>(std::move(file), std::move(keeper));
}

}  // namespace headrace::side
