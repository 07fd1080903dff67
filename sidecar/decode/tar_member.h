// The members of a tar archive: ustar (POSIX.1-1988), with pax headers (POSIX.1-2001), GNU's long names and numbers,
// and what came before them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace headrace::side {

inline constexpr size_t kTarBlockBytes = 512;

// Used by one thread: keeps its memory from member to member.
class TarMember {
 public:
  enum class Found { kMember, kCut, kIncomplete, kZeros };

  // Reads the member whose first header is at bytes[at]. kCut: not all of its content is there, which ends at end().
  // kIncomplete: nor are its headers, so that end() bytes or more are needed. kZeros: a block of zeros is there, which
  // ends an archive. Errors: Corrupt, in words that follow the member's place.
  Result<Found> Read(std::span<const uint8_t> bytes, size_t at);

  // Of the last kMember or kCut.
  const std::string& path() const { return path_; }
  bool is_file() const { return is_file_; }  // and not a folder, link or device
  size_t begin() const { return begin_; }    // of its content
  size_t size() const { return size_; }      // of its content
  size_t end() const { return end_; }        // after it, where the next begins

 private:
  Status ReadPax(std::string_view records, bool of_all);

  std::string path_;
  bool is_file_ = false;
  size_t begin_ = 0;
  size_t size_ = 0;
  size_t end_ = 0;
  bool has_path_ = false;  // by a header before that of ustar
  int64_t pax_size_ = -1;  // likewise; -1: none
};

// Whether bytes[0, kTarBlockBytes) are a header with the right checksum.
bool IsTarHeader(const uint8_t* bytes);

// How WebDataset names samples: the member belongs to the sample `key`, as its field `field`. "dir.x/a.seg.png" is
// field "seg.png" of "dir.x/a".
struct SampleName {
  std::string_view key;
  std::string_view field;
};
// Of a file's path. An empty key: it belongs to none, being hidden ("__meta__", "dir/.x") or without a '.' in its name.
SampleName SampleNameOf(std::string_view path);

}  // namespace headrace::side
