// Any bytes as a TFRecord file, plain or gzip: records or an error, and nothing touched outside.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "sidecar/source/tfrecord.h"

using namespace headrace;
using namespace headrace::side;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz", 0);
  if (write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  SourceContext context;
  context.files.paths = {"/proc/self/fd/" + std::to_string(fd)};
  if (auto stream = OpenTFRecord(context, 0); stream.ok()) {
    std::vector<Record> records(3);
    volatile uint8_t sink = 0;
    while (true) {
      const auto read = (*stream)->Read(records);
      if (!read.ok() && read.status().message().find("at ") == std::string::npos) std::abort();  // names no offset
      if (!read.ok() || *read == 0) break;
      for (size_t i = 0; i < *read; ++i) {
        if (records[i].size > 0) sink = sink + records[i].data[0] + records[i].data[records[i].size - 1];
      }
    }
  }
  close(fd);
  return 0;
}

#ifndef HEADRACE_LIBFUZZER
#include "tests/fuzz/mutate.h"
#include "tests/sidecar/files.h"

int main() {
  const std::string file = TFRecordOf("hello") + TFRecordOf("") + TFRecordOf(std::string(300, 'x'));
  fuzz::Mutate({file, GzipOf(file), GzipOf(file.substr(0, 20)) + GzipOf(file.substr(20))}, 20000);
  return 0;
}
#endif
