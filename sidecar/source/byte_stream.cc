#include "sidecar/source/byte_stream.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <vector>

#include "sidecar/source/raw_stream.h"

namespace headrace::side {
namespace {

class PlainStream : public RawStream {
 public:
  explicit PlainStream(std::unique_ptr<StoredFile> file) : file_(std::move(file)) {}

  Result<size_t> Read(uint8_t* out, size_t n) override {
    ASSIGN_OR_RETURN(const size_t read, file_->ReadAt(offset_, {out, n}));
    offset_ += read;
    return read;
  }
  Status PassOver(uint64_t n) override {
    offset_ += n;
    return {};
  }
  void Rewind() override { offset_ = 0; }
  std::optional<uint64_t> size() const override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<StoredFile> file_;
  uint64_t offset_ = 0;
};

// One gzip member after another, as gzip(1) reads them; each member's CRC is checked.
class GzipStream : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<RawStream> file) : file_(std::move(file)), input_(256 << 10) {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }

  Result<size_t> Read(uint8_t* out, size_t n) override {
    const size_t wanted = n < kMaxStep ? n : kMaxStep;
    state_.next_out = out;
    state_.avail_out = static_cast<uint32_t>(wanted);
    while (state_.avail_out == wanted) {
      if (state_.avail_in == 0) {
        ASSIGN_OR_RETURN(const size_t read, file_->Read(input_.data(), input_.size()));
        state_.next_in = input_.data();
        state_.avail_in = static_cast<uint32_t>(read);
        compressed_ += read;
        if (read == 0) {
          if (between_members_) break;
          return Broken("the file ends inside a gzip member: it was truncated");
        }
      }
      if (between_members_) {
        isal_inflate_reset(&state_);
        state_.crc_flag = ISAL_GZIP;
        between_members_ = false;
      }
      const int rc = isal_inflate(&state_);
      if (rc == ISAL_INCORRECT_CHECKSUM) return Broken("the gzip checksum does not match: the file is damaged");
      if (rc != ISAL_DECOMP_OK) return Broken("not gzip data (isa-l error " + std::to_string(rc) + ")");
      if (state_.block_state == ISAL_BLOCK_FINISH) between_members_ = true;
    }
    return wanted - state_.avail_out;
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }

 private:
  static constexpr size_t kMaxStep = 1 << 30;  // isa-l counts in 32 bits

  Status Broken(const std::string& what) const {
    return Corrupt(file_->path() + ": at compressed byte " + std::to_string(compressed_ - state_.avail_in) + ": " +
                   what + "; write the file again or take it out of spec.source.files.paths");
  }

  std::unique_ptr<RawStream> file_;
  std::vector<uint8_t> input_;
  inflate_state state_{};
  uint64_t compressed_ = 0;       // bytes taken from the file
  bool between_members_ = false;  // at the start of a member, where the file may end
};

// By the file's first bytes, of which this reads a few.
Result<std::unique_ptr<ByteStream>> Decompress(std::unique_ptr<RawStream> file, Compression compression) {
  uint8_t magic[2] = {0, 0};
  ASSIGN_OR_RETURN(const size_t read, file->Read(magic, sizeof magic));
  file->Rewind();
  const bool gzip = read == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (compression == Compression::kGzip && read > 0 && !gzip) {
    return Corrupt(file->path() +
                   ": at byte 0: not gzip data, though spec.source.files.compression is Gzip; use Auto or None");
  }
  if (gzip && compression != Compression::kNone) {
    return std::unique_ptr<ByteStream>(std::make_unique<GzipStream>(std::move(file)));
  }
  return std::unique_ptr<ByteStream>(std::move(file));
}

// A remote file, whose first bytes are waited for when they are needed and not when it is opened: so the next ones can
// be opened, and are on their way, while one is read.
class LateStream : public ByteStream {
 public:
  LateStream(std::unique_ptr<RawStream> file, Compression compression)
      : file_(std::move(file)), compression_(compression) {}

  Result<size_t> Read(uint8_t* out, size_t n) override {
    RETURN_IF_ERROR(Open());
    return stream_->Read(out, n);
  }
  Status PassOver(uint64_t n) override {
    RETURN_IF_ERROR(Open());
    return stream_->PassOver(n);
  }
  std::optional<uint64_t> size() const override { return stream_ == nullptr ? std::nullopt : stream_->size(); }

 private:
  Status Open() {
    if (file_ == nullptr) return status_;
    auto stream = Decompress(std::move(file_), compression_);
    status_ = stream.status();
    if (stream.ok()) stream_ = std::move(*stream);
    return status_;
  }

  std::unique_ptr<RawStream> file_;  // until the first read
  const Compression compression_;
  Status status_;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace

Status ByteStream::PassOver(uint64_t n) {
  std::vector<uint8_t> dropped(std::min<uint64_t>(n, 256 << 10));
  while (n > 0) {
    ASSIGN_OR_RETURN(const size_t read, Read(dropped.data(), std::min<uint64_t>(n, dropped.size())));
    if (read == 0) break;
    n -= read;
  }
  return {};
}

std::unique_ptr<RawStream> MakePlainStream(std::unique_ptr<StoredFile> file) {
  return std::make_unique<PlainStream>(std::move(file));
}

Result<std::unique_ptr<ByteStream>> OpenByteStream(const FileTable& files, size_t file, Compression compression,
                                                   std::atomic<uint64_t>* bytes_read) {
  ASSIGN_OR_RETURN(auto stored, OpenStored(files, file, bytes_read));
  if (stored->remote() == nullptr) return Decompress(MakePlainStream(std::move(stored)), compression);
  auto ahead = MakeReadAhead(std::move(stored));
  if (compression == Compression::kNone) return std::unique_ptr<ByteStream>(std::move(ahead));
  return std::unique_ptr<ByteStream>(std::make_unique<LateStream>(std::move(ahead), compression));
}

}  // namespace headrace::side
