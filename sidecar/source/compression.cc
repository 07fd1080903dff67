#include "sidecar/source/compression.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sidecar/source/background_stream.h"
#include "sidecar/source/codec.h"

namespace headrace::side {
namespace {

class DecompressedStream : public ByteStream {
 public:
  DecompressedStream(std::unique_ptr<RawStream> file, const Codec& codec)
      : input_(std::move(file)), decompressor_(codec.make()) {}

  Result<size_t> Read(uint8_t* out, size_t n) override { return decompressor_->Read(&input_, out, n); }
  std::optional<uint64_t> size() const override { return std::nullopt; }

 private:
  CompressedInput input_;
  const std::unique_ptr<Decompressor> decompressor_;
};

const Codec* FindCodec(std::span<const uint8_t> first) {
  const auto codecs = Codecs();
  const auto found = std::ranges::find_if(codecs, [&](const Codec* codec) { return codec->begins(first); });
  return found == codecs.end() ? nullptr : *found;
}

Status NotCompressedBy(Compression asked, const std::string& path, const Codec* found) {
  const std::string name(CompressionName(asked));
  std::string looks_like = "no compression that is read";
  std::string remedy = "None, or write it again as " + name;
  if (found != nullptr) {
    looks_like = CompressionName(found->compression);
    remedy = "Auto or " + looks_like;
  } else if (asked == Compression::kSnappy) {
    looks_like += " (snappy is read in its framing format, and not in Hadoop's blocks)";
  }
  return Corrupt(path + ": at byte 0: spec.source.files.compression is " + name + ", and the file looks like " +
                 looks_like + "; use " + remedy);
}

}  // namespace

CompressedInput::CompressedInput(std::unique_ptr<RawStream> file)
    : file_(std::move(file)), buffer_(std::make_unique_for_overwrite<uint8_t[]>(kMostBytes)) {}

Result<std::span<const uint8_t>> CompressedInput::Peek(size_t n) {
  if (end_ - begin_ < n && !ended_) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    while (end_ < n && !ended_) {
      ASSIGN_OR_RETURN(const size_t read, file_->Read(buffer_.get() + end_, kMostBytes - end_));
      end_ += read;
      read_ += read;
      ended_ = read == 0;
    }
  }
  return std::span<const uint8_t>(buffer_.get() + begin_, end_ - begin_);
}

Status CompressedInput::Broken(const std::string& what) const {
  return Corrupt(file_->path() + ": at compressed byte " + std::to_string(read_ - (end_ - begin_)) + ": " + what +
                 "; write the file again or take it out of spec.source.files.paths");
}

Status CompressedInput::Truncated(const std::string& inside) const {
  return Broken("the file ends inside a " + inside + ": it was truncated");
}

Result<std::unique_ptr<ByteStream>> Decompress(std::unique_ptr<RawStream> file, Compression compression) {
  if (compression == Compression::kNone) return std::unique_ptr<ByteStream>(std::move(file));
  uint8_t first[kFirstBytes];
  ASSIGN_OR_RETURN(const size_t read, file->Read(first, sizeof first));
  file->Rewind();
  const Codec* const codec = FindCodec({first, read});
  if (compression != Compression::kAuto && read > 0 && (codec == nullptr || codec->compression != compression)) {
    return NotCompressedBy(compression, file->path(), codec);
  }
  if (codec == nullptr) return std::unique_ptr<ByteStream>(std::move(file));
  return ReadInBackground(std::make_unique<DecompressedStream>(std::move(file), *codec));
}

}  // namespace headrace::side
