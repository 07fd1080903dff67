#include "sidecar/core/record.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::side {
namespace {

class CountedBlock : public Block {
 public:
  std::span<const uint8_t> Bytes(int64_t, size_t) const override { return {}; }
  size_t memory() const override { return 0; }
  std::string Place(int64_t) const override { return "nowhere"; }
  int dropped = 0;

 private:
  void Dropped() override { ++dropped; }
};

TEST(Records, PointAtNothing) {
  CountedBlock first, second;
  BlockRef held(&second);
  std::vector<Record> records(7);  // the last of them is a number
  PointAtRows(std::span(records).subspan(0, 2), BlockRef(&first), 10);
  PointAtRows(std::span(records).subspan(2, 3), held, 0);
  PointAtRows(std::span(records).subspan(5, 1), BlockRef(&first), 12);
  ASSERT_EQ(first.references(), 3u);
  ASSERT_EQ(second.references(), 4u);

  PointAtRows(std::span(records).first(5), {}, 0);
  EXPECT_EQ(first.references(), 1u);
  EXPECT_EQ(second.references(), 1u);
  EXPECT_EQ(first.dropped, 0);
  PointAtRows(records, {}, 0);
  EXPECT_EQ(first.dropped, 1);
  EXPECT_EQ(second.dropped, 0) << "it is held still";
  for (const Record& record : records) EXPECT_FALSE(record.block);
  held = {};
  EXPECT_EQ(second.dropped, 1);
}

TEST(Records, PointAtOtherRowsOfTheSameBlock) {
  CountedBlock block;
  std::vector<Record> records(4);
  PointAtRows(records, BlockRef(&block), 0);
  PointAtRows(records, BlockRef(&block), 4);
  EXPECT_EQ(block.references(), 4u);
  EXPECT_EQ(block.dropped, 0);
  EXPECT_EQ(records[3].value, 7);
  PointAtRows(records, {}, 0);
  EXPECT_EQ(block.dropped, 1);
}

}  // namespace
}  // namespace headrace::side
