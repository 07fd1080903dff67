// Where files lie: one interface for a mounted volume and for object stores, and the table of kinds by the path's
// scheme.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "sidecar/source/file_table.h"

namespace headrace::side {

class RemoteFile;

// One open file whose content does not change while it is open. Used by any thread.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  // Reads at `offset` until `out` is full or the file ends, and returns how many bytes there were. Errors name the path
  // and the offset: NotFound, Unavailable (what may pass was tried again first), Conflict if the file has changed,
  // Cancelled.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) = 0;
  // Reads what can be had without waiting. false: that is not all of it, which is now on its way: ReadAt waits for it.
  // Whoever wants several parts asks for all of them first, and the storage has them all to work on, and then adds
  // those that were there to bytes_read, at once: a counter that all threads share is not for each of many small parts.
  virtual Result<bool> ReadNow(uint64_t, std::span<uint8_t>) { return false; }
  virtual void CountReadNow(uint64_t) {}
  // Where these bytes lie in memory, with `padding` more behind them of whatever value; null where they do not, or it
  // is not known. For a thread that has MappedReads (mapped_file.h), as long as it has. To be counted as those of
  // ReadNow.
  virtual const uint8_t* Look(uint64_t /*offset*/, size_t /*bytes*/, size_t /*padding*/) { return nullptr; }
  // That ReadAt will be called for these bytes.
  virtual void Advise(uint64_t, uint64_t) {}
  // Whether it lies in memory, as far as a few looks tell, and is still what its path names, as it was when it was
  // opened.
  virtual bool IsInMemory() { return false; }
  virtual uint64_t size() const = 0;
  virtual const std::string& path() const = 0;
  // This file, if a read of it costs a round trip, so that many should be under way at a time.
  virtual RemoteFile* remote() { return nullptr; }
};

// A read that is under way.
class PendingRead {
 public:
  // Gives it up, if it is not finished; its memory is not written to any more.
  virtual ~PendingRead() = default;
  // Returns when its memory is full. Errors as of ReadAt.
  virtual Status Finish() = 0;
};

class RemoteFile : public StoredFile {
 public:
  RemoteFile* remote() override { return this; }
  // Begins to read [offset, offset + out.size()), which must lie in the file. The file and `out` outlive the read.
  virtual std::unique_ptr<PendingRead> Begin(uint64_t offset, std::span<uint8_t> out) = 0;
};

// Opens a file of the table: of a mounted volume, or by its path's scheme, without a request. `bytes_read` counts what
// is read from storage and must outlive the file.
Result<std::unique_ptr<StoredFile>> OpenStored(const FileTable& files, size_t file, std::atomic<uint64_t>* bytes_read);

// The kinds, one file each.
Result<std::unique_ptr<StoredFile>> OpenLocal(const std::string& path, std::atomic<uint64_t>* bytes_read);
Result<std::unique_ptr<StoredFile>> OpenObject(const FileTable& files, size_t file, std::atomic<uint64_t>* bytes_read);

}  // namespace headrace::side
