// JSON texts into rows. Expected values: those of Python's json.loads of the same text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sidecar/decode/decoder.h"
#include "tests/sidecar/records.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Feature FeatureOf(const std::string& name, DType dtype, std::vector<int64_t> shape = {}, const std::string& path = "",
                  std::vector<double> default_value = {}) {
  Feature feature;
  feature.name = name;
  feature.dtype = dtype;
  feature.shape = std::move(shape);
  feature.path = path;
  feature.has_default = !default_value.empty();
  feature.default_value = std::move(default_value);
  return feature;
}

class JsonTexts {
 public:
  explicit JsonTexts(const std::vector<Feature>& features) : features_(features), decoder_(MakeJsonDecoder(features)) {}

  Status Decode(const std::vector<std::string>& texts) {
    records_.clear();
    rows_.clear();
    std::vector<uint8_t*> outs;
    for (const Feature& feature : features_) {
      size_t bytes = DTypeSize(feature.dtype);
      for (const int64_t dim : feature.shape) bytes *= static_cast<size_t>(dim);
      if (!feature.shape.empty() && feature.shape[0] < 0) bytes = sizeof(BytesRef);
      rows_.emplace_back(texts.size() * bytes, uint8_t{0xee});
    }
    for (auto& rows : rows_) outs.push_back(rows.data());
    for (const std::string& text : texts) records_.push_back(RecordOf(&pool_, {text}));
    return decoder_->Decode(records_, outs);
  }
  std::string ErrorOf(const std::string& text) { return Decode({text}).message(); }

  template <typename T>
  std::vector<T> Values(size_t component = 0) const {
    std::vector<T> values(rows_[component].size() / sizeof(T));
    std::memcpy(values.data(), rows_[component].data(), values.size() * sizeof(T));
    return values;
  }
  // Of one row of a component of varying length.
  template <typename T>
  std::vector<T> Row(size_t component, size_t row) const {
    const BytesRef found = Values<BytesRef>(component)[row];
    std::vector<T> values(found.size / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), found.data, found.size);
    return values;
  }
  std::string Text(size_t component, size_t row) const {
    const auto bytes = Row<char>(component, row);
    return {bytes.begin(), bytes.end()};
  }

 private:
  const std::vector<Feature> features_;
  BytesBlockPool pool_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<Record> records_;
  std::vector<std::vector<uint8_t>> rows_;
};

TEST(Json, FindsFeaturesInWhateverOrderFieldsStand) {
  JsonTexts json({FeatureOf("text", DType::kString), FeatureOf("label", DType::kInt64)});
  ASSERT_TRUE(
      json.Decode({R"({"text": "a b", "label": 7})", R"( {"label":-8,"more":{"label":[1,{}]},"text":""} )"}).ok());
  EXPECT_EQ(json.Text(0, 0), "a b");
  EXPECT_EQ(json.Text(0, 1), "");
  EXPECT_THAT(json.Values<int64_t>(1), ElementsAre(7, -8));
}

TEST(Json, FollowsPaths) {
  JsonTexts json({FeatureOf("x", DType::kFloat32, {}, "/meta/size/1"), FeatureOf("y", DType::kInt32, {}, "/meta/id"),
                  FeatureOf("z", DType::kInt32, {}, "/a~1b/m~0n"), FeatureOf("s", DType::kString, {}, "/rows/0/name")});
  ASSERT_TRUE(
      json.Decode({R"({"meta": {"size": [10, 2.5, 30], "id": 4}, "a/b": {"m~n": 5}, "rows": [{"name": "r"}, {}]})",
                   R"({"rows": [{"other": 1, "name": "q"}], "a/b": {"m~n": 6}, "meta": {"id": 7, "size": [0, 1]}})"})
          .ok());
  EXPECT_THAT(json.Values<float>(0), ElementsAre(2.5, 1));
  EXPECT_THAT(json.Values<int32_t>(1), ElementsAre(4, 7));
  EXPECT_THAT(json.Values<int32_t>(2), ElementsAre(5, 6));
  EXPECT_EQ(json.Text(3, 0) + json.Text(3, 1), "rq");
}

