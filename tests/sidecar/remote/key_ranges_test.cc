#include "sidecar/remote/key_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<ListedObject> PageOf(const char* format, int first, int last, int step = 1) {
  std::vector<ListedObject> page;
  for (int i = first; i <= last; i += step) {
    char key[64];
    std::snprintf(key, sizeof key, format, i);
    page.push_back({key, 1, ""});
  }
  return page;
}

TEST(KeyBoundaries, CutsNumbersWhereSeveralPagesFollow) {
  // 1,000 of 100,000: a thousand have 00 in front, which is a page, ten thousand a 0.
  EXPECT_THAT(KeyBoundaries(PageOf("a/train-%05d", 0, 999), 8, ""),
              ElementsAre("a/train-1", "a/train-2", "a/train-3", "a/train-4", "a/train-5", "a/train-6", "a/train-7",
                          "a/train-8", "a/train-9"));
  // Within what was cut so already, nothing more.
  EXPECT_THAT(KeyBoundaries(PageOf("a/train-%05d", 10000, 10999), 8, "a/train-2"), IsEmpty());
}

TEST(KeyBoundaries, CutsHexadecimalKeys) {
  // Every 641st of 16 million, so a page has one eighth of those with a 0 in front.
  const auto boundaries = KeyBoundaries(PageOf("%06x", 0, 0x1ffff, 131), 0, "");
  EXPECT_THAT(boundaries, testing::Contains("a"));
  EXPECT_THAT(boundaries, testing::Contains("f"));
  EXPECT_THAT(boundaries, testing::Not(testing::Contains("g")));
}

TEST(KeyBoundaries, AreInOrderAndBeyondThePage) {
  const auto page = PageOf("x%08d", 4100, 5099);
  const auto boundaries = KeyBoundaries(page, 1, "x5");
  EXPECT_TRUE(std::is_sorted(boundaries.begin(), boundaries.end()));
  ASSERT_FALSE(boundaries.empty());
  EXPECT_GT(boundaries.front(), page.back().key);
  EXPECT_LT(boundaries.back(), "x5");
}

TEST(KeyBoundaries, GiveUpWhereKeysGiveNoHint) {
  EXPECT_THAT(KeyBoundaries({}, 0, ""), IsEmpty());
  EXPECT_THAT(KeyBoundaries(PageOf("one-%d", 1, 1), 0, ""), IsEmpty());
  EXPECT_THAT(KeyBoundaries(std::vector<ListedObject>{{"a", 1, ""}, {"ab", 1, ""}}, 0, ""), IsEmpty());
  EXPECT_THAT(KeyBoundaries(std::vector<ListedObject>{{"a\xc3\xa9", 1, ""}, {"a\xc3\xaa", 1, ""}}, 0, ""), IsEmpty());
}

}  // namespace
}  // namespace headrace::side
