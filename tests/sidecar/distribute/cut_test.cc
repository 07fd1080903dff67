// Expected values: TensorFlow's "Distributed Input" guide and tests/conformance/README.md.
#include "sidecar/distribute/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/transform/batch.h"
#include "sidecar/transform/counted.h"
#include "tests/sidecar/streams.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;

std::vector<std::vector<int64_t>> Pieces(Cut& cut) {
  std::vector<std::vector<int64_t>> pieces;
  Piece piece;
  while (pieces.size() < 100) {
    const auto more = cut.Next(&piece);
    EXPECT_TRUE(more.ok());
    if (!*more) break;
    pieces.push_back(Values(piece.records));
    EXPECT_EQ(piece.rows, static_cast<int64_t>(pieces.back().size()));
  }
  return pieces;
}

using Rows = std::vector<int64_t>;

TEST(Cut, PerBatchCutsEachBatchOnItsOwn) {
  const auto batches = MakeBatch(Numbers(6), 4, false);  // the guide: range(6).batch(4) over 2 replicas
  EXPECT_THAT(Pieces(*CutPerBatch(batches->Iterate({}), 2)), ElementsAre(Rows{0, 1}, Rows{2, 3}, Rows{4}, Rows{5}));
  const auto eight = MakeBatch(Numbers(8), 4, false);  // the guide: range(8).batch(4) over 3 replicas is 2, 2, 0
  EXPECT_THAT(Pieces(*CutPerBatch(eight->Iterate({}), 3)),
              ElementsAre(Rows{0, 1}, Rows{2, 3}, Rows{}, Rows{4, 5}, Rows{6, 7}, Rows{}));
}

// Every worker fails before a trainer waits (conformance README), also one whose first pieces take no rows.
TEST(Cut, ContinuousFailsBeforeAPieceOfNoRows) {
  const auto enough = MakeBatch(Numbers(2), 2, true);
  Piece piece;
  EXPECT_TRUE(CutContinuous(enough->Iterate({}), 2, 5, 2)->Next(&piece).ok());
  EXPECT_EQ(piece.rows, 0);
  const auto batches = MakeBatch(std::make_unique<ShardDataset<Record>>(Numbers(2), 5, 2, 5, "shard"), 2, true);
  EXPECT_FALSE(CutContinuous(batches->Iterate({}), 2, 5, 2)->Next(&piece).ok());
}

TEST(Cut, ContinuousJoinsBatches) {
  const auto eight = MakeBatch(Numbers(8), 4, false);  // conformance README: 2, 1, 1
  EXPECT_THAT(Pieces(*CutContinuous(eight->Iterate({}), 4, 3, 0)),
              ElementsAre(Rows{0, 1}, Rows{2}, Rows{3}, Rows{4, 5}, Rows{6}, Rows{7}));
  const auto six = MakeBatch(Numbers(6), 4, false);  // the README's note on File: [0,1] [2,3] [4,5]
  EXPECT_THAT(Pieces(*CutContinuous(six->Iterate({}), 4, 2, 0)), ElementsAre(Rows{0, 1}, Rows{2, 3}, Rows{4, 5}));
}

TEST(Cut, ContinuousProducesPiecesOfNothingWithoutLooking) {
  // G = 1, N = 2: sizes 1, 0. A piece of size 0 comes after the last record too.
  const auto one = MakeBatch(Numbers(1), 1, false);
  EXPECT_THAT(Pieces(*CutContinuous(one->Iterate({}), 1, 2, 0)), ElementsAre(Rows{0}, Rows{}));
  // Rotated by one: the piece of size 0 comes first, even from an empty stream.
  const auto none = MakeBatch(Numbers(0), 1, false);
  EXPECT_THAT(Pieces(*CutContinuous(none->Iterate({}), 1, 2, 1)), ElementsAre(Rows{}));
}

TEST(Cut, WholePassesBatches) {
  const auto batches = MakeBatch(Numbers(3), 2, false);
  EXPECT_THAT(Pieces(*PassWhole(batches->Iterate({}))), ElementsAre(Rows{0, 1}, Rows{2}));
}

}  // namespace
}  // namespace headrace::side
