#include "operator/admission/review_shape.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace::op {
namespace {

TEST(ReviewShapeTest, CountsDepthAndValues) {
  EXPECT_EQ(ShapeOf("").depth, 0u);
  EXPECT_EQ(ShapeOf("1").depth, 0u);
  EXPECT_EQ(ShapeOf("1").values, 1u);
  EXPECT_EQ(ShapeOf(R"({"a": [1, {"b": []}], "c": 2})").depth, 4u);
  EXPECT_GE(ShapeOf(R"({"a": [1, {"b": []}], "c": 2})").values, 6u);
  EXPECT_EQ(ShapeOf("[[],[],[[]]]").depth, 3u);
}

TEST(ReviewShapeTest, StringsAreNoStructure) {
  EXPECT_EQ(ShapeOf(R"({"[[[": "{{{,,,"})").depth, 1u);
  EXPECT_EQ(ShapeOf(R"({"[[[": "{{{,,,"})").values, 2u);
  EXPECT_EQ(ShapeOf(R"(["\"[[[", 1])").depth, 1u);
  EXPECT_EQ(ShapeOf(R"(["\\", [1]])").depth, 2u);
  EXPECT_EQ(ShapeOf("\"\\").depth, 0u) << "cut behind a backslash";
}

TEST(ReviewShapeTest, BracesThatMatchNothing) {
  EXPECT_EQ(ShapeOf("]]]}}}[").depth, 1u);
  EXPECT_EQ(ShapeOf(std::string(1000, '[')).depth, 1000u);
}

}  // namespace
}  // namespace headrace::op
