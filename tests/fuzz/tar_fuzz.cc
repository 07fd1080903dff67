// Any bytes as a tar archive of samples: records that its decoder reads, or an error that says where.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/sidecar/records.h"
#include "tests/sidecar/tars.h"

using namespace headrace;
using namespace headrace::side;

// Headers with the right checksum, so that what they say is looked at.
static std::string Checked(std::string archive) {
  for (size_t at = 0; at + 512 <= archive.size(); at += 512) {
    if (archive.compare(at + 257, 5, "ustar") == 0) archive.replace(at, 512, TarChecked(archive.substr(at, 512)));
  }
  return archive;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Feature> features = [] {
    std::vector<Feature> list(5);
    list[0].name = "__key__";
    list[0].dtype = DType::kString;
    list[1].name = "jpg;txt";
    list[1].dtype = DType::kString;
    list[2].name = "cls";
    list[2].dtype = DType::kInt16;
    list[2].has_default = true;
    list[2].default_value = {7};
    list[3].name = "bin";
    list[3].dtype = DType::kInt32;
    list[3].shape = {-1, 2};
    list[4].name = "x.npy";
    list[4].shape = {2};
    list[4].padding = 1;
    return list;
  }();
  static const auto decoder = MakeSampleDecoder(features);
  const std::unique_ptr<uint8_t[]> rows[] = {std::make_unique<uint8_t[]>(16), std::make_unique<uint8_t[]>(16),
                                             std::make_unique<uint8_t[]>(2), std::make_unique<uint8_t[]>(16),
                                             std::make_unique<uint8_t[]>(8)};
  uint8_t* const columns[] = {rows[0].get(), rows[1].get(), rows[2].get(), rows[3].get(), rows[4].get()};
  const std::string archive = Checked({reinterpret_cast<const char*>(data), size});
  const int fd = memfd_create("fuzz", 0);
  if (write(fd, archive.data(), size) != static_cast<ssize_t>(size)) std::abort();
  const FileRecords all =
      ReadFile(FileFormat::kWebDataset, "/proc/self/fd/" + std::to_string(fd), Compression::kNone, 3);
  if (!all.status.ok() && all.status.message().find("at byte ") == std::string::npos) std::abort();
  close(fd);
  BytesBlockPool pool;
  for (const std::string& sample : all.records) {
    const Record record = RecordOf(&pool, {sample});
    const Status status = decoder->Decode({&record, 1}, columns);
    if (status.ok()) continue;
    if (status.code() != Code::kCorrupt || status.message().find("sample \"") == std::string::npos) std::abort();
  }
  return 0;
}

#ifndef HEADRACE_LIBFUZZER
#include "tests/fuzz/mutate.h"

int main() {
  const std::string npy = std::string("\x93NUMPY\x01\x00\x42\x00", 10) +
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }        \nabcd";
  const std::string archive = TarFile("a.cls", "12") + TarFile("a.bin", "12345678") + TarFile("a.x.npy", npy) +
                              TarFile("a.txt", "hello") + TarFile("d/", "", {.type = '5'}) + TarFile("b.jpg", "1") +
                              TarFile("b.x.npy", npy) + TarEnd();
  const std::string pax =
      TarFile("x", PaxRecord("path", "c.txt") + PaxRecord("size", "3"), {.type = 'x'}) + TarFile("a", "abc") +
      TarFile("x", "d.jpg", {.type = 'L'}) + TarFile("a", "x", {.size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\1", 12)});
  fuzz::Mutate({archive, pax, archive.substr(0, 2048) + pax}, 30000);
  return 0;
}
#endif
