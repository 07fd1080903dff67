#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sidecar/transform/batch.h"
#include "sidecar/transform/counted.h"
#include "sidecar/transform/enumerate.h"
#include "sidecar/transform/repeat.h"
#include "sidecar/transform/shuffle.h"
#include "tests/sidecar/streams.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <template <typename> class D, typename... Args>
DatasetPtr<Record> On(DatasetPtr<Record> input, Args... args) {
  return std::make_unique<D<Record>>(std::move(input), args...);
}

TEST(Take, TakesTheFirstOrAll) {
  EXPECT_THAT(Values(*On<TakeDataset>(Numbers(5), 2)), ElementsAre(0, 1));
  EXPECT_THAT(Values(*On<TakeDataset>(Numbers(3), 9)), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values(*On<TakeDataset>(Numbers(3), 0)), IsEmpty());
  EXPECT_THAT(Values(*On<TakeDataset>(Numbers(3), -1)), ElementsAre(0, 1, 2));
}

TEST(Skip, SkipsTheFirstOrAll) {
  EXPECT_THAT(Values(*On<SkipDataset>(Numbers(5), 4)), ElementsAre(4));
  EXPECT_THAT(Values(*On<SkipDataset>(Numbers(3), 9)), IsEmpty());
  EXPECT_THAT(Values(*On<SkipDataset>(Numbers(3), -1)), IsEmpty());
}

TEST(Shard, KeepsEveryNth) {
  for (const size_t block : {1, 2, 3, 7, 100}) {
    EXPECT_THAT(Values(*On<ShardDataset>(Numbers(8), 3, 1, 0, ""), {}, block), ElementsAre(1, 4, 7));
  }
  EXPECT_THAT(Values(*On<ShardDataset>(Numbers(2), 3, 2, 0, "")), IsEmpty());
}

TEST(Shard, RefusesTooFewForAllBeforeTheFirst) {
  const auto dataset = On<ShardDataset>(Numbers(2), 3, 0, 3, "here");
  std::vector<Record> out(1);
  const auto read = dataset->Iterate({})->Read(out);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("here: 2 for 3 workers"));
  EXPECT_THAT(Values(*On<ShardDataset>(Numbers(3), 3, 0, 3, "here")), ElementsAre(0));
  EXPECT_THAT(Values(*On<ShardDataset>(Numbers(0), 3, 0, 3, "here")), IsEmpty()) << "nothing at all is no shortage";
}

TEST(Repeat, RepeatsAndEndsAnEndlessRepeatOfNothing) {
  EXPECT_THAT(Values(*On<RepeatDataset>(Numbers(2), 3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Values(*On<RepeatDataset>(Numbers(2), 0)), IsEmpty());
  EXPECT_THAT(Values(*On<RepeatDataset>(Numbers(0), -1)), IsEmpty());
  EXPECT_THAT(Values(*On<TakeDataset>(On<RepeatDataset>(Numbers(2), -1), 5)), ElementsAre(0, 1, 0, 1, 0));
}

TEST(Shuffle, IsAPermutationThatIsAFunctionOfSeedAndPass) {
  const auto shuffled = [](int64_t buffer, uint64_t seed, bool reshuffle, uint64_t pass, size_t block = 3) {
    return Values(*On<ShuffleDataset>(Numbers(100), Shuffle{buffer, static_cast<int64_t>(seed), reshuffle}, 1u), {pass},
                  block);
  };
  const auto order = shuffled(20, 7, true, 0);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, all);
  EXPECT_EQ(order, shuffled(20, 7, true, 0, 50)) << "the size of blocks must not matter";
  EXPECT_NE(order, shuffled(20, 8, true, 0));
  EXPECT_NE(order, shuffled(20, 7, true, 1));
  EXPECT_EQ(shuffled(20, 7, false, 0), shuffled(20, 7, false, 1));
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_LT(order[static_cast<size_t>(i)], i + 20) << "no element can leave before it was in the buffer";
  }
  EXPECT_EQ(shuffled(1, 7, true, 0), all) << "a buffer of one keeps the order";
}

TEST(Shuffle, GivesEveryPlaceAFairShare) {
  // The first element leaves first with probability 1/10: over 2,000 seeds 200 times, give or take 5 sigma of 13.4.
  int first = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    first +=
        Values(*On<ShuffleDataset>(Numbers(10), Shuffle{10, static_cast<int64_t>(seed), false}, 1u))[0] == 0 ? 1 : 0;
  }
  EXPECT_NEAR(first, 200, 67);
}

TEST(Shuffle, ReshufflesEachRepetition) {
  const auto repeated =
      Values(*On<RepeatDataset>(On<ShuffleDataset>(Numbers(50), Shuffle{50, static_cast<int64_t>(3u), true}, 1u), 2));
  ASSERT_EQ(repeated.size(), 100u);
  EXPECT_NE(std::vector<int64_t>(repeated.begin(), repeated.begin() + 50),
            std::vector<int64_t>(repeated.begin() + 50, repeated.end()));
}

TEST(Enumerate, NumbersRecordsFromItsStart) {
  const EnumerateDataset dataset(On<SkipDataset>(Numbers(4), 2), 10);
  const auto records = ReadAll(dataset);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].index, 10);
  EXPECT_EQ(records[1].index, 11);
  EXPECT_EQ(records[1].value, 3);
}

TEST(Batch, KeepsOrDropsTheRemainder) {
  const auto kept = ReadAll(*MakeBatch(Numbers(5), 2, false));
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_THAT(Values(kept[2].records), ElementsAre(4));
  EXPECT_EQ(kept[2].rows, 1);
  EXPECT_EQ(ReadAll(*MakeBatch(Numbers(5), 2, true)).size(), 2u);
}

TEST(BatchOfBatches, JoinsEqualBatchesAndRefusesUnequal) {
  const auto joined = ReadAll(*MakeBatchOfBatches(MakeBatch(Numbers(8), 2, true), 3, false, "spec.pipeline[1].batch"));
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].rows, 3);
  EXPECT_EQ(joined[0].row_records, 2);
  EXPECT_THAT(Values(joined[1].records), ElementsAre(6, 7));
  const auto unequal = MakeBatchOfBatches(MakeBatch(Numbers(5), 2, false), 3, false, "spec.pipeline[1].batch");
  std::vector<Batch> out(1);
  EXPECT_THAT(unequal->Iterate({})->Read(out).status().message(), HasSubstr("spec.pipeline[1].batch: cannot join"));
  const auto dropped = MakeBatchOfBatches(MakeBatch(Numbers(5), 2, false), 4, true, "spec.pipeline[1].batch");
  EXPECT_THAT(ReadAll(*dropped), IsEmpty()) << "as in tf.data, where a dropped remainder is never joined";
}

}  // namespace
}  // namespace headrace::side
