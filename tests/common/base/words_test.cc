#include "common/base/words.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(NearestName, FindsTheWordThatWasMeant) {
  EXPECT_EQ(NearestName("shufle", {"shuffle", "skip", "shard"}), "shuffle");
  EXPECT_EQ(NearestName("BATCH", {"take", "batch"}), "batch");
  EXPECT_EQ(NearestName("bufferSize", {"bufferSize"}), "bufferSize");
  // The nearer one wins, not the first.
  EXPECT_EQ(NearestName("skap", {"take", "skip"}), "skip");
}

TEST(NearestName, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(NearestName("volume", {"shuffle", "repeat"}), "");
  EXPECT_EQ(NearestName("x", {}), "");
  EXPECT_EQ(NearestName("\xff\xfe\xfd", {"take"}), "");
}

TEST(QuotedList, ReadsAsASentence) {
  EXPECT_EQ(QuotedList({}), "");
  EXPECT_EQ(QuotedList({"a"}), "\"a\"");
  EXPECT_EQ(QuotedList({"a", "b"}), "\"a\" or \"b\"");
  EXPECT_EQ(QuotedList({"a", "b", "c"}), "\"a\", \"b\" or \"c\"");
}

}  // namespace
}  // namespace headrace