TEST(Json, TakesTheFloatsThatPythonWrites) {
  JsonTexts json({FeatureOf("x", DType::kFloat32), FeatureOf("y", DType::kFloat64, {2})});
  ASSERT_TRUE(json.Decode({R"({"x": NaN, "z": NaN, "y": [-Infinity, 1]})", R"({"y": [2,Infinity ], "x": 3})"}).ok());
  EXPECT_TRUE(std::isnan(json.Values<float>(0)[0]));
  EXPECT_EQ(json.Values<float>(0)[1], 3);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(json.Values<double>(1), ElementsAre(-infinity, 1, 2, infinity));
  EXPECT_FALSE(json.Decode({R"({"x": nan, "y": [0, 0]})"}).ok());
  JsonTexts integers({FeatureOf("x", DType::kInt32)});
  EXPECT_THAT(integers.Decode({R"({"x": NaN})"}).message(), testing::HasSubstr("NaN"));
}

TEST(Json, ALineMayBeAnArray) {
  JsonTexts json({FeatureOf("x", DType::kInt32, {}, "/1"), FeatureOf("y", DType::kString, {}, "/0")});
  ASSERT_TRUE(json.Decode({R"(["a", 1, 2])"}).ok());
  EXPECT_THAT(json.Values<int32_t>(0), ElementsAre(1));
  EXPECT_EQ(json.Text(1, 0), "a");
}

TEST(Json, UnescapesStringsAndNames) {
  JsonTexts json({FeatureOf("gr\xc3\xb6\xc3\x9f\x65", DType::kString), FeatureOf("a\"b", DType::kInt32)});
  ASSERT_TRUE(json.Decode({R"({"gr\u00f6\u00dfe": "line\n\"q\" \\ \/ \u00e9 \ud83d\ude00\t", "a\"b": 1})",
                           "{\"gr\xc3\xb6\xc3\x9f\x65\": \"\xc3\xa9\", \"a\\u0022b\": 2}"})
                  .ok());
  EXPECT_EQ(json.Text(0, 0), "line\n\"q\" \\ / \xc3\xa9 \xf0\x9f\x98\x80\t");
  EXPECT_EQ(json.Text(0, 1), "\xc3\xa9");
  EXPECT_THAT(json.Values<int32_t>(1), ElementsAre(1, 2));
}

TEST(Json, KeepsManyUnescapedStringsUntilTheNextDecode) {
  JsonTexts json({FeatureOf("s", DType::kString)});
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i)
    texts.push_back(R"({"s": "\\)" + std::string(static_cast<size_t>(i % 100), 'x') + "\"}");
  ASSERT_TRUE(json.Decode(texts).ok());
  for (size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(json.Text(0, i), "\\" + std::string(i % 100, 'x'));
}

TEST(Json, ReadsNumbersOfEveryType) {
  JsonTexts json({FeatureOf("a", DType::kFloat64), FeatureOf("b", DType::kBool), FeatureOf("c", DType::kUint64),
                  FeatureOf("d", DType::kFloat16), FeatureOf("e", DType::kInt8)});
  ASSERT_TRUE(json.Decode({R"({"a": 0.1, "b": true, "c": 18446744073709551615, "d": 1, "e": -128})",
                           R"({"a": -3e-2, "b": 0, "c": 0, "d": 0.5, "e": 127})",
                           R"({"a": 12345678901234567890, "b": false, "c": 5, "d": -2, "e": 0})"})
                  .ok());
  EXPECT_THAT(json.Values<double>(0), ElementsAre(0.1, -0.03, 12345678901234567890.0));
  EXPECT_THAT(json.Values<uint8_t>(1), ElementsAre(1, 0, 0));
  EXPECT_THAT(json.Values<uint64_t>(2), ElementsAre(UINT64_MAX, 0, 5));
  EXPECT_THAT(json.Values<uint16_t>(3), ElementsAre(0x3c00, 0x3800, 0xc000));
  EXPECT_THAT(json.Values<int8_t>(4), ElementsAre(-128, 127, 0));
}

