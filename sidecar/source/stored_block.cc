#include "sidecar/source/stored_block.h"

#include <algorithm>
#include <utility>

#include "sidecar/source/block_reader.h"
#include "sidecar/source/framed_records.h"
#include "sidecar/source/mapped_file.h"

namespace headrace::side {
namespace {

const StoredBlock& BlockOf(const Record& record) { return static_cast<const StoredBlock&>(*record.block.get()); }

class StoredStream : public Stream<Record> {
 public:
  explicit StoredStream(StoredBlock* block) : block_(block) {}
  Result<size_t> Read(std::span<Record> out) override {
    const auto read = static_cast<size_t>(std::min(static_cast<int64_t>(out.size()), block_->records() - next_));
    for (size_t i = 0; i < read; ++i) {
      out[i].block = BlockRef(block_);
      out[i].value = next_++;
    }
    return read;
  }
  Result<uint64_t> PassOver(uint64_t n) override {
    const uint64_t passed = std::min(n, static_cast<uint64_t>(block_->records() - next_));
    next_ += static_cast<int64_t>(passed);
    return passed;
  }

 private:
  StoredBlock* const block_;
  int64_t next_ = 0;
};

// The blocks of the files in their order, and how many records lie before each.
class FilesIndex : public Index {
 public:
  uint64_t size() const override { return size_; }
  void Get(uint64_t i, Record* out) const override {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), i);
    const auto file = static_cast<size_t>(after - begins_.begin()) - 1;
    out->block = BlockRef(blocks_[file]);
    out->value = static_cast<int64_t>(i - begins_[file]);
  }
  void Add(StoredBlock* block) {
    blocks_.push_back(block);
    begins_.push_back(size_);
    size_ += static_cast<uint64_t>(block->records());
  }

 private:
  std::vector<StoredBlock*> blocks_;
  std::vector<uint64_t> begins_;
  uint64_t size_ = 0;
};

class IndexedFiles : public IndexedDataset {
 public:
  IndexedFiles(DatasetPtr<File> files, const Format& format, SourceContext* context)
      : files_(std::move(files)), format_(format), context_(*context) {}

  Result<std::unique_ptr<Index>> MakeIndex(Pass pass) const override {
    auto index = std::make_unique<FilesIndex>();
    const auto files = files_->Iterate(pass);
    File file;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, ReadOne(*files, file));
      if (!more) return std::unique_ptr<Index>(std::move(index));
      ASSIGN_OR_RETURN(StoredBlock* const block, context_.Stored(format_, file.index));
      index->Add(block);
    }
  }

 private:
  const DatasetPtr<File> files_;
  const Format& format_;
  SourceContext& context_;
};

}  // namespace

SourceContext::SourceContext() = default;
SourceContext::~SourceContext() = default;

Result<StoredBlock*> SourceContext::Stored(const Format& format, uint32_t file) {
  ASSIGN_OR_RETURN(StoredBlock* const found, FindStored(format, file));
  if (found != nullptr) return found;
  ASSIGN_OR_RETURN(const auto records, ReadBlocks(*this, file, format.framer(*this)));
  RETURN_IF_ERROR(records->PassOver(UINT64_MAX));
  if (stored_[file] != nullptr) return stored_[file].get();
  return InvalidArgument(files.path(file) + ": where its records lie cannot be known: it is compressed, damaged, or " +
                         "holds too many of them; decompress it, or use shuffle scope Buffer");
}

Result<StoredBlock*> SourceContext::FindStored(const Format& format, uint32_t file) {
  stored_.resize(std::max<size_t>(stored_.size(), file + 1));
  if (stored_[file] != nullptr) return stored_[file].get();
  if (format.index != nullptr) {
    ASSIGN_OR_RETURN(stored_[file], format.index(*this, file));
    return stored_[file].get();
  }
  looked_for_.resize(std::max<size_t>(looked_for_.size(), file + 1));
  if (looked_for_[file] || files.remote(file) != nullptr) return nullptr;
  looked_for_[file] = true;
  std::atomic<uint64_t> not_data{0};
  ASSIGN_OR_RETURN(const auto stored, OpenLocal(files.path(file), &not_data));
  ASSIGN_OR_RETURN(auto index, LoadRecordIndex(*stored));
  if (index != nullptr) stored_[file] = std::make_unique<FramedBlock>(*this, file, std::move(index));
  return stored_[file].get();
}

Result<StoredBlock*> SourceContext::StoredInMemory(uint32_t file) {
  if (file >= stored_.size() || stored_[file] == nullptr) return nullptr;
  ASSIGN_OR_RETURN(StoredFile* const stored, stored_[file]->file());
  return stored->IsInMemory() ? stored_[file].get() : nullptr;
}

bool SourceContext::Remembers(uint32_t file) const {
  return by_number != ByNumber::kNever && (file >= stored_.size() || stored_[file] == nullptr);
}

