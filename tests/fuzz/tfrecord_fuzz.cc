// Any bytes as a TFRecord file, in blocks of any size: the records that lie there, or an error. (Compressed ones:
// compression_fuzz.cc.)
#include <cstdlib>
#include <cstring>

#include "sidecar/decode/decoder.h"
#include "sidecar/source/crc32c.h"
#include "sidecar/source/tfrecord.h"
#include "tests/fuzz/frame.h"
#include "tests/fuzz/target.h"
#include "tests/sidecar/files.h"

using namespace headrace;
using namespace headrace::side;

namespace {

constexpr size_t kHeader = 12, kFooter = 4;

void Seal(std::string* file, size_t at, size_t size) {
  const uint32_t crc = MaskedCrc32c(reinterpret_cast<const uint8_t*>(file->data()) + at, size);
  std::memcpy(file->data() + at + size, &crc, sizeof crc);
}

// Gives the records the right checksums, so that what they say is looked at, and reads them. `whole`: whether nothing
// is behind them.
std::vector<std::string> Sealed(std::string* file, bool* whole) {
  std::vector<std::string> records;
  size_t at = 0;
  while (file->size() - at >= kHeader) {
    uint64_t length = 0;
    std::memcpy(&length, file->data() + at, sizeof length);
    Seal(file, at, sizeof length);
    if (length > file->size() || file->size() - at - kHeader < length + kFooter) break;
    Seal(file, at + kHeader, length);
    records.push_back(file->substr(at + kHeader, length));
    at += kHeader + length + kFooter;
  }
  *whole = at == file->size();
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static BytesBlockPool pool;
  static const auto check = CheckTFRecords(MakeBytesDecoder());
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool sealed = data[0] % 2 == 0;
  bool whole = false;
  std::vector<std::string> expected;
  if (sealed) expected = Sealed(&bytes, &whole);
  const fuzz::Framed all = fuzz::FrameAll(MakeTFRecordFramer().get(), &pool, bytes, 1 + size_t{8} * (data[0] / 2));
  if (!all.error.ok() && all.error.code() != Code::kCorrupt) std::abort();
  for (size_t i = 0; i < all.records.size(); ++i) {
    BytesRef row;
    uint8_t* const columns[] = {reinterpret_cast<uint8_t*>(&row)};
    const Status checked = check->Decode({&all.records[i], 1}, columns);
    if (!sealed && !checked.ok()) {
      if (checked.message().find("fuzz: record at byte ") == std::string::npos) std::abort();  // does not say where
      continue;
    }
    if (!checked.ok()) std::abort();
    const std::string found(reinterpret_cast<const char*>(row.data), row.size);
    if (sealed && (i >= expected.size() || found != expected[i])) std::abort();
  }
  if (sealed && (all.records.size() != expected.size() || all.error.ok() != whole)) std::abort();
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() {
  const std::string file = TFRecordOf("hello") + TFRecordOf("") + TFRecordOf(std::string(300, 'x'));
  return {'\0' + file, '\1' + file, '\10' + file.substr(0, 40), '\11' + file.substr(0, 40)};
}
