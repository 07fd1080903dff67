// A file of a mounted volume as memory: small parts of it are copied in less time than asking the kernel for each
// takes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace headrace::side {

// Used by any thread. A part that is not in the page cache is waited for in the middle of a copy: for files that are
// in memory already.
class MappedFile {
 public:
  // nullptr if it cannot be mapped. `fd` may be closed afterwards. The first call in a process takes over SIGBUS for
  // copies that fail; any other SIGBUS does what it did before.
  static std::unique_ptr<MappedFile> Map(int fd, uint64_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // false, with `out` in part written: the volume failed, or the file has become shorter; a read says which. REQUIRES:
  // it lies within the size that was mapped.
  bool Copy(uint64_t offset, std::span<uint8_t> out) const;

 private:
  MappedFile(const uint8_t* memory, uint64_t size) : memory_(memory), size_(size) {}
  const uint8_t* const memory_;
  const uint64_t size_;
};

}  // namespace headrace::side
