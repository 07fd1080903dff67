#include "cli/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Parse(const std::string& text) {
  const auto documents = ParseYaml(text, "f.yaml");
  if (!documents.ok()) {
    ADD_FAILURE() << documents.status().ToString();
    return json();
  }
  EXPECT_EQ(documents->size(), 1u);
  return *documents->at(0).value;
}

std::string Error(const std::string& text) {
  const auto documents = ParseYaml(text, "f.yaml");
  return documents.ok() ? "no error" : documents.status().message();
}

TEST(YamlTest, TypesPlainScalars) {
  const json expected = json::parse(R"({"a": 12, "b": -3, "c": 31, "d": 8, "e": 5, "f": 1.5, "g": 1e3, "h": true,
    "i": false, "j": null, "k": null, "l": "x y", "m": 0, "n": 0.5, "o": true, "p": "1.2.3", "q": "12m"})");
  EXPECT_EQ(Parse("a: 12\nb: -3\nc: 0x1F\nd: 0o10\ne: 0b101\nf: 1.5\ng: 1e3\nh: true\ni: no\nj: null\nk:\nl: x y\n"
                  "m: 0\nn: .5\no: on\np: 1.2.3\nq: 12m\n"),
            expected);
}

TEST(YamlTest, IntegersStayIntegers) {
  const json value = Parse("[7, 9007199254740993, 7.0]");
  EXPECT_TRUE(value[0].is_number_integer());
  EXPECT_EQ(value[1].get<int64_t>(), 9007199254740993);
  EXPECT_TRUE(value[2].is_number_float());
}

TEST(YamlTest, QuotedScalarsAreStrings) {
  EXPECT_EQ(Parse("['1', \"true\", !!str 5, '010', \"~\"]"), json({"1", "true", "5", "010", "~"}));
}

TEST(YamlTest, AnchorsAndMergeKeys) {
  EXPECT_EQ(Parse("base: &b {x: 1, y: 2}\nmade: {<<: *b, y: 3}\n"),
            json::parse(R"({"base": {"x": 1, "y": 2}, "made": {"x": 1, "y": 3}})"));
}

TEST(YamlTest, SeveralDocumentsWithoutTheEmptyOnes) {
  const auto documents = ParseYaml("a: 1\n---\n---\nb: 2\n", "f.yaml");
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(*documents->at(1).value, json({{"b", 2}}));
}

TEST(YamlTest, KnowsWhereFieldsAre) {
  const auto documents = ParseYaml("spec:\n  pipeline:\n  - batch:\n      size: 0\n", "f.yaml");
  ASSERT_TRUE(documents.ok());
  const YamlDocument& document = documents->at(0);
  EXPECT_EQ(document.Where("spec.pipeline[0].batch.size"), "f.yaml:4:7");
  EXPECT_EQ(document.Where("spec.pipeline"), "f.yaml:2:3");
  EXPECT_EQ(document.Where("spec.pipeline[0].batch.missing"), "f.yaml:3:5");  // its parent
}

TEST(YamlTest, ErrorsNameThePlace) {
  EXPECT_THAT(Error("a: 1\na: 2\n"), HasSubstr("f.yaml:2:1: duplicate key \"a\""));
  EXPECT_THAT(Error("a: 010\n"), HasSubstr("f.yaml:1:4: 010"));
  EXPECT_THAT(Error("a: .nan\n"), HasSubstr("f.yaml:1:4"));
  EXPECT_THAT(Error("a: 99999999999999999999\n"), HasSubstr("64-bit"));
  EXPECT_THAT(Error("a: [1, 2\nb: 3\n"), HasSubstr("f.yaml:"));
  EXPECT_THAT(Error("? [1, 2]\n: x\n"), HasSubstr("a key must be a string"));
}

TEST(YamlTest, AliasesCannotBlowUp) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) text += ", " + before;
    text += "]\n";
  }
  EXPECT_THAT(Error(text), HasSubstr("too large"));
}

TEST(YamlTest, PrintsBlockStyle) {
  EXPECT_EQ(PrintYaml(json::parse(R"({"a": [1, {"b": "x", "c": []}], "d": {"e": "true"}, "f": {}, "g": null})")),
            "a:\n- 1\n- b: x\n  c: []\nd:\n  e: \"true\"\nf: {}\ng: null\n");
}

TEST(YamlTest, WhatIsPrintedReadsBackUnchanged) {
  const json value = json::parse(R"({"strings": ["", "1", "yes", "a: b", "- x", "# no", "two\nlines", "caf\u00e9", "~",
    "0x1F", "1e3", " pad ", "<<", "a#b"], "on": 1, "deep": [[1, 2], [], [[{"k": [true, null, -1.5]}]]]})");
  EXPECT_EQ(Parse(PrintYaml(value)), value);
}

TEST(YamlTest, MissingFileIsNotFound) {
  const auto documents = ReadYamlFile("/nonexistent/input.yaml");
  ASSERT_FALSE(documents.ok());
  EXPECT_EQ(documents.status().code(), Code::kNotFound);
  EXPECT_THAT(documents.status().message(), HasSubstr("/nonexistent/input.yaml"));
}

}  // namespace
}  // namespace headrace::cli
