// Records that are read from their file when they are decoded: whichever are wanted, in whatever order, and by whom.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include "sidecar/core/record.h"
#include "sidecar/source/source.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// All records of one file; owned by the SourceContext. Its decoders read them: it holds no bytes.
class StoredBlock : public Block {
 public:
  struct Extent {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  StoredBlock(SourceContext& context, uint32_t file)
      : context_(context), number_(file), path_(context.files.path(file)) {}

  virtual int64_t records() const = 0;
  virtual Extent Find(int64_t row) const = 0;

  std::span<const uint8_t> Bytes(int64_t, size_t) const override { return {}; }
  size_t memory() const override { return sizeof(*this); }
  bool holds_records() const override { return false; }
  std::string Place(int64_t row) const override;

  const std::string& path() const { return path_; }  // of the file
  // The file, opened by the first who asks. Any thread.
  Result<StoredFile*> file() const;

 private:
  void Dropped() override {}

  SourceContext& context_;
  const uint32_t number_;
  const std::string& path_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<StoredFile> file_;          // guarded by mutex_
  mutable std::atomic<StoredFile*> opened_{nullptr};  // file_: it is asked for at each record of a shuffle
};

// Reads of stored records that are asked for together: one after the other from memory, or all at once from storage.
class StoredReads {
 public:
  // `out` is written to until Finish has returned. Errors: as of reading, and Corrupt if the file has become shorter.
  Status Begin(const StoredBlock& block, uint64_t offset, std::span<uint8_t> out);
  Status Finish();
  // Where these bytes and `padding` more lie in memory; null where they have to be read, or may not be looked at. As of
  // StoredFile::Look.
  Result<const uint8_t*> Look(const StoredBlock& block, uint64_t offset, size_t bytes, size_t padding);

 private:
  void CountNow(StoredFile* file, size_t bytes);
  struct Late {
    const StoredBlock* block;
    StoredFile* file;
    uint64_t offset;
    std::span<uint8_t> out;
  };
  StoredFile* read_now_ = nullptr;  // one of those from which something was ...
  uint64_t read_now_bytes_ = 0;     // ... of all of them
  std::vector<Late> late_;
  std::vector<std::unique_ptr<PendingRead>> pending_;
};

// Reads records of stored blocks one after another into `out`, neighbours in one read. Errors: as of StoredReads.
Status ReadStored(std::span<const Record> records, uint8_t* out);

// The records of a file in its order.
std::unique_ptr<Stream<Record>> StreamOf(StoredBlock* block);
// The same, for formats with an index.
Result<std::unique_ptr<Stream<Record>>> OpenStoredRecords(SourceContext& context, uint32_t file);

// The records of `files`, file after file, for formats that index them.
std::unique_ptr<const IndexedDataset> MakeIndexedFiles(DatasetPtr<File> files, const Format& format,
                                                       SourceContext* context);

}  // namespace headrace::side
