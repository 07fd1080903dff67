// A member is a header of 512 bytes and its content, filled up with zeros to blocks of as many:
//
//   char  name[100]  mode[8]  uid[8]  gid[8]  size[12]  mtime[12]  chksum[8]
//   char  typeflag  linkname[100]  magic[6]  version[2]  uname[32]  gname[32]  devmajor[8]  devminor[8]  prefix[155]
//
// Numbers are octal texts, or, where the first bit is set, big-endian. chksum is the sum of all bytes, with its own as
// blanks. Members of type 'x' (pax) and 'L' (GNU) hold more about the one after them.
#include "sidecar/decode/tar_member.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "sidecar/decode/number_text.h"

namespace headrace::side {
namespace {

struct Field {
  size_t offset;
  size_t size;
};
constexpr Field kName = {0, 100};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kType = 156;
constexpr Field kMagic = {257, 6};
constexpr Field kPrefix = {345, 155};

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;        // of a member
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 20;  // of what is told about one

// A field's text, which a NUL ends early.
std::string_view Text(const uint8_t* header, Field field) {
  const std::string_view text(reinterpret_cast<const char*>(header) + field.offset, field.size);
  return text.substr(0, text.find('\0'));
}

// -1: no number.
int64_t Number(const uint8_t* header, Field field) {
  const uint8_t* const bytes = header + field.offset;
  if ((bytes[0] & 0x80) != 0) {
    // All that 63 bits cannot hold is too large anyway.
    int64_t value = bytes[0] & 0x7f;
    for (size_t i = 1; i < field.size; ++i) {
      if (value >> 55 != 0) return -1;
      value = value << 8 | bytes[i];
    }
    return value;
  }
  std::string_view text = Text(header, field);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (text.empty()) return 0;
  const bool rest_is_blank = std::all_of(end, text.data() + text.size(), [](char c) { return c == ' '; });
  return error == std::errc() && rest_is_blank && value >= 0 ? value : -1;
}

bool IsZero(const uint8_t* header) {
  return std::all_of(header, header + kTarBlockBytes, [](uint8_t byte) { return byte == 0; });
}

Status Damaged(const std::string& what) {
  return Corrupt(what +
                 ": the archive is damaged, or not a tar file; write it again or take it out of "
                 "spec.source.files.paths");
}

uint64_t WholeBlocks(uint64_t bytes) { return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes; }

}  // namespace

bool IsTarHeader(const uint8_t* bytes) {
  // Eight bytes at a time, as four sums of 16 bits.
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  uint64_t sums = 0;
  for (size_t i = 0; i < kTarBlockBytes; i += sizeof sums) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    sums += (word & kEven) + (word >> 8 & kEven);
  }
  int64_t sum = 0;
  for (; sums != 0; sums >>= 16) sum += static_cast<int64_t>(sums & 0xffff);
  for (size_t i = 0; i < kChecksum.size; ++i) sum += ' ' - bytes[kChecksum.offset + i];
  const int64_t stored = Number(bytes, kChecksum);
  if (stored == sum) return true;
  // Some writers of old added the bytes as signed ones.
  for (size_t i = 0; i < kTarBlockBytes; ++i) {
    if (i < kChecksum.offset || i >= kChecksum.offset + kChecksum.size) sum -= bytes[i] >= 0x80 ? 0x100 : 0;
  }
  return stored == sum;
}

