// Where files lie: one interface for a mounted volume and for object stores, and the table of kinds by the path's
// scheme.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace headrace::side {

// One open file whose content does not change while it is open. Used by any thread.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  // Reads at `offset` until `out` is full or the file ends, and returns how many bytes there were. Errors name the path
  // and the offset: NotFound, Unavailable (what may pass was tried again first), Cancelled.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) = 0;
  virtual uint64_t size() const = 0;
  virtual const std::string& path() const = 0;
};

// Opens `path`: of a mounted volume, or by its scheme. `bytes_read` counts what is read from storage and must outlive
// the file.
Result<std::unique_ptr<StoredFile>> OpenStored(const std::string& path, std::atomic<uint64_t>* bytes_read);

}  // namespace headrace::side
