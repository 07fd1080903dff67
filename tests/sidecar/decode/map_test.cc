#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sidecar/decode/convert.h"
#include "sidecar/decode/values.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One tensor "x" of the given values, each a record, through `pipeline`.
std::string Tensor(const std::string& dtype, const std::string& values, const std::string& pipeline, int64_t rows,
                   const std::string& shape = "") {
  return R"({"source": {"tensors": [{"name": "x", "dtype": ")" + dtype + R"(", "shape": [)" + std::to_string(rows) +
         shape + R"(], "values": )" + values + R"(}]}, "pipeline": )" + pipeline + "}";
}

template <typename T>
std::vector<T> Mapped(const std::string& spec, size_t component = 0) {
  PipelineRun run(spec);
  auto values = run.Values<T>(component);
  EXPECT_TRUE(run.status().ok()) << run.status().message();
  return values;
}

std::string Counted(int64_t count) {
  std::string values = "[0";
  for (int64_t i = 1; i < count; ++i) values += ", " + std::to_string(i);
  return values + "]";
}

TEST(Cast, TakesTheFractionOffFloatsAndWrapsIntegers) {
  EXPECT_THAT(Mapped<int32_t>(Tensor("float32", "[1.9, -1.9, 0, 7]", R"([{"map": {"cast": "int32"}}])", 4)),
              ElementsAre(1, -1, 0, 7));
  EXPECT_THAT(Mapped<uint8_t>(Tensor("int32", "[255, 256, -1]", R"([{"map": {"cast": "uint8"}}])", 3)),
              ElementsAre(255, 0, 255));
  EXPECT_THAT(Mapped<double>(Tensor("uint64", "[3, 9007199254740992]", R"([{"map": {"cast": "float64"}}])", 2)),
              ElementsAre(3.0, 9007199254740992.0));
  EXPECT_THAT(Mapped<uint8_t>(Tensor("float64", "[0, 0.5, -2]", R"([{"map": {"cast": "bool"}}])", 3)),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(Mapped<float>(Tensor("bool", "[0, 1]", R"([{"map": {"cast": "float32"}}])", 2)), ElementsAre(0, 1));
}

TEST(Cast, HoldsFloatsThatNoIntegerCanHoldAtTheBounds) {
  EXPECT_EQ(Store<int8_t>(1e9f), 127);
  EXPECT_EQ(Store<int8_t>(-1e9f), -128);
  EXPECT_EQ(Store<uint8_t>(-0.5f), 0);
  EXPECT_EQ(Store<uint8_t>(-5.0), 0);
  EXPECT_EQ(Store<int64_t>(0x1p63), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Store<uint64_t>(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(Store<uint64_t>(0x1p64), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Store<int32_t>(NAN), 0);
}

TEST(Cast, ReadsHalvesAsTheyAreWritten) {
  // Every float16 that is a number goes through float and comes back.
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0) {
      EXPECT_TRUE(std::isnan(FromFloat16(half)));
      continue;
    }
    EXPECT_EQ(ToFloat16(FromFloat16(half)), half);
  }
  EXPECT_EQ(FromFloat16(0x3c00), 1.0f);
  EXPECT_EQ(FromFloat16(0x0001), 5.9604645e-8f);
  EXPECT_EQ(FromFloat16(0x7c00), INFINITY);
  EXPECT_EQ(FromBfloat16(0xc000), -2.0f);
}

TEST(Affine, MultipliesAndAddsInTheComponentsOwnType) {
  const std::string map = R"([{"map": {"scale": 0.5, "offset": -1}}])";
  EXPECT_THAT(Mapped<float>(Tensor("float32", "[2, 3, -4]", map, 3)), ElementsAre(0.0f, 0.5f, -3.0f));
  EXPECT_THAT(Mapped<double>(Tensor("float64", "[0.1]", R"([{"map": {"scale": 3}}])", 1)), ElementsAre(0.1 * 3));
  EXPECT_THAT(Mapped<float>(Tensor("float32", "[0.25]", R"([{"map": {"offset": 1}}])", 1)), ElementsAre(1.25f));
  // float16 has 11 bits: 2049 is no float16, so the product of 683 and 3 is 2048 before 1 is added, and so it stays.
  EXPECT_THAT(Mapped<uint16_t>(Tensor("float16", "[683]", R"([{"map": {"scale": 3, "offset": 1}}])", 1)),
              ElementsAre(0x6800));
}

TEST(Affine, TakesANumberForEachOfTheLastDimension) {
  EXPECT_THAT(Mapped<float>(Tensor("float32", "[1, 2, 3, 4, 5, 6]",
                                   R"([{"map": {"scales": [1, 10, 100], "offsets": [0.5, 0, -1]}}])", 1, ", 2, 3")),
              ElementsAre(1.5f, 20.0f, 299.0f, 4.5f, 50.0f, 599.0f));
  EXPECT_THAT(
      Mapped<double>(Tensor("float64", "[1, 2, 3, 4]", R"([{"map": {"scale": 2, "offsets": [1, 2]}}])", 2, ", 2")),
      ElementsAre(3, 6, 7, 10));
  // Many rows of an odd length, so that they begin anywhere among the factors.
  const auto scaled =
      Mapped<float>(Tensor("float32", Counted(700),
                           R"([{"map": {"scales": [1, 2, 3, 4, 5, 6, 7]}}, {"batch": {"size": 100}}])", 100, ", 7"));
  ASSERT_EQ(scaled.size(), 700u);
  for (size_t i = 0; i < 700; ++i) ASSERT_EQ(scaled[i], static_cast<float>(i * (i % 7 + 1)));
}

// tf.transpose of counted values.
std::vector<int64_t> Transposed(const std::vector<int64_t>& shape, const std::vector<size_t>& axes) {
  size_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    // The place of value i in the input gives its indices, and these its place in the result.
    std::vector<size_t> index(shape.size());
    for (size_t d = shape.size(), rest = i; d-- > 0; rest /= static_cast<size_t>(shape[d])) {
      index[d] = rest % static_cast<size_t>(shape[d]);
    }
    size_t place = 0;
    for (const size_t axis : axes) place = place * static_cast<size_t>(shape[axis]) + index[axis];
    values[place] = static_cast<int64_t>(i);
  }
  return values;
}

