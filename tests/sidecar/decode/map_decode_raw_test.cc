// decodeRaw by itself. Expected values are tf.io.decode_raw's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/map.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;

class DecodeRawTest : public testing::Test {
 protected:
  // Applies the operation to strings, which are records at the offsets 0, 100, ...
  template <typename T>
  std::vector<T> Decoded(const DecodeRawOp& operation, const std::vector<std::string>& strings) {
    const TensorSpec input{"record", DType::kString, {}};
    const MapSite site{"spec.pipeline[0].map", input, *MappedType(operation, input)};
    BytesBlock* const block = blocks_.Get(100 * strings.size());
    block->origin.path = &path_;
    std::vector<Record> records(strings.size());
    std::vector<BytesRef> in;
    for (size_t i = 0; i < strings.size(); ++i) {
      block->Add(100 * i, strings[i].size());
      records[i].block = BlockRef(block);
      records[i].value = static_cast<int64_t>(i);
      in.push_back({reinterpret_cast<const uint8_t*>(strings[i].data()), strings[i].size()});
    }
    std::vector<T> out(strings.size() * RowBytes(site.output) / sizeof(T));
    status_ = MakeMapOperator(operation, site)
                  ->Apply(records, reinterpret_cast<const uint8_t*>(in.data()), reinterpret_cast<uint8_t*>(out.data()));
    return out;
  }

  const std::string path_ = "a.tfrecord";
  BytesBlockPool blocks_;
  Status status_;
};

TEST_F(DecodeRawTest, ReadsLittleEndianValues) {
  const std::string one_two("\x01\x00\x02\x00", 4);
  const std::string all_high("\xff\xff\x00\x80", 4);
  EXPECT_THAT(Decoded<int16_t>({DType::kInt16, {2}}, {one_two, all_high}), ElementsAre(1, 2, -1, -32768));
  EXPECT_THAT(Decoded<uint32_t>({DType::kUint32, {}}, {one_two}), ElementsAre(0x20001));
  EXPECT_THAT(Decoded<uint8_t>({DType::kUint8, {2, 2}}, {one_two}), ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(Decoded<float>({DType::kFloat32, {1}}, {std::string("\x00\x00\xc0\x3f", 4)}), ElementsAre(1.5f));
  EXPECT_TRUE(status_.ok()) << status_.ToString();
}

TEST_F(DecodeRawTest, BoolsAreZeroAndOne) {
  EXPECT_THAT(Decoded<uint8_t>({DType::kBool, {3}}, {std::string("\x00\x01\x02", 3)}), ElementsAre(0, 1, 1));
}

TEST_F(DecodeRawTest, AnotherLengthIsAnErrorWithItsPlace) {
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{9}}) {
    Decoded<int32_t>({DType::kInt32, {2}}, {std::string(8, 'x'), std::string(bytes, 'x')});
    EXPECT_EQ(status_.ToString(),
              "Corrupt: a.tfrecord: record at byte 100: component \"record\": holds " + std::to_string(bytes) +
                  " bytes, and spec.pipeline[0].map.decodeRaw takes 8; correct its dtype and shape, or the data");
  }
}

}  // namespace
}  // namespace headrace::side
