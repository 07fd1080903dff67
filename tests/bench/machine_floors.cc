// What this machine can do at most: the limits that tests/bench/loaders holds loaders to. One line a figure:
//   name  value  unit
//
//   machine_floors FILE [NAME]     FILE: what the reads are of, best 100 MiB and more; NAME: only that figure
#include <fcntl.h>
#include <isa-l/crc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;
constexpr double kSecondsEach = 0.5;
constexpr int kRuns = 3;

using Bytes = std::vector<unsigned char>;

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::string_view only;  // the figure asked for; empty: all
bool Wanted(std::string_view prefix) { return only.empty() || only.starts_with(prefix); }

// `work` returns the bytes that it went through. Prints the median of some runs, after one that warms up.
void Print(const char* name, const std::function<size_t()>& work) {
  if (!only.empty() && only != name) return;
  work();
  std::vector<double> rates;
  for (int run = 0; run < kRuns; ++run) {
    size_t bytes = 0;
    const double start = Now();
    double now = start;
    while (now < start + kSecondsEach) {
      bytes += work();
      now = Now();
    }
    rates.push_back(static_cast<double>(bytes) / (now - start) / 1e9);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%-24s %8.2f GB/s\n", name, rates[rates.size() / 2]);
  std::fflush(stdout);
}

size_t Copy(unsigned char* to, const unsigned char* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  asm volatile("" ::"r"(to) : "memory");
  return bytes;
}

void PrintCopies() {
  Bytes from(kGiB, 1), to(kGiB, 2);
  Print("memcpy_1MiB_hot", [&] { return Copy(to.data(), from.data(), kMiB); });
  Print("memcpy_1GiB", [&] { return Copy(to.data(), from.data(), kGiB); });
  Print("memcpy_1GiB_2_threads", [&] {
    std::thread other([&] { Copy(to.data(), from.data(), kGiB / 2); });
    Copy(to.data() + kGiB / 2, from.data() + kGiB / 2, kGiB / 2);
    other.join();
    return kGiB;
  });
}

void PrintChecksums() {
  Bytes data(kMiB, 3);
  const auto checksums = [&](size_t block) {
    unsigned crc = 0;
    for (size_t at = 0; at < kMiB; at += block) crc ^= crc32_iscsi(data.data() + at, static_cast<int>(block), ~0U);
    asm volatile("" ::"r"(crc));
    return kMiB;
  };
  Print("crc32c_1MiB", [&] { return checksums(kMiB); });
  Print("crc32c_1KiB", [&] { return checksums(kKiB); });
}

// The file's blocks, each once, into one buffer that stays in the processor's cache.
size_t ReadBlocks(int fd, const std::vector<size_t>& blocks, Bytes* buffer) {
  for (const size_t block : blocks) {
    const ssize_t count = pread(fd, buffer->data(), buffer->size(), static_cast<off_t>(block * buffer->size()));
    if (count != static_cast<ssize_t>(buffer->size())) Fail("pread");
  }
  return blocks.size() * buffer->size();
}

void PrintReads(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) Fail(path);
  Bytes large(kMiB), small(4 * kKiB);
  std::vector<size_t> in_order(static_cast<size_t>(status.st_size) / large.size());
  std::vector<size_t> at_random(static_cast<size_t>(status.st_size) / small.size());
  std::iota(in_order.begin(), in_order.end(), size_t{0});
  std::iota(at_random.begin(), at_random.end(), size_t{0});
  std::shuffle(at_random.begin(), at_random.end(), std::mt19937_64(1));
  Print("page_cache_1MiB", [&] { return ReadBlocks(fd, in_order, &large); });
  Print("page_cache_4KiB_random", [&] { return ReadBlocks(fd, at_random, &small); });
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: machine_floors FILE [NAME]\n");
    return 2;
  }
  if (argc == 3) only = argv[2];
  if (Wanted("memcpy_")) PrintCopies();
  if (Wanted("crc32c_")) PrintChecksums();
  if (Wanted("page_cache_")) PrintReads(argv[1]);
  return 0;
}
