// Files as memory, whose errors are signals. Expected: what POSIX says of mmap and truncated files.
#include "sidecar/source/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "sidecar/source/storage.h"
#include "tests/sidecar/files.h"

namespace headrace::side {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 64;

std::string Content() {
  std::string content(kPages * kPage, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 / 3);
  return content;
}

std::string CopyOf(const MappedFile& file, uint64_t offset, size_t bytes) {
  std::string out(bytes, '\0');
  if (!file.Copy(offset, {reinterpret_cast<uint8_t*>(out.data()), bytes})) return "failed";
  return out;
}

class MappedFiles : public testing::Test {
 protected:
  MappedFiles() {
    folder_.Write("f", Content());
    mapped_ = Mapped(kPages * kPage);
  }
  std::unique_ptr<MappedFile> Mapped(size_t size) const {
    const int fd = open(path().c_str(), O_RDONLY);
    auto mapped = MappedFile::Map(fd, size);
    close(fd);
    return mapped;
  }
  std::string path() const { return folder_.path() + "/f"; }
  // Reads page by page as a decoder does; how many pages could be had.
  static size_t ReadPages(StoredFile& file, size_t pages) {
    std::vector<uint8_t> page(kPage);
    size_t had = 0;
    for (size_t i = 0; i < pages; ++i) {
      const uint64_t offset = i * 13 % kPages * kPage;
      const auto read = file.ReadNow(offset, page);
      if (read.ok() && *read &&
          std::equal(page.begin(), page.end(), content_.begin() + static_cast<long>(offset),
                     [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); })) {
        ++had;
      }
    }
    return had;
  }

  Folder folder_;
  std::unique_ptr<MappedFile> mapped_;
  static inline const std::string content_ = Content();
};

TEST_F(MappedFiles, CopyWhatTheyHold) {
  ASSERT_NE(mapped_, nullptr);
  EXPECT_EQ(CopyOf(*mapped_, 0, 10), content_.substr(0, 10));
  EXPECT_EQ(CopyOf(*mapped_, 5000, 9000), content_.substr(5000, 9000));
}

TEST_F(MappedFiles, SayThatTheyHaveBecomeShorterFromThenOn) {
  ASSERT_NE(mapped_, nullptr);
  EXPECT_TRUE(mapped_->whole());
  std::filesystem::resize_file(path(), kPage);
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(CopyOf(*mapped_, 2 * kPage, kPage), "failed");
  EXPECT_FALSE(mapped_->whole());
  EXPECT_EQ(CopyOf(*mapped_, 0, kPage), "failed") << "nobody knows any more which pages are the file's";
  const auto again = Mapped(kPage);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(CopyOf(*again, 0, kPage), content_.substr(0, kPage));
}

TEST_F(MappedFiles, WhatReadsThemGoesOnAndIsTold) {
  ASSERT_NE(mapped_, nullptr);
  EXPECT_FALSE(MappedReads::Allowed());
  {
    const MappedReads reads;
    EXPECT_TRUE(MappedReads::Allowed());
    EXPECT_EQ(std::memcmp(mapped_->data(), content_.data(), content_.size()), 0);
    EXPECT_FALSE(reads.failed());
    std::filesystem::resize_file(path(), kPage);
    for (size_t at = kPage; at < kPages * kPage; at += kPage / 2) EXPECT_EQ(mapped_->data()[at], 0);
    EXPECT_EQ(mapped_->data()[1], static_cast<uint8_t>(content_[1])) << "of the page that is left";
    EXPECT_TRUE(reads.failed());
  }
  EXPECT_FALSE(MappedReads::Allowed());
  EXPECT_FALSE(MappedReads().failed()) << "one that begins afterwards has seen no failure";
}

TEST_F(MappedFiles, TheLastPageIsReadableToItsEnd) {
  std::filesystem::resize_file(path(), kPage + 10);
  const auto short_one = Mapped(kPage + 10);
  ASSERT_NE(short_one, nullptr);
  ASSERT_EQ(short_one->readable_bytes(), 2 * kPage);
  for (size_t at = kPage + 10; at < 2 * kPage; ++at) EXPECT_EQ(short_one->data()[at], 0);
  EXPECT_TRUE(short_one->whole());
}

TEST_F(MappedFiles, AFailureReachesAllThreadsThatRead) {
  ASSERT_NE(mapped_, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> reading{0};
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ++reading;
      for (;;) {
        const std::string copy = CopyOf(*mapped_, 2 * kPage, kPage);
        if (copy == "failed") return;
        if (copy != content_.substr(2 * kPage, kPage)) ++wrong;  // zeros that were taken for the file's
      }
    });
  }
  while (reading < 4) std::this_thread::yield();
  std::filesystem::resize_file(path(), kPage);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(MappedFiles, AFailureElsewhereIsNotTheirs) {
  ASSERT_NE(mapped_, nullptr);
  // Another file, mapped by somebody else: what ended the process before does so still.
  EXPECT_DEATH(
      {
        const int fd = open(path().c_str(), O_RDONLY);
        void* const other = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, 2 * kPage);
        std::filesystem::resize_file(path(), kPage);
        std::string copy(1, *static_cast<volatile char*>(other));
      },
      "");
}

TEST_F(MappedFiles, AnotherBusErrorStillEndsTheProcess) {
  ASSERT_NE(mapped_, nullptr);
  EXPECT_DEATH(raise(SIGBUS), "");
}

TEST_F(MappedFiles, ALocalFileThatIsInMemoryIsReadAsBeforeAndNoticesThatItBecameShorter) {
  std::atomic<uint64_t> bytes_read{0};
  const auto file = OpenLocal(path(), &bytes_read);
  ASSERT_TRUE(file.ok());
  std::vector<uint8_t> all(kPages * kPage);
  ASSERT_EQ((*file)->ReadAt(0, all).value(), all.size());  // into the page cache
  EXPECT_EQ(ReadPages(**file, 5000), 5000u);
  (*file)->CountReadNow(5000 * kPage);
  EXPECT_EQ(bytes_read, all.size() + 5000 * kPage);

  std::filesystem::resize_file(path(), kPage);
  std::vector<uint8_t> page(kPage);
  EXPECT_FALSE((*file)->ReadNow(2 * kPage, page).value());
  EXPECT_EQ((*file)->ReadAt(2 * kPage, page).value(), 0u);
  EXPECT_TRUE((*file)->ReadNow(0, page).value());
}

}  // namespace
}  // namespace headrace::side