TEST(Json, ReadsArraysOfAnyShape) {
  JsonTexts json({FeatureOf("x", DType::kInt16, {2, 3}), FeatureOf("y", DType::kFloat32, {2})});
  ASSERT_TRUE(
      json.Decode({R"({"x": [[1, 2, 3], [4, 5, 6]], "y": [1.5, 2]})", R"({"y":[0,1],"x":[[6,5,4],[3,2,1]]})"}).ok());
  EXPECT_THAT(json.Values<int16_t>(0), ElementsAre(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(json.Values<float>(1), ElementsAre(1.5, 2, 0, 1));
}

TEST(Json, ReadsRaggedArrays) {
  JsonTexts json({FeatureOf("t", DType::kInt32, {-1}), FeatureOf("b", DType::kFloat32, {-1, 2})});
  ASSERT_TRUE(
      json.Decode({R"({"t": [1, 2, 3], "b": [[1, 2]]})", R"({"t": []})", R"({"t": null, "b": [[3, 4], [5, 6]]})"})
          .ok());
  EXPECT_THAT(json.Row<int32_t>(0, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(json.Row<int32_t>(0, 1), IsEmpty());
  EXPECT_THAT(json.Row<int32_t>(0, 2), IsEmpty());
  EXPECT_THAT(json.Row<float>(1, 0), ElementsAre(1, 2));
  EXPECT_THAT(json.Row<float>(1, 1), IsEmpty());
  EXPECT_THAT(json.Row<float>(1, 2), ElementsAre(3, 4, 5, 6));
}

TEST(Json, PadsArraysThatMayBeShorter) {
  Feature tokens = FeatureOf("t", DType::kInt32, {4});
  tokens.padding = -1;
  JsonTexts json({tokens});
  ASSERT_TRUE(json.Decode({R"({"t": [1, 2]})", R"({"t": [1, 2, 3, 4]})", R"({})"}).ok());
  EXPECT_THAT(json.Values<int32_t>(), ElementsAre(1, 2, -1, -1, 1, 2, 3, 4, -1, -1, -1, -1));
  EXPECT_THAT(
      json.ErrorOf(R"({"t": [1, 2, 3, 4, 5]})"),
      HasSubstr("feature \"t\" at /t holds more entries in dimension 0, and its shape takes 4; correct the data, "
                "or its shape in paddedShapes"));
}

TEST(Json, MissingAndNullAreTheDefault) {
  JsonTexts json({FeatureOf("x", DType::kFloat32, {2}, "", {1, 2}), FeatureOf("y", DType::kInt64, {}, "/a/b", {9})});
  ASSERT_TRUE(
      json.Decode({"{}", R"({"x": null, "a": {"b": null}})", R"({"x": [3, 4], "a": 5})", R"({"a": {"b": 6}})"}).ok());
  EXPECT_THAT(json.Values<float>(0), ElementsAre(1, 2, 1, 2, 3, 4, 1, 2));
  EXPECT_THAT(json.Values<int64_t>(1), ElementsAre(9, 9, 9, 6));
}

TEST(Json, TheLastOfANameThatStandsTwiceCounts) {
  JsonTexts json({FeatureOf("x", DType::kInt32), FeatureOf("s", DType::kString)});
  ASSERT_TRUE(json.Decode({R"({"x": 1, "s": "a", "x": 2, "s": "\n"})"}).ok());
  EXPECT_THAT(json.Values<int32_t>(0), ElementsAre(2));
  EXPECT_EQ(json.Text(1, 0), "\n");
}

TEST(Json, LongTextsFollowShortOnes) {
  JsonTexts json({FeatureOf("s", DType::kString), FeatureOf("n", DType::kInt32)});
  for (const size_t size : {10, 100000, 20, 300000}) {
    ASSERT_TRUE(json.Decode({R"({"s": ")" + std::string(size, 'y') + R"(", "n": 3})"}).ok());
    EXPECT_EQ(json.Text(0, 0).size(), size);
  }
}

TEST(Json, ErrorsSayWhereWhatAndTheRemedy) {
  JsonTexts json({FeatureOf("label", DType::kUint8, {}, "/a/label")});
  EXPECT_EQ(
      json.ErrorOf(R"({"a": {"label": 256}})"),
      "a.tfrecord: record at byte 48: feature \"label\" at /a/label holds \"256\", which is no uint8; correct the "
      "data, or its dtype and shape in spec.features");
  for (const char* value : {"-1", "1.5", "\"7\"", "true", "1e2", "99999999999999999999"}) {
    EXPECT_THAT(json.ErrorOf(std::string(R"({"a": {"label": )") + value + "}}"), HasSubstr("which is no uint8"))
        << value;
  }
  EXPECT_THAT(json.ErrorOf(R"({"a": {"label": [1]}})"), HasSubstr("holds an array, which is no uint8"));
  EXPECT_THAT(json.ErrorOf(R"({"a": {}})"), HasSubstr("is missing; correct its path, or give it a default"));
  EXPECT_THAT(json.ErrorOf(R"({"a": {"label": null}})"), HasSubstr("is null; correct its path, or give it a default"));
}

TEST(Json, ArraysOfAnotherShapeAreRefused) {
  JsonTexts json({FeatureOf("x", DType::kFloat32, {2, 2})});
  EXPECT_THAT(json.ErrorOf(R"({"x": [[1, 2], [3]]})"),
              HasSubstr("holds 1 entries in dimension 1, and its shape takes 2"));
  EXPECT_THAT(json.ErrorOf(R"({"x": [[1, 2]]})"), HasSubstr("holds 1 entries in dimension 0, and its shape takes 2"));
  EXPECT_THAT(json.ErrorOf(R"({"x": [[1, 2], [3, 4], [5, 6]]})"), HasSubstr("holds more entries in dimension 0"));
  EXPECT_THAT(json.ErrorOf(R"({"x": [1, 2]})"),
              HasSubstr("holds \"1\", which is no float32 in 2 dimensions of arrays"));
  EXPECT_THAT(json.ErrorOf(R"({"x": 1})"), HasSubstr("which is no float32 in 2 dimensions of arrays"));
  EXPECT_THAT(json.ErrorOf(R"({"x": [[1, 2], [3, {}]]})"), HasSubstr("holds an object"));
}

TEST(Json, WhatIsNoJsonIsRefused) {
  JsonTexts json({FeatureOf("s", DType::kString, {}, "", {})});
  for (const char* text :
       {R"({"s": "a")", R"({"s": "a)", R"({"s": "a"]", R"({"s" "a"})", R"({"s": "a",})", R"({"s": "a" 1})",
        R"({"s": "\x"})", "{\"s\": \"\xff\"}", "{\"s\": \"a\nb\"}", R"({s: "a"})", "{", "}"}) {
    EXPECT_THAT(json.ErrorOf(text), HasSubstr("a.tfrecord: record at byte 48: is not JSON (")) << text;
  }
  EXPECT_THAT(json.ErrorOf(R"({"s": "a"} {"s": "b"})"), HasSubstr("holds more than one JSON text"));
  for (const char* text : {"1", "\"s\"", "true", "null"}) {
    EXPECT_THAT(json.ErrorOf(text), HasSubstr("is no JSON object or array")) << text;
  }
  EXPECT_FALSE(json.Decode({""}).ok());
}

}  // namespace
}  // namespace headrace::side
