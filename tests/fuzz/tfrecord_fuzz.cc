// Any bytes as a TFRecord file, plain or gzip: records or an error, and nothing touched outside.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/fuzz/target.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"

using namespace headrace;
using namespace headrace::side;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz", 0);
  if (write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const FileRecords all = ReadFile(FileFormat::kTFRecord, "/proc/self/fd/" + std::to_string(fd), Compression::kAuto, 3);
  if (!all.status.ok() && all.status.message().find("at ") == std::string::npos) std::abort();  // names no offset
  close(fd);
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() {
  const std::string file = TFRecordOf("hello") + TFRecordOf("") + TFRecordOf(std::string(300, 'x'));
  return {file, GzipOf(file), GzipOf(file.substr(0, 20)) + GzipOf(file.substr(20))};
}
