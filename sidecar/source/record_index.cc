// The file: eight bytes "HRINDEX1", then little-endian uint64 numbers: the data file's size, a fingerprint of its first
// and last bytes, how many offsets follow, and these.
#include "sidecar/source/record_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "sidecar/source/crc32c.h"

namespace headrace::side {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'H', 'R', 'I', 'N', 'D', 'E', 'X', '1'};
constexpr size_t kEdgeBytes = 4096;

struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t size = 0;
  uint64_t fingerprint = 0;
  uint64_t offsets = 0;

  bool IsOf(const Header& file) const { return size == file.size && fingerprint == file.fingerprint; }
};

// What tells `file` from another one of its name.
Result<Header> HeaderOf(StoredFile& file) {
  Header header;
  header.size = file.size();
  std::array<uint8_t, kEdgeBytes> edge;
  ASSIGN_OR_RETURN(const size_t first, file.ReadAt(0, edge));
  header.fingerprint = Crc32c(edge.data(), first);
  ASSIGN_OR_RETURN(const size_t last, file.ReadAt(header.size - std::min<uint64_t>(header.size, kEdgeBytes), edge));
  header.fingerprint = header.fingerprint << 32 | Crc32c(edge.data(), last);
  return header;
}

}  // namespace

std::string RecordIndexPath(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // 0 if there is none
  return path.substr(0, name) + ".headrace/" + path.substr(name) + ".index";
}

Result<std::unique_ptr<RecordIndex>> LoadRecordIndex(StoredFile& file) {
  const std::string path = RecordIndexPath(file.path());
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::unique_ptr<RecordIndex>();
  ASSIGN_OR_RETURN(const Header expected, HeaderOf(file));
  const auto broken = [&](const std::string& what) {
    return Corrupt(path + ": " + what + "; make it again with `headrace index`, or remove it");
  };
  Header header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return broken("it ends within its header");
  if (header.magic != kMagic) return broken("it is no index of records");
  if (!header.IsOf(expected)) return std::unique_ptr<RecordIndex>();
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || header.offsets == 0 || header.offsets != (size - sizeof header) / sizeof(uint64_t)) {
    return broken("its " + std::to_string(size) + " bytes do not hold the " + std::to_string(header.offsets) +
                  " offsets that it says");
  }
  std::vector<uint64_t> offsets(header.offsets);
  if (!in.read(reinterpret_cast<char*>(offsets.data()),
               static_cast<std::streamsize>(offsets.size() * sizeof offsets[0])))
    return broken("it cannot be read");
  const bool rises = std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) == offsets.end();
  if (!rises || offsets.back() > header.size) return broken("its offsets do not rise, or leave the file");
  return std::make_unique<RecordIndex>(std::move(offsets));
}

Status SaveRecordIndex(const RecordIndex& index, StoredFile& file) {
  ASSIGN_OR_RETURN(Header header, HeaderOf(file));
  header.offsets = static_cast<uint64_t>(index.records()) + 1;
  const std::string path = RecordIndexPath(file.path());
  // Nobody else's: of the pods that share the volume, each loader may be process 1.
  std::random_device random;
  const std::string draft = path + "." + std::to_string(random()) + "-" + std::to_string(random());
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return Unavailable(path + ": its folder cannot be made: " + error.message());
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&header), sizeof header);
  for (int64_t record = 0; record <= index.records(); ++record) {
    const uint64_t offset = index.begin(record);
    out.write(reinterpret_cast<const char*>(&offset), sizeof offset);
  }
  out.close();
  if (out) std::filesystem::rename(draft, path, error);
  if (out && !error) return {};
  const std::string why = error ? error.message() : "the disk may be full, or the folder not writable";
  std::filesystem::remove(draft, error);
  return Unavailable(path + ": cannot be written: " + why);
}

}  // namespace headrace::side
