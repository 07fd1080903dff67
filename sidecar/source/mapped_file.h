// A file of a mounted volume as memory: parts of it are read in less time than asking the kernel for each takes.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <span>

namespace headrace::side {

// Used by any thread. A part that is not in the page cache is waited for in the middle of reading it: for files that
// are in memory already.
//
// Where the volume fails, or the file has become shorter, there are zeros to be read from then on, and no mapped file
// of the process is whole() any more: whoever has read one asks that afterwards, and reads again in another way, which
// has the error.
class MappedFile {
 public:
  // nullptr if it cannot be mapped. `fd` may be closed afterwards. The first call in a process takes over SIGBUS for
  // mapped files; any other SIGBUS does what it did before.
  static std::unique_ptr<MappedFile> Map(int fd, uint64_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return memory_; }
  // How far data() may be read: the file's last page is filled up with zeros.
  uint64_t readable_bytes() const { return readable_bytes_; }
  bool whole() const;
  // false if it is not whole(); what `out` holds is then worth nothing. REQUIRES: it lies within the size that was
  // mapped.
  bool Copy(uint64_t offset, std::span<uint8_t> out) const;

 private:
  struct Range;
  MappedFile(const uint8_t* memory, uint64_t size);
  static void OnBusError(int number, siginfo_t* info, void* context);

  const uint8_t* const memory_;
  const uint64_t readable_bytes_;
  const uint64_t failures_before_;
  Range* const range_;
};

// While a thread has one, records may be decoded where they lie in mapped files: whatever refers to them is used before
// it ends, and thrown away if it has failed().
class MappedReads {
 public:
  MappedReads();
  ~MappedReads();
  MappedReads(const MappedReads&) = delete;
  MappedReads& operator=(const MappedReads&) = delete;

  bool failed() const;
  // Whether the calling thread has one.
  static bool Allowed();

 private:
  const uint64_t failures_before_;
};

}  // namespace headrace::side
