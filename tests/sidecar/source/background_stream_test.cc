#include "sidecar/source/background_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace headrace::side {
namespace {

uint8_t ByteAt(uint64_t offset) { return static_cast<uint8_t>(offset % 251); }

// `size` bytes in reads of at most `most`; then the end, or an error.
class Numbered : public ByteStream {
 public:
  Numbered(uint64_t size, size_t most, Status last = {}, std::atomic<uint64_t>* read = nullptr)
      : size_(size), most_(most), last_(std::move(last)), read_(read) {}

  Result<size_t> Read(uint8_t* out, size_t n) override {
    const auto read = static_cast<size_t>(std::min<uint64_t>({n, most_, size_ - at_}));
    if (read == 0 && !last_.ok()) return last_;
    for (size_t i = 0; i < read; ++i) out[i] = ByteAt(at_ + i);
    at_ += read;
    if (read_ != nullptr) read_->store(at_);
    return read;
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }

 private:
  const uint64_t size_;
  const size_t most_;
  const Status last_;
  std::atomic<uint64_t>* const read_;
  uint64_t at_ = 0;
};

struct Outcome {
  uint64_t size = 0;
  bool right = true;
  Status status;
};

Outcome ReadAll(ByteStream& stream, size_t step, uint64_t offset = 0) {
  Outcome outcome;
  std::vector<uint8_t> out(step);
  while (true) {
    const auto read = stream.Read(out.data(), step);
    outcome.status = read.status();
    if (!read.ok() || *read == 0) return outcome;
    for (size_t i = 0; i < *read; ++i) outcome.right &= out[i] == ByteAt(offset + outcome.size + i);
    outcome.size += *read;
  }
}

TEST(BackgroundStream, GivesAllBytesInOrder) {
  for (const size_t most : {size_t{1009}, size_t{100000000}}) {
    for (const size_t step : {size_t{777}, size_t{3000000}}) {
      const auto stream = ReadInBackground(std::make_unique<Numbered>(5000000, most));
      const Outcome outcome = ReadAll(*stream, step);
      EXPECT_TRUE(outcome.status.ok());
      EXPECT_EQ(outcome.size, 5000000u);
      EXPECT_TRUE(outcome.right);
      uint8_t one = 0;
      EXPECT_EQ(*stream->Read(&one, 1), 0u) << "and its end again";
    }
  }
}

TEST(BackgroundStream, GivesWhatThereIsBeforeAnError) {
  const auto stream = ReadInBackground(std::make_unique<Numbered>(1000001, 4096, Corrupt("x: at byte 7: broken")));
  for (int again = 0; again < 2; ++again) {
    const Outcome outcome = ReadAll(*stream, 10000);
    EXPECT_EQ(outcome.size, again == 0 ? 1000001u : 0u);
    EXPECT_TRUE(outcome.right);
    EXPECT_EQ(outcome.status.message(), "x: at byte 7: broken");
  }
}

TEST(BackgroundStream, PassesOver) {
  const auto stream = ReadInBackground(std::make_unique<Numbered>(3000000, 10000));
  uint8_t one = 0;
  ASSERT_EQ(*stream->Read(&one, 1), 1u);
  ASSERT_TRUE(stream->PassOver(999999).ok());
  const Outcome outcome = ReadAll(*stream, 5000, 1000000);
  EXPECT_EQ(outcome.size, 2000000u);
  EXPECT_TRUE(outcome.right);
  EXPECT_TRUE(stream->PassOver(10).ok()) << "beyond the end there is nothing";
}

TEST(BackgroundStream, ReadsNoFurtherAheadThanItMay) {
  std::atomic<uint64_t> read{0};
  {
    const auto stream = ReadInBackground(std::make_unique<Numbered>(uint64_t{1} << 40, 1 << 20, Status(), &read));
    uint8_t one = 0;
    ASSERT_EQ(*stream->Read(&one, 1), 1u);
  }  // waits for the thread, which stops in the middle
  EXPECT_LE(read.load(), kBackgroundBytes);
}

// Waits in Read until it is let go.
class Slow : public ByteStream {
 public:
  Slow(std::promise<void>* reads, std::shared_future<void> go) : reads_(*reads), go_(std::move(go)) {}
  Result<size_t> Read(uint8_t*, size_t) override {
    reads_.set_value();
    go_.wait();
    return size_t{0};
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }

 private:
  std::promise<void>& reads_;
  const std::shared_future<void> go_;
};

TEST(BackgroundStream, WaitsForTheReadUnderWayAtItsEnd) {
  std::promise<void> reads;
  std::promise<void> go;
  auto stream = ReadInBackground(std::make_unique<Slow>(&reads, go.get_future().share()));
  reads.get_future().wait();
  std::atomic<bool> let_go{false};
  std::thread other([&] {
    let_go = true;
    go.set_value();
  });
  stream.reset();
  EXPECT_TRUE(let_go);
  other.join();
}

}  // namespace
}  // namespace headrace::side
