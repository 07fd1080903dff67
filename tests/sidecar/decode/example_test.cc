#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sidecar/decode/convert.h"
#include "sidecar/decode/decoder.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Decodes one record into one row of each feature.
class Decoded {
 public:
  Decoded(std::vector<Feature> features, const std::string& bytes) {
    for (const Feature& feature : features) {
      size_t size = DTypeSize(feature.dtype);
      for (const int64_t dim : feature.shape) size *= static_cast<size_t>(dim);
      columns_.emplace_back(size, uint8_t{0xee});
    }
    std::vector<uint8_t*> outs;
    for (auto& column : columns_) outs.push_back(column.data());
    BytesBlockPool pool;
    const Record record = RecordOf(&pool, {bytes});
    status_ = MakeExampleDecoder(features)->Decode({&record, 1}, outs);
  }
  const Status& status() const { return status_; }
  template <typename T>
  std::vector<T> Values(size_t column) const {
    std::vector<T> values(columns_[column].size() / sizeof(T));
    std::memcpy(values.data(), columns_[column].data(), columns_[column].size());
    return values;
  }

 private:
  std::vector<std::vector<uint8_t>> columns_;
  Status status_;
};

Feature Of(const std::string& name, DType dtype, std::vector<int64_t> shape = {}) {
  Feature feature;
  feature.name = name;
  feature.dtype = dtype;
  feature.shape = std::move(shape);
  return feature;
}

TEST(Example, ReadsEachKindOfListInAnyOrder) {
  const std::vector<Feature> features = {Of("x", DType::kFloat32, {2}), Of("y", DType::kInt64),
                                         Of("z", DType::kUint8, {3})};
  const std::string forward =
      ExampleOf({{"x", FloatList({1.5f, -2})}, {"y", Int64List({-7})}, {"z", BytesList("abc")}});
  const std::string backward = ExampleOf(
      {{"z", BytesList("abc")}, {"other", Int64List({1, 2})}, {"y", Int64List({-7})}, {"x", FloatList({1.5f, -2})}});
  for (const std::string& bytes : {forward, backward}) {
    const Decoded decoded(features, bytes);
    ASSERT_TRUE(decoded.status().ok()) << decoded.status().message();
    EXPECT_THAT(decoded.Values<float>(0), ElementsAre(1.5f, -2.0f));
    EXPECT_THAT(decoded.Values<int64_t>(1), ElementsAre(-7));
    EXPECT_THAT(decoded.Values<uint8_t>(2), ElementsAre('a', 'b', 'c'));
  }
}

TEST(Example, ReadsUnpackedListsAndTakesTheLastOfARepeatedKey) {
  const std::string unpacked = Message(3, Varint(1 << 3) + Varint(5) + Varint(1 << 3) + Varint(6));
  const Decoded decoded({Of("y", DType::kInt32, {2})}, ExampleOf({{"y", Int64List({1, 2})}, {"y", unpacked}}));
  ASSERT_TRUE(decoded.status().ok()) << decoded.status().message();
  EXPECT_THAT(decoded.Values<int32_t>(0), ElementsAre(5, 6));
}

TEST(Example, FillsDefaults) {
  Feature filled = Of("x", DType::kFloat32, {2});
  filled.default_value = {0.5};
  filled.has_default = true;
  Feature each = Of("y", DType::kInt64, {2});
  each.default_value = {1, 2};
  each.has_default = true;
  const Decoded decoded({filled, each}, ExampleOf({{"y", ""}}));  // a feature of no kind is a missing one
  ASSERT_TRUE(decoded.status().ok()) << decoded.status().message();
  EXPECT_THAT(decoded.Values<float>(0), ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(decoded.Values<int64_t>(1), ElementsAre(1, 2));
}

struct BadExample {
  Feature feature;
  std::string bytes;
  const char* says;
};

class Bad : public testing::TestWithParam<BadExample> {};

TEST_P(Bad, NamesFileOffsetAndFeature) {
  const Decoded decoded({GetParam().feature}, GetParam().bytes);
  EXPECT_EQ(decoded.status().code(), Code::kCorrupt);
  EXPECT_THAT(decoded.status().message(), HasSubstr("a.tfrecord: record at byte 48: "));
  EXPECT_THAT(decoded.status().message(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, Bad,
    testing::Values(
        BadExample{Of("x", DType::kInt64), ExampleOf({{"y", Int64List({1})}}), "feature \"x\" is missing"},
        BadExample{Of("x", DType::kInt64, {2}), ExampleOf({{"x", Int64List({1})}}),
                   "holds 1 integers and its shape takes 2"},
        BadExample{Of("x", DType::kFloat32, {2}), ExampleOf({{"x", FloatList({1, 2, 3})}}), "holds 3 floats"},
        BadExample{Of("x", DType::kUint8, {4}), ExampleOf({{"x", BytesList("abc")}}), "holds 3 bytes"},
        BadExample{Of("x", DType::kInt8), ExampleOf({{"x", Int64List({128})}}), "holds 128, which is no int8"},
        BadExample{Of("x", DType::kUint64), ExampleOf({{"x", Int64List({-1})}}), "holds -1, which is no uint64"},
        BadExample{Of("x", DType::kFloat32), ExampleOf({{"x", Int64List({1})}}), "is an int64_list"},
        BadExample{Of("x", DType::kInt64), ExampleOf({{"x", FloatList({1})}}), "is a float_list"},
        BadExample{Of("x", DType::kInt64), ExampleOf({{"x", BytesList("1")}}), "is a bytes_list"},
        BadExample{Of("x", DType::kInt64), "not an example", "are not a tf.train.Example"},
        BadExample{Of("x", DType::kInt64), ExampleOf({{"x", Int64List({1})}}).substr(0, 12),
                   "are not a tf.train.Example"}));

TEST(Convert, RoundsHalvesToNearestEven) {
  // Values of IEEE 754 binary16: largest, smallest subnormal, ties.
  EXPECT_EQ(ToFloat16(1.0f), 0x3c00);
  EXPECT_EQ(ToFloat16(-2.0f), 0xc000);
  EXPECT_EQ(ToFloat16(65504.0f), 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f), 0x7c00);
  EXPECT_EQ(ToFloat16(5.9604645e-8f), 0x0001);
  EXPECT_EQ(ToFloat16(2049.0f), 0x6800);  // tie between 2048 and 2050: the even one
  EXPECT_EQ(ToFloat16(2051.0f), 0x6802);
  EXPECT_EQ(ToFloat16(INFINITY), 0x7c00);
  EXPECT_EQ(ToFloat16(NAN) & 0x7c00, 0x7c00);
  EXPECT_NE(ToFloat16(NAN) & 0x3ff, 0);
  EXPECT_EQ(ToBfloat16(1.0f), 0x3f80);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie: even
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
}

}  // namespace
}  // namespace headrace::side
