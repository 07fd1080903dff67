// Any bytes as a file of lines, in blocks of any size: the lines that splitting them at once gives.
#include <cstdlib>

#include "sidecar/source/lines.h"
#include "tests/fuzz/frame.h"
#include "tests/fuzz/target.h"

using namespace headrace;
using namespace headrace::side;

namespace {

std::vector<std::string> LinesOf(std::string bytes, BlankLines blank) {
  std::vector<std::string> lines;
  if (bytes.rfind(kByteOrderMark, 0) == 0) bytes.erase(0, kByteOrderMark.size());
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    std::string line = bytes.substr(0, end);
    bytes.erase(0, end == std::string::npos ? end : end + 1);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool is_blank = line.find_first_not_of(" \t") == std::string::npos;
    if (blank == BlankLines::kAreRecords || !is_blank) lines.push_back(line);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static BytesBlockPool pool;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const BlankLines blank = data[0] % 2 == 0 ? BlankLines::kAreRecords : BlankLines::kArePassedOver;
  // A byte order mark is looked for in the first block, which holds it whole.
  const fuzz::Framed all = fuzz::FrameAll(MakeLineFramer(blank).get(), &pool, bytes, 3 + data[0] / 2);
  std::vector<std::string> found;
  for (const Record& record : all.records) found.emplace_back(record.bytes().begin(), record.bytes().end());
  if (!all.error.ok() || found != LinesOf(bytes, blank)) std::abort();
  return 0;
}

const int headrace::fuzz::kMutations = 300000;

std::vector<std::string> headrace::fuzz::Seeds() {
  return {"\x04one\ntwo\r\n\n three", "\x21\xef\xbb\xbf\n\n \t\r\n{}\n\r", std::string("\x00", 1) + "\r\r\n"};
}
