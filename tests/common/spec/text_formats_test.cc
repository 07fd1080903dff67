#include "common/spec/text_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/spec/components.h"

namespace headrace {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json SpecOf(const std::string& format, const std::string& features, const std::string& csv = "") {
  json spec = {{"source", {{"files", {{"format", format}, {"paths", {"a"}}}}}}, {"features", json::parse(features)}};
  if (!csv.empty()) spec["source"]["files"]["csv"] = json::parse(csv);
  return spec;
}
std::string ErrorOf(const json& spec) {
  const auto parsed = ParseInputSpec(spec);
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(TextFormats, AreReadBackUnchanged) {
  for (const json& spec :
       {SpecOf("CSV", R"([{"name": "x", "dtype": "int32", "shape": [2, 1], "columns": ["a", "b"]}])",
               R"({"header": false, "columns": ["b", "c", "a"], "delimiter": "\t"})"),
        SpecOf("JSONLines", R"([{"name": "x", "path": "/a~1b/0/~0"}, {"name": "t", "dtype": "int64", "shape": [-1]}])"),
        SpecOf("Text", R"([{"name": "sentence", "dtype": "string"}])")}) {
    const auto parsed = ParseInputSpec(spec);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const json written = ToJson(*parsed);
    EXPECT_EQ(written["source"]["files"]["format"], spec["source"]["files"]["format"]);
    const auto again = ParseInputSpec(written);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(ToJson(*again), written);
  }
}

TEST(TextFormats, CsvHasAHeaderAndCommasUnlessToldOtherwise) {
  const auto parsed = ParseInputSpec(SpecOf("CSV", R"([{"name": "x"}])"));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(ToJson(*parsed)["source"]["files"]["csv"], json::parse(R"({"header": true, "delimiter": ","})"));
}

TEST(TextFormats, LinesWithoutFeaturesAreStrings) {
  for (const auto& [format, name] : {std::pair("Text", "line"), std::pair("JSONLines", "record")}) {
    const auto parsed = ParseInputSpec(SpecOf(format, "[]"));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(RecordComponents(*parsed, 0, nullptr), (std::vector<TensorSpec>{{name, DType::kString, {}}}));
  }
  EXPECT_THAT(ErrorOf(SpecOf("CSV", "[]")), HasSubstr("spec.features: is required"));
}

TEST(TextFormats, JsonPointersAreThoseOfRfc6901) {
  EXPECT_THAT(JsonPointerWords("/foo/0"), ElementsAre("foo", "0"));
  EXPECT_THAT(JsonPointerWords("/a~1b/m~0n/~01"), ElementsAre("a/b", "m~n", "~1"));
  EXPECT_THAT(JsonPointerWords("/"), ElementsAre(""));
  Feature feature;
  feature.name = "image/a~b";
  EXPECT_EQ(JsonPointerOf(feature), "/image~1a~0b");
  feature.path = "/c";
  EXPECT_EQ(JsonPointerOf(feature), "/c");
}

struct BadCase {
  const char* format;
  const char* features;
  const char* csv;
  const char* message;
};

class BadTextSpecs : public testing::TestWithParam<BadCase> {};

TEST_P(BadTextSpecs, AreRefusedByName) {
  EXPECT_THAT(ErrorOf(SpecOf(GetParam().format, GetParam().features, GetParam().csv)), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    TextFormats, BadTextSpecs,
    testing::Values(
        BadCase{"Text", R"([{"name": "a", "dtype": "string"}, {"name": "b", "dtype": "string"}])", "",
                "spec.features: has 2 features, and a line of text is one string"},
        BadCase{"Text", R"([{"name": "a"}])", "", "spec.features[0].dtype: must be string"},
        BadCase{"Text", "[]", "{}", "spec.source.files.csv: goes with format CSV, and format is Text"},
        BadCase{"Text", R"([{"name": "a", "dtype": "string", "path": "/a"}])", "",
                "spec.features[0].path: goes with format JSONLines, and spec.source.files.format is Text"},
        BadCase{"JSONLines", R"([{"name": "a", "columns": ["b"]}])", "",
                "spec.features[0].columns: goes with formats that have columns"},
        BadCase{"CSV", R"([{"name": "a", "columns": ["b", "c"]}])", "", "spec.features[0].columns: names 2; the shape"},
        BadCase{"JSONLines", R"([{"name": "a", "shape": [1], "columns": ["b"]}])", "",
                "spec.features[0].columns: goes with formats that have columns"},
        BadCase{"JSONLines", R"([{"name": "a", "path": "b"}])", "", "spec.features[0].path: \"b\" is no JSON pointer"},
        BadCase{"JSONLines", R"([{"name": "a", "path": "/b~2"}])", "", "is no JSON pointer"},
        BadCase{"JSONLines", R"([{"name": "a", "path": "/b~"}])", "", "is no JSON pointer"},
        BadCase{"JSONLines", R"([{"name": "a"}, {"name": "b", "path": "/a/0"}])", "",
                "spec.features[1].path: \"/a/0\" is, or lies in, that of \"a\""},
        BadCase{"JSONLines", R"([{"name": "a"}, {"name": "b", "path": "/a"}])", "", "read each value once"},
        BadCase{"CSV", R"([{"name": "a", "shape": [-1]}])", "", "spec.features[0].shape: must be fixed"},
        BadCase{"CSV", R"([{"name": "a", "shape": [2]}])", "",
                "spec.features[0].shape: takes 2 values, and a column holds one"},
        BadCase{"CSV", R"([{"name": "a"}, {"name": "b", "shape": [2], "columns": ["c", "a"]}])", "",
                "spec.features[1].columns[1]: column \"a\" is read already"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"columns": ["a"]})",
                "spec.source.files.csv.columns: goes with header: false"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"header": false})",
                "spec.source.files.csv.columns: is required without a header"},
        BadCase{"CSV", R"([{"name": "price"}])", R"({"header": false, "columns": ["a", "prize"]})",
                "spec.features[0].name: \"price\" is not among spec.source.files.csv.columns; did you mean \"prize\"?"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"header": false, "columns": ["a", "a"]})",
                "spec.source.files.csv.columns[1]: \"a\" stands twice"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"header": false, "columns": ["a", 1]})",
                "spec.source.files.csv.columns[1]: must be the name of a column, not 1"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"delimiter": "."})", "spec.source.files.csv.delimiter: \".\" cannot"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"delimiter": "\n"})",
                "spec.source.files.csv.delimiter: \"\\n\" cannot"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"delimiter": ", "})",
                "spec.source.files.csv.delimiter: \", \" is not"},
        BadCase{"CSV", R"([{"name": "a"}])", R"({"separator": ";"})", "unknown field"}));

}  // namespace
}  // namespace headrace