Result<TarMember::Found> TarMember::Read(std::span<const uint8_t> bytes, size_t at) {
  has_path_ = false;
  pax_size_ = -1;
  uint64_t position = at;
  while (true) {
    if (bytes.size() < position + kTarBlockBytes) {
      end_ = position + kTarBlockBytes;
      return Found::kIncomplete;
    }
    const uint8_t* const header = bytes.data() + position;
    if (header[0] == 0 && IsZero(header)) {
      if (position > at) return Damaged("a tar header that tells of the next member is the archive's last");
      return Found::kZeros;
    }
    if (!IsTarHeader(header)) return Damaged("the checksum of a tar header does not match");
    const int64_t size = Number(header, kSize);
    const auto type = static_cast<char>(header[kType]);
    const bool tells_of_next = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    const uint64_t bytes_of_file =
        tells_of_next || pax_size_ < 0 ? static_cast<uint64_t>(size) : static_cast<uint64_t>(pax_size_);
    if (size < 0 || bytes_of_file > (tells_of_next ? kMaxHeaderBytes : kMaxBytes)) {
      return Damaged("a tar header says that its member holds " +
                     (size < 0 ? "no number of bytes"
                               : std::to_string(bytes_of_file) +
                                     " bytes, more than is read: " + (tells_of_next ? "1 MiB" : "1 GiB")));
    }
    begin_ = static_cast<size_t>(position) + kTarBlockBytes;
    if (tells_of_next) {
      end_ = begin_ + WholeBlocks(bytes_of_file);
      if (bytes.size() < end_) return Found::kIncomplete;
      const std::string_view content(reinterpret_cast<const char*>(bytes.data()) + begin_, bytes_of_file);
      if (type == 'L') {
        path_ = content.substr(0, content.find('\0'));
        has_path_ = true;
      } else if (type != 'K') {
        RETURN_IF_ERROR(ReadPax(content, type == 'g'));
      }
      position = end_;
      continue;
    }
    if (type == 'S') return Corrupt("a sparse file, which is not read; write the archive without --sparse");
    // Links, folders and devices have no content, whatever their size says.
    const bool empty = type >= '1' && type <= '6';
    size_ = empty ? 0 : static_cast<size_t>(bytes_of_file);
    end_ = begin_ + WholeBlocks(size_);
    if (!has_path_) {
      path_.clear();
      // GNU's magic ends in blanks, and other things lie where ustar has the prefix.
      if (std::memcmp(header + kMagic.offset, "ustar", kMagic.size) == 0 && header[kPrefix.offset] != 0) {
        path_.append(Text(header, kPrefix)) += '/';
      }
      path_.append(Text(header, kName));
    }
    // An old folder is a file whose name ends so.
    is_file_ = type == '0' || type == '7' || (type == '\0' && !path_.ends_with('/'));
    return bytes.size() < end_ ? Found::kCut : Found::kMember;
  }
}

// "LENGTH KEY=VALUE\n" each, where the length is that of the whole record. `of_all`: about all members that follow,
// which may be in other blocks of bytes. Who made them, and when, is passed over.
Status TarMember::ReadPax(std::string_view records, bool of_all) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 2 || *end != ' ' ||
        records[length - 1] != '\n') {
      return Damaged("a pax header that cannot be read");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return Damaged("a pax header that cannot be read");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (of_all && (key == "path" || key == "size")) {
      return Corrupt("a pax header that gives all members the " + std::string(key) + " " + ShownText(value) +
                     ", which is not read; write the archive without it");
    }
    if (key == "path") {
      path_ = value;
      has_path_ = !value.empty();
    } else if (key == "size") {
      const auto [size_end, size_error] = std::from_chars(value.data(), value.data() + value.size(), pax_size_);
      if (size_error != std::errc() || size_end != value.data() + value.size() || pax_size_ < 0) {
        return Damaged("a pax header whose size is no number");
      }
    } else if (key.starts_with("GNU.sparse.")) {
      return Corrupt("a sparse file, which is not read; write the archive without --sparse");
    }
  }
  return {};
}

SampleName SampleNameOf(std::string_view path) {
  // As webdataset: "__x__" and what lies in a folder of such a name is about the data set.
  if (path.starts_with("__")) {
    const std::string_view first = path.substr(0, path.find('/'));
    if (first.size() >= 4 && first.ends_with("__")) return {};
  }
  const size_t slash = path.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return {};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace headrace::side
