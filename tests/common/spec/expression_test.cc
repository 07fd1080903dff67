#include "common/spec/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using testing::HasSubstr;

const std::vector<TensorSpec>& Components() {
  static const std::vector<TensorSpec> components = {{"label", DType::kInt64, {}},      {"x", DType::kFloat32, {8}},
                                                     {"m", DType::kFloat64, {2, 3}},    {"flag", DType::kBool, {}},
                                                     {"image/valid", DType::kBool, {}}, {"text", DType::kString, {}},
                                                     {"big", DType::kUint64, {}}};
  return components;
}

TEST(Expression, FindsTheValueThatAnIndexNames) {
  const auto expression = Expression::Parse("m[1][2] > 0", Components());
  ASSERT_TRUE(expression.ok()) << expression.status().message();
  EXPECT_EQ(expression->nodes()[0].component, 2u);
  EXPECT_EQ(expression->nodes()[0].value, 5u);
}

TEST(Expression, ReadsAllThatIsAllowed) {
  for (const char* text : {"flag", "true", "!flag && !(label < 5)", "flag == false", "-x[0] < 1e-3", "label%10==3",
                           "`image/valid`||label/2>=.5", " ( ( label ) ) != 1 \n", "- -label > 0", "x[ 7 ]*2<=m[0][0]",
                           "1e+2 > label", "label < 9223372036854775808"}) {
    EXPECT_TRUE(Expression::Parse(text, Components()).ok())
        << text << ": " << Expression::Parse(text, Components()).status().message();
  }
}

struct BadText {
  std::string text;
  const char* says;
};

class Bad : public testing::TestWithParam<BadText> {};

TEST_P(Bad, NamesColumnAndRemedy) {
  const auto expression = Expression::Parse(GetParam().text, Components());
  ASSERT_FALSE(expression.ok());
  EXPECT_EQ(expression.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(expression.status().message(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, Bad,
    testing::Values(BadText{"", "at column 1: the expression ends where a value is expected"},
                    BadText{"label <", "at column 8: the expression ends"},
                    BadText{"lable < 5", "at column 1: there is no component \"lable\" here; did you mean \"label\"?"},
                    BadText{"label + 1", "is an integer, and must be true or false; compare it"},
                    BadText{"label = 5", "at column 7: \"= 5\" is not understood; comparisons are =="},
                    BadText{"flag & flag", "conditions are joined with &&"},
                    BadText{"label < 5 5", "at column 11: \"5\" is not understood; an operator is expected"},
                    BadText{"(label < 5", "at column 1: this ( is not closed"},
                    BadText{"label < 5)", "at column 10: \")\" is not understood"},
                    BadText{"0 < label < 5", "at column 11: < stands between true or false and an integer; join"},
                    BadText{"label && flag", "at column 7: && stands between an integer and true or false; compare"},
                    BadText{"flag + 1 > 0", "at column 6: + stands between"},
                    BadText{"!label", "at column 1: ! does not go with an integer; write x == 0"},
                    BadText{"-flag", "at column 1: - does not go with true or false"},
                    BadText{"x > 0", "\"x\" has 1 dimensions and 0 indices; give one constant index"},
                    BadText{"label[0] > 0", "\"label\" has 0 dimensions and 1 indices"},
                    BadText{"x[8] > 0", "at column 2: 8 is outside dimension 0 of \"x\", which has 0 to 7"},
                    BadText{"x[-1] > 0", "-1 is outside dimension 0"},
                    BadText{"x[label] > 0", "an index is a whole number in [ and ]"},
                    BadText{"x[0 > 0", "an index is a whole number"},
                    BadText{"text == 1", "\"text\" is a string; put a map"},
                    BadText{"big == 1", "\"big\" is uint64, which is not compared; put a map {cast: int64}"},
                    BadText{"1x > 0", "\"1x\" is no number; a name that begins so stands in `s"},
                    BadText{"1.2.3 > 0", "\"1.2.3\" is no number"}, BadText{"`x > 0", "this ` is not closed"},
                    BadText{"label ? 1", "\"? 1\" is not understood"}, BadText{"@ > 1", "\"@ > 1\" is not understood"},
                    BadText{std::string(65, '(') + "1", "more than 64 within one another"},
                    BadText{std::string(65, '!') + "flag", "more than 64 within one another"}));

}  // namespace
}  // namespace headrace
