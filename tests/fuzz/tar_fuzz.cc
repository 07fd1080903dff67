// Any bytes as a tar archive of samples, in blocks of any size: the samples that it has in one block, which its decoder
// reads, or an error that says where.
#include <cstdlib>

#include "sidecar/decode/decoder.h"
#include "sidecar/source/tar.h"
#include "tests/fuzz/frame.h"
#include "tests/fuzz/target.h"
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
  if (size == 0) return 0;
  const std::string archive = Checked({reinterpret_cast<const char*>(data) + 1, size - 1});
  static BytesBlockPool pool;
  const fuzz::Framed whole = fuzz::FrameAll(MakeTarFramer().get(), &pool, archive, archive.size() + 1);
  const fuzz::Framed all = fuzz::FrameAll(MakeTarFramer().get(), &pool, archive, 1 + size_t{8} * data[0]);
  if (all.error.message() != whole.error.message() || all.records.size() != whole.records.size()) std::abort();
  for (size_t i = 0; i < all.records.size(); ++i) {
    const auto bytes = all.records[i].bytes();
    const auto same = whole.records[i].bytes();
    if (!std::equal(bytes.begin(), bytes.end(), same.begin(), same.end())) std::abort();
    const Status status = decoder->Decode({&all.records[i], 1}, columns);
    if (status.ok()) continue;
    if (status.code() != Code::kCorrupt || status.message().find("sample \"") == std::string::npos) std::abort();
  }
  return 0;
}

const int headrace::fuzz::kMutations = 30000;

std::vector<std::string> headrace::fuzz::Seeds() {
  const std::string npy = std::string("\x93NUMPY\x01\x00\x42\x00", 10) +
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }        \nabcd";
  const std::string archive = TarFile("a.cls", "12") + TarFile("a.bin", "12345678") + TarFile("a.x.npy", npy) +
                              TarFile("a.txt", "hello") + TarFile("d/", "", {.type = '5'}) + TarFile("b.jpg", "1") +
                              TarFile("b.x.npy", npy) + TarEnd();
  const std::string pax = TarFile("x", PaxRecord("path", "c.txt") + PaxRecord("size", "3"), {.type = 'x'}) +
                          TarFile("a", "abc") + TarFile("x", "d.jpg", {.type = 'L'}) +
                          TarFile("a", "x", {.size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\1", 12)});
  // The first byte chooses the size of blocks.
  return {"\x10" + archive, "\x80" + pax, "\xff" + archive.substr(0, 2048) + pax};
}