TEST(Transpose, MovesTheDimensionsOfARecord) {
  EXPECT_THAT(Transposed({2, 3}, {1, 0}), ElementsAre(0, 3, 1, 4, 2, 5));
  const std::vector<std::pair<std::vector<int64_t>, std::vector<size_t>>> all = {
      {{5}, {0}},
      {{2, 3}, {1, 0}},
      {{2, 3}, {0, 1}},
      {{4, 5, 3}, {2, 0, 1}},
      {{3, 4, 5}, {1, 2, 0}},
      {{4, 5, 3}, {1, 0, 2}},
      {{4, 1, 3}, {2, 1, 0}},
      {{2, 3, 4, 5}, {3, 1, 0, 2}},
      {{1, 1}, {1, 0}},
      {{2, 2, 2, 2, 2, 2, 2}, {0, 6, 1, 5, 2, 4, 3}}};
  for (const auto& [shape, axes] : all) {
    const std::vector<int64_t> expected = Transposed(shape, axes);
    const auto count = static_cast<int64_t>(expected.size());
    nlohmann::json dims = shape;
    for (const std::string dtype : {"int8", "int16", "int32", "int64"}) {
      // Two records, counted through, in one batch.
      const std::string values = Counted(2 * count);
      const std::string pipeline = R"([{"map": {"transpose": )" + nlohmann::json(axes).dump() +
                                   R"(}}, {"batch": {"size": 2}}, {"map": {"cast": "int64"}}])";
      const std::string text = dims.dump();
      const auto got = Mapped<int64_t>(Tensor(dtype, values, pipeline, 2, ", " + text.substr(1, text.size() - 2)));
      ASSERT_EQ(got.size(), 2 * expected.size()) << text;
      for (size_t i = 0; i < got.size(); ++i) {
        const int64_t record = static_cast<int64_t>(i) / count;
        const int64_t value = expected[i % expected.size()] + record * count;
        ASSERT_EQ(got[i], dtype == "int8" ? static_cast<int8_t>(value) : value) << text << " at " << i;
      }
    }
  }
}

TEST(OneHot, HasOneAtItsPlaceAndNoneWhereThereIsNoPlace) {
  PipelineRun run(
      Tensor("int64", "[0, 2, 3, -1]", R"([{"map": {"oneHot": {"depth": 3}}}, {"batch": {"size": 4}}])", 4));
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_THAT(batches[0].dims[0], ElementsAre(4, 3));
  EXPECT_THAT(batches[0].Values<float>(), ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(
      Mapped<int8_t>(Tensor("uint8", "[1, 0]", R"([{"map": {"oneHot": {"depth": 2, "dtype": "int8"}}}])", 1, ", 2")),
      ElementsAre(0, 1, 1, 0));
}

TEST(Reshape, KeepsTheOrderOfValues) {
  const std::string values = "[1, 2, 3, 4, 5, 6]";
  PipelineRun run(Tensor("int32", values, R"([{"map": {"reshape": [3, -1], "as": "y"}}, {"map": {"feature": "x",
      "reshape": []}}, {"batch": {"size": 1}}])",
                         1, ", 6"));
  EXPECT_THAT(run.status().message(), HasSubstr("spec.pipeline[1].map: component \"x\" has shape [6], 6 values"));
  PipelineRun good(Tensor("int32", values, R"([{"map": {"reshape": [3, -1], "as": "y"}}, {"map": {"feature": "x",
      "reshape": [2, 1, 3]}}, {"batch": {"size": 1}}])",
                          1, ", 6"));
  const auto batches = good.Epoch();
  ASSERT_EQ(batches.size(), 1u) << good.status().message();
  EXPECT_THAT(batches[0].dims[0], ElementsAre(1, 2, 1, 3));
  EXPECT_THAT(batches[0].dims[1], ElementsAre(1, 3, 2));
  EXPECT_THAT(batches[0].Values<int32_t>(0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batches[0].Values<int32_t>(1), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Map, MeansTheSameBeforeAndAfterBatches) {
  const std::string maps = R"({"map": {"cast": "float64"}}, {"map": {"scale": 0.5, "as": "half"}})";
  const std::string rest = R"(, "distribution": {"autoShardPolicy": "Off"})";
  const Topology topology{1, 0, 2};
  for (const std::string second : {"", R"(, {"batch": {"size": 3}})"}) {
    const std::string batches = R"({"batch": {"size": 4, "dropRemainder": true}})" + second;
    PipelineRun before(RangeSpec(5000, "[" + maps + ", " + batches + "]", rest), topology);
    PipelineRun after(RangeSpec(5000, "[" + batches + ", " + maps + "]", rest), topology);
    EXPECT_EQ(before.pipeline().element_spec(), after.pipeline().element_spec());
    const auto values = before.Values<double>(1);
    ASSERT_EQ(values.size(), 5000u);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<double>(i) / 2);
    EXPECT_EQ(after.Values<double>(1), values);
    EXPECT_EQ(after.Values<double>(0), before.Values<double>(0));
  }
}

