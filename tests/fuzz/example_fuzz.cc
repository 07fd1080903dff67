// Any bytes as a tf.train.Example: a row or an error, and nothing touched outside the bytes and the row. A decoder that
// has seen others before says the same as a new one.
#include <cstdlib>

#include "sidecar/decode/decoder.h"
#include "tests/fuzz/target.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"

using namespace headrace;
using namespace headrace::side;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Feature> features = {{"x", {}, "", DType::kFloat32, {2}, {}, false},
                                                {"y", {}, "", DType::kInt16, {}, {7}, true},
                                                {"z", {}, "", DType::kUint8, {3}, {}, false},
                                                {"h", {}, "", DType::kFloat16, {2}, {0.5}, true}};
  static const auto decoder = MakeExampleDecoder(features);
  const std::unique_ptr<uint8_t[]> rows[] = {std::make_unique<uint8_t[]>(8), std::make_unique<uint8_t[]>(2),
                                             std::make_unique<uint8_t[]>(3), std::make_unique<uint8_t[]>(4)};
  uint8_t* const columns[] = {rows[0].get(), rows[1].get(), rows[2].get(), rows[3].get()};
  static BytesBlockPool pool;
  const Record record = RecordOf(&pool, {std::string(reinterpret_cast<const char*>(data), size)});
  const Status status = decoder->Decode({&record, 1}, columns);
  if (!status.ok() && status.message().empty()) std::abort();  // an error that says nothing
  const std::vector<size_t> sizes = {8, 2, 3, 4};
  std::vector<std::vector<uint8_t>> fresh;
  std::vector<uint8_t*> fresh_columns;
  for (const size_t bytes : sizes) fresh_columns.push_back(fresh.emplace_back(bytes).data());
  const Status expected = MakeExampleDecoder(features)->Decode({&record, 1}, fresh_columns);
  if (expected.ToString() != status.ToString()) std::abort();
  for (size_t c = 0; status.ok() && c < fresh.size(); ++c) {
    if (std::memcmp(columns[c], fresh[c].data(), sizes[c]) != 0) std::abort();
  }
  return 0;
}

const int headrace::fuzz::kMutations = 200000;

std::vector<std::string> headrace::fuzz::Seeds() {
  const std::string unpacked = Message(3, Varint(1 << 3) + Varint(5));
  return {ExampleOf({{"x", FloatList({1, 2})}, {"y", Int64List({3})}, {"z", BytesList("abc")}}),
          ExampleOf({{"z", BytesList("abc")}, {"h", FloatList({1, 2})}, {"y", unpacked}, {"x", FloatList({1, 2})}})};
}
