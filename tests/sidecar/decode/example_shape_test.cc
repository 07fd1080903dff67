#include "sidecar/decode/example_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sidecar/decode/decoder.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"

namespace headrace::side {
namespace {

const std::vector<std::string_view> kNames = {"x", "y"};

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string TextOf(const std::string& message, const ExampleShape::Values& values) {
  return message.substr(values.begin, values.size);
}

TEST(ExampleShape, SaysWhereValuesLie) {
  const std::string message =
      ExampleOf({{"y", Int64List({5, 300})}, {"more", FloatList({1})}, {"x", BytesList("abc")}});
  const auto shape = ExampleShape::Of(BytesOf(message), kNames);
  ASSERT_TRUE(shape);
  ASSERT_EQ(shape->values().size(), 2u);
  EXPECT_EQ(shape->values()[0].feature, 1u);
  EXPECT_EQ(shape->values()[0].kind, ExampleShape::Kind::kInts);
  EXPECT_EQ(TextOf(message, shape->values()[0]), Varint(5) + Varint(300));
  EXPECT_EQ(shape->values()[1].feature, 0u);
  EXPECT_EQ(TextOf(message, shape->values()[1]), "abc");
}

// Values may change, and what belongs to features that nobody asks for; nothing else.
TEST(ExampleShape, FitsWhatDiffersInValuesOnly) {
  const std::string other = FloatList({1});
  const std::string message = ExampleOf({{"y", Int64List({5, 300})}, {"more", other}, {"x", BytesList("abc")}});
  const auto shape = ExampleShape::Of(BytesOf(message), kNames);
  ASSERT_TRUE(shape);
  size_t free_bytes = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    bool free = i >= message.find(other) && i < message.find(other) + other.size();
    for (const auto& values : shape->values()) free = free || (i >= values.begin && i < values.begin + values.size);
    std::string changed = message;
    changed[i] ^= 1;
    EXPECT_EQ(shape->Fits(BytesOf(changed)), free) << i;
    free_bytes += free ? 1 : 0;
  }
  EXPECT_EQ(free_bytes, 3 + other.size() + 3);
  EXPECT_FALSE(shape->Fits(BytesOf(message + "x")));
  EXPECT_FALSE(shape->Fits(BytesOf(message.substr(1))));
}

TEST(ExampleShape, IsNoneOfIrregularMessages) {
  const auto none = [](const std::string& message) { return !ExampleShape::Of(BytesOf(message), kNames); };
  const std::string x = Message(1, Message(1, "x") + Message(2, BytesList("abc")));
  EXPECT_FALSE(none(Message(1, x)));
  EXPECT_TRUE(none(""));
  EXPECT_TRUE(none(Message(1, x) + Message(1, x))) << "features in two parts";
  EXPECT_TRUE(none(Message(1, x + x))) << "a feature twice";
  EXPECT_TRUE(none(Message(2, x))) << "another field";
  EXPECT_TRUE(none(Message(1, Message(1, Message(2, BytesList("abc")) + Message(1, "x")))))
      << "the value before its key";
  EXPECT_TRUE(none(ExampleOf({{"x", BytesList("a") + BytesList("b")}}))) << "two lists";
  EXPECT_TRUE(none(ExampleOf({{"x", Message(1, Message(1, "a") + Message(1, "b"))}}))) << "two values";
  EXPECT_TRUE(none(ExampleOf({{"x", Message(1, "")}}))) << "no value";
  EXPECT_TRUE(none(ExampleOf({{"x", ""}}))) << "no list";
  EXPECT_TRUE(none(ExampleOf({{"x", Message(3, Varint(1 << 3) + Varint(5))}}))) << "not packed";
}

// A decoder that has seen many records says of each what a new one says.
TEST(ExampleShape, ChangesNothingThatIsDecoded) {
  const std::vector<Feature> features = {{"x", {}, "", DType::kUint8, {3}, {}, false},
                                         {"y", {}, "", DType::kInt16, {}, {9}, true},
                                         {"f", {}, "", DType::kFloat16, {2}, {0.5}, true}};
  const auto old = MakeExampleDecoder(features);
  BytesBlockPool pool;
  uint64_t random = 1;
  int failed = 0;
  for (int i = 0; i < 3000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const auto pick = [&](int bit, uint64_t most) { return (random >> (20 + 4 * bit)) % most; };
    const std::string x = BytesList(std::string(pick(0, 50) == 0 ? 4 : 3, static_cast<char>(i)));
    const std::string y = Int64List({static_cast<int64_t>(pick(1, 3) == 0 ? pick(2, 40000) : pick(2, 100))});
    std::vector<std::pair<std::string, std::string>> example = {{"x", x}, {"other", y}};
    if (pick(3, 4) != 0) example.push_back({"y", y});
    if (pick(4, 4) == 0) example.push_back({"f", FloatList({static_cast<float>(i), 0.25F})});
    const Record record = RecordOf(&pool, {ExampleOf(example)});
    std::vector<std::vector<uint8_t>> rows[2];
    Status status[2];
    for (int fresh = 0; fresh < 2; ++fresh) {
      std::vector<uint8_t*> columns;
      rows[fresh] = {std::vector<uint8_t>(3), std::vector<uint8_t>(2), std::vector<uint8_t>(4)};
      for (auto& row : rows[fresh]) columns.push_back(row.data());
      status[fresh] = (fresh == 0 ? *old : *MakeExampleDecoder(features)).Decode({&record, 1}, columns);
    }
    ASSERT_EQ(status[0].ToString(), status[1].ToString()) << i;
    if (status[0].ok()) {
      ASSERT_EQ(rows[0], rows[1]) << i;
    }
    failed += status[0].ok() ? 0 : 1;
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, 1000);
}

}  // namespace
}  // namespace headrace::side
