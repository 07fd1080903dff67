#include "sidecar/source/background_stream.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace headrace::side {
namespace {

constexpr size_t kBuffers = 3;  // one that is read, one that is filled, one that is ready meanwhile
constexpr size_t kBufferBytes = kBackgroundBytes / kBuffers;

class BackgroundStream : public ByteStream {
 public:
  explicit BackgroundStream(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {
    for (Buffer& buffer : buffers_) buffer.memory = std::make_unique_for_overwrite<uint8_t[]>(kBufferBytes);
    thread_ = std::thread([this] { Run(); });
  }
  ~BackgroundStream() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    emptied_.notify_one();
    thread_.join();
  }
  BackgroundStream(const BackgroundStream&) = delete;
  BackgroundStream& operator=(const BackgroundStream&) = delete;

  Result<size_t> Read(uint8_t* out, size_t n) override {
    return Take(n, [&](const uint8_t* bytes, size_t taken) { std::memcpy(out, bytes, taken); });
  }
  Status PassOver(uint64_t n) override {
    while (n > 0) {
      ASSIGN_OR_RETURN(const size_t passed, Take(n, [](const uint8_t*, size_t) {}));
      if (passed == 0) break;
      n -= passed;
    }
    return {};
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }

 private:
  struct Buffer {
    std::unique_ptr<uint8_t[]> memory;
    size_t size = 0;
  };

  // Gives up to n of the bytes that follow to `use`, and returns how many; 0 is the end.
  template <typename Use>
  Result<size_t> Take(uint64_t n, Use use) {
    if (!has_buffer_) {
      std::unique_lock lock(mutex_);
      filled_signal_.wait(lock, [&] { return filled_ > taken_ || ended_; });
      if (filled_ == taken_) {
        RETURN_IF_ERROR(status_);
        return size_t{0};
      }
      has_buffer_ = true;
      at_ = 0;
    }
    const Buffer& buffer = buffers_[taken_ % kBuffers];
    const auto taken = static_cast<size_t>(std::min<uint64_t>(n, buffer.size - at_));
    use(buffer.memory.get() + at_, taken);
    at_ += taken;
    if (at_ == buffer.size) {
      has_buffer_ = false;
      {
        const std::lock_guard lock(mutex_);
        ++taken_;
      }
      emptied_.notify_one();
    }
    return taken;
  }

  void Run() {
    for (uint64_t number = 0; AwaitRoom(number); ++number) {
      Buffer& buffer = buffers_[number % kBuffers];
      buffer.size = 0;
      Result<size_t> read = size_t{0};
      do {
        read = stream_->Read(buffer.memory.get() + buffer.size, kBufferBytes - buffer.size);
        if (read.ok()) buffer.size += *read;
      } while (read.ok() && *read > 0 && buffer.size < kBufferBytes);
      const bool ended = !read.ok() || *read == 0;
      {
        const std::lock_guard lock(mutex_);
        if (buffer.size > 0) filled_ = number + 1;
        if (ended) status_ = read.status();
        ended_ = ended;
      }
      filled_signal_.notify_one();
      if (ended) return;
    }
  }

  // false: to end.
  bool AwaitRoom(uint64_t number) {
    std::unique_lock lock(mutex_);
    emptied_.wait(lock, [&] { return stop_ || number - taken_ < kBuffers; });
    return !stop_;
  }

  const std::unique_ptr<ByteStream> stream_;  // the thread's
  std::array<Buffer, kBuffers> buffers_;      // the reader's from taken_ to filled_, the thread's otherwise
  // The reader's.
  bool has_buffer_ = false;  // buffers_[taken_ % kBuffers] is being read
  size_t at_ = 0;            // in that
  std::mutex mutex_;         // of what follows
  std::condition_variable filled_signal_;
  std::condition_variable emptied_;
  uint64_t filled_ = 0;
  uint64_t taken_ = 0;  // written by the reader alone
  bool ended_ = false;  // after filled_ there is nothing but status_
  bool stop_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ByteStream> ReadInBackground(std::unique_ptr<ByteStream> stream) {
  return std::make_unique<BackgroundStream>(std::move(stream));
}

}  // namespace headrace::side
