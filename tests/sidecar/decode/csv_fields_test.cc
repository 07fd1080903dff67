// Expected fields: those of Python's csv.reader with strict=True, of the same lines.
#include "sidecar/decode/csv_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::side {
namespace {

using testing::ElementsAre;

struct Split {
  std::string complaint;
  std::vector<std::string> fields;
};

Split SplitOf(std::string_view record, char delimiter = ',') {
  Arena arena;
  std::vector<std::string_view> fields;
  Split split{SplitCsv(record, delimiter, &arena, &fields), {}};
  split.fields.assign(fields.begin(), fields.end());
  return split;
}

TEST(SplitCsv, AtDelimiters) {
  EXPECT_THAT(SplitOf("a,b c,,1").fields, ElementsAre("a", "b c", "", "1"));
  EXPECT_THAT(SplitOf(",").fields, ElementsAre("", ""));
  EXPECT_THAT(SplitOf("a").fields, ElementsAre("a"));
  EXPECT_THAT(SplitOf("a,b\tc", '\t').fields, ElementsAre("a,b", "c"));
}

TEST(SplitCsv, ButNotWithinQuotes) {
  EXPECT_THAT(SplitOf(R"("a,b",c)").fields, ElementsAre("a,b", "c"));
  EXPECT_THAT(SplitOf("\"a\r\nb\",\"\"").fields, ElementsAre("a\r\nb", ""));
  EXPECT_THAT(SplitOf(R"("a;b";"c")", ';').fields, ElementsAre("a;b", "c"));
}

TEST(SplitCsv, TwoQuotesWithinAreOne) {
  EXPECT_THAT(SplitOf(R"("say ""hi""",2)").fields, ElementsAre(R"(say "hi")", "2"));
  EXPECT_THAT(SplitOf(R"("""")").fields, ElementsAre(R"(")"));
  EXPECT_THAT(SplitOf(R"("""""",x)").fields, ElementsAre(R"("")", "x"));
}

TEST(SplitCsv, AQuoteInsideAFieldIsACharacter) {
  EXPECT_THAT(SplitOf(R"(6" pipe,a"b")").fields, ElementsAre(R"(6" pipe)", R"(a"b")"));
  EXPECT_THAT(SplitOf(R"( "a")").fields, ElementsAre(R"( "a")"));
}

TEST(SplitCsv, SaysWhichFieldIsWrong) {
  EXPECT_EQ(SplitOf(R"(a,"b" ,c)").complaint, "field 2 has text after its closing quote");
  EXPECT_EQ(SplitOf(R"("a""b)").complaint, "field 1 has no closing quote");
  EXPECT_EQ(SplitOf(R"(a,")").complaint, "field 2 has no closing quote");
  EXPECT_EQ(SplitOf("a,b").complaint, "");
}

TEST(CsvColumns, AreThoseOfTheFeaturesInTheirOrder) {
  Feature x;
  x.name = "x";
  x.columns = {"b", "a"};
  Feature y;
  y.name = "y";
  EXPECT_THAT(CsvColumns({x, y}), ElementsAre("b", "a", "y"));
}

}  // namespace
}  // namespace headrace::side