TEST(Map, GoesOnInTheMiddleOfALargeBatch) {
  // More rows than are decoded at a time, with a component beside it that is not mapped.
  PipelineRun run(
      RangeSpec(3001, R"([{"enumerate": {"start": 10}}, {"map": {"feature": "value", "oneHot": {"depth": 3000,
      "dtype": "uint8"}}}, {"batch": {"size": 3001}}])"));
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  for (size_t i = 0; i < 3001; ++i) {
    ASSERT_EQ(batches[0].Values<int64_t>(0)[i], static_cast<int64_t>(i) + 10);
    for (size_t d = 0; d < 3000; ++d) ASSERT_EQ(batches[0].bytes[1][i * 3000 + d], d == i ? 1 : 0);
  }
}

class StringToNumber : public testing::Test {
 protected:
  PipelineRun Run(const std::vector<std::string>& texts, const std::string& dtype) {
    std::string file;
    for (const std::string& text : texts) {
      last_record_ = file.size();
      file += TFRecordOf(ExampleOf({{"s", BytesList(text)}}));
    }
    folder_.Write("a.tfrecord", file);
    return PipelineRun(
        R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [{"name": "s", "dtype": "string"}],
        "pipeline": [{"map": {"stringToNumber": ")" +
            dtype + R"("}}, {"batch": {"size": 2}}]})",
        {}, folder_.path());
  }
  Folder folder_;
  size_t last_record_ = 0;
};

TEST_F(StringToNumber, ReadsDecimalText) {
  EXPECT_THAT(Run({"1", " -2.5e1\n", "+0.1", "inf"}, "float32").Values<float>(), ElementsAre(1, -25, 0.1f, INFINITY));
  EXPECT_THAT(Run({"1e400", "-1e-400"}, "float64").Values<double>(), ElementsAre(INFINITY, 0));
  EXPECT_THAT(Run({"-9223372036854775808", "007"}, "int64").Values<int64_t>(),
              ElementsAre(std::numeric_limits<int64_t>::min(), 7));
  EXPECT_THAT(Run({"4294967295"}, "uint32").Values<uint32_t>(), ElementsAre(4294967295));
}

TEST_F(StringToNumber, NamesFileOffsetAndValueOfBadText) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"seven", "int32"}, {"", "float32"},  {"1.5", "int64"}, {"2147483648", "int32"},
      {"-1", "uint32"},   {"1 2", "int32"}, {"+-1", "int32"}, {"0x", "float64"}};
  for (const auto& [text, dtype] : bad) {
    PipelineRun run = Run({"1", text}, dtype);
    EXPECT_TRUE(run.Epoch().empty());
    EXPECT_EQ(run.status().code(), Code::kCorrupt) << text;
    EXPECT_EQ(run.status().message(), folder_.path() + "/a.tfrecord: record at byte " + std::to_string(last_record_) +
                                          ": component \"s\": \"" + text + "\" is no " + dtype +
                                          "; correct the data, or spec.pipeline[0].map.stringToNumber");
  }
}

TEST_F(StringToNumber, NeedsExactlyOneValue) {
  folder_.Write("b.tfrecord", TFRecordOf(ExampleOf({{"s", Message(1, Message(1, "1") + Message(1, "2"))}})));
  PipelineRun run(R"({"source": {"files": {"paths": ["b.tfrecord"]}}, "features": [{"name": "s", "dtype": "string"}],
      "pipeline": [{"map": {"stringToNumber": "int32"}}]})",
                  {}, folder_.path());
  EXPECT_TRUE(run.Epoch().empty());
  EXPECT_THAT(run.status().message(), HasSubstr("holds 2 values, and a string feature takes one"));
}

}  // namespace
}  // namespace headrace::side
