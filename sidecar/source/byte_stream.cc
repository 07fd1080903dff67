#include "sidecar/source/byte_stream.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <vector>

#include "sidecar/source/storage.h"

namespace headrace::side {
namespace {

// A file as it lies.
class PlainStream : public ByteStream {
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
  std::optional<uint64_t> size() const override { return file_->size(); }
  const std::string& path() const { return file_->path(); }

 private:
  const std::unique_ptr<StoredFile> file_;
  uint64_t offset_ = 0;
};

// One gzip member after another, as gzip(1) reads them; each member's CRC is checked.
class GzipStream : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<PlainStream> file) : file_(std::move(file)), input_(256 << 10) {
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

  std::unique_ptr<PlainStream> file_;
  std::vector<uint8_t> input_;
  inflate_state state_{};
  uint64_t compressed_ = 0;       // bytes taken from the file
  bool between_members_ = false;  // at the start of a member, where the file may end
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

Result<std::unique_ptr<ByteStream>> OpenByteStream(const std::string& path, Compression compression,
                                                   std::atomic<uint64_t>* bytes_read) {
  ASSIGN_OR_RETURN(auto file, OpenStored(path, bytes_read));
  uint8_t magic[2] = {0, 0};
  ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, magic));
  const bool gzip = read == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (compression == Compression::kGzip && read > 0 && !gzip) {
    return Corrupt(path + ": at byte 0: not gzip data, though spec.source.files.compression is Gzip; use Auto or None");
  }
  if (gzip && compression != Compression::kNone) {
    return std::unique_ptr<ByteStream>(std::make_unique<GzipStream>(std::make_unique<PlainStream>(std::move(file))));
  }
  return std::unique_ptr<ByteStream>(std::make_unique<PlainStream>(std::move(file)));
}

}  // namespace headrace::side