void SourceContext::KeepIndex(uint32_t file, std::vector<uint64_t> offsets) {
  // A file that is known stays open; one that is read in a moment gains nothing.
  constexpr size_t kMostOpen = 256;
  constexpr uint64_t kLeastBytes = 4 << 20;
  // Finding a record by itself costs as much as copying so many bytes.
  constexpr uint64_t kLeastMixedBytes = 512;
  const bool small = offsets.back() < kLeastBytes || (mixed && offsets.back() / offsets.size() < kLeastMixedBytes);
  if (by_number == ByNumber::kInMemory && (indexed_files_ == kMostOpen || small)) return;
  stored_.resize(std::max<size_t>(stored_.size(), file + 1));
  if (stored_[file] != nullptr || indexed_records_ + offsets.size() > most_indexed_records()) return;
  indexed_records_ += offsets.size();
  ++indexed_files_;
  stored_[file] = std::make_unique<FramedBlock>(*this, file, std::make_unique<RecordIndex>(std::move(offsets)));
}

const std::vector<int32_t>* SourceContext::KeepColumns(std::vector<int32_t> columns) {
  const std::lock_guard lock(columns_mutex_);
  return &*column_orders_.insert(std::move(columns)).first;
}

std::string StoredBlock::Place(int64_t row) const {
  return path() + ": record at byte " + std::to_string(Find(row).offset);
}

Result<StoredFile*> StoredBlock::file() const {
  if (StoredFile* const opened = opened_.load(std::memory_order_acquire)) return opened;
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) {
    ASSIGN_OR_RETURN(file_, OpenStored(context_.files, number_, &context_.bytes_read));
    opened_.store(file_.get(), std::memory_order_release);
  }
  return file_.get();
}

Status StoredReads::Begin(const StoredBlock& block, uint64_t offset, std::span<uint8_t> out) {
  ASSIGN_OR_RETURN(StoredFile* const file, block.file());
  if (RemoteFile* const remote = file->remote()) {
    pending_.push_back(remote->Begin(offset, out));
    return {};
  }
  ASSIGN_OR_RETURN(const bool read, file->ReadNow(offset, out));
  if (!read) {
    late_.push_back({&block, file, offset, out});
  } else {
    CountNow(file, out.size());
  }
  return {};
}

Result<const uint8_t*> StoredReads::Look(const StoredBlock& block, uint64_t offset, size_t bytes, size_t padding) {
  if (!MappedReads::Allowed()) return nullptr;
  ASSIGN_OR_RETURN(StoredFile* const file, block.file());
  const uint8_t* const found = file->Look(offset, bytes, padding);
  if (found != nullptr) CountNow(file, bytes);
  return found;
}

void StoredReads::CountNow(StoredFile* file, size_t bytes) {
  read_now_ = file;
  read_now_bytes_ += bytes;
}

Status StoredReads::Finish() {
  if (read_now_ != nullptr) read_now_->CountReadNow(std::exchange(read_now_bytes_, 0));
  for (const Late& late : late_) {
    ASSIGN_OR_RETURN(const size_t read, late.file->ReadAt(late.offset, late.out));
    if (read == late.out.size()) continue;
    return Corrupt(late.block->path() + ": at byte " + std::to_string(late.offset) + ": the file ends at byte " +
                   std::to_string(late.offset + read) + ": it has become shorter since the loader started");
  }
  late_.clear();
  for (const auto& read : pending_) RETURN_IF_ERROR(read->Finish());
  pending_.clear();
  return {};
}

Status ReadStored(std::span<const Record> records, uint8_t* out) {
  StoredReads reads;
  while (!records.empty()) {
    const StoredBlock& block = BlockOf(records[0]);
    const StoredBlock::Extent first = block.Find(records[0].value);
    uint64_t bytes = first.bytes;
    size_t count = 1;
    for (; count < records.size() && records[count].block.get() == &block; ++count) {
      const StoredBlock::Extent next = block.Find(records[count].value);
      if (next.offset != first.offset + bytes) break;
      bytes += next.bytes;
    }
    RETURN_IF_ERROR(reads.Begin(block, first.offset, {out, bytes}));
    out += bytes;
    records = records.subspan(count);
  }
  return reads.Finish();
}

std::unique_ptr<Stream<Record>> StreamOf(StoredBlock* block) { return std::make_unique<StoredStream>(block); }

Result<std::unique_ptr<Stream<Record>>> OpenStoredRecords(SourceContext& context, uint32_t file) {
  ASSIGN_OR_RETURN(StoredBlock* const block, context.Stored(*context.format, file));
  return StreamOf(block);
}

std::unique_ptr<const IndexedDataset> MakeIndexedFiles(DatasetPtr<File> files, const Format& format,
                                                       SourceContext* context) {
  return std::make_unique<IndexedFiles>(std::move(files), format, context);
}

}  // namespace headrace::side
