// Whose each slot of a ring is, for those who have more behind a slot than its memory.
#include <gmock/gmock.h>

#include "tests/common/ring/ring_fixture.h"

namespace headrace::ring {
namespace {

TEST_F(RingTest, SaysWhoseASlotIs) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  EXPECT_EQ(writer->clients_slots(), std::vector<bool>(4, false));
  reader->StartIteration();
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView held;
  ASSERT_TRUE(reader->Next(0, 0, &held).ok());
  SlotView released;
  ASSERT_TRUE(reader->Next(0, 0, &released).ok());
  reader->Release(released);
  const std::vector<bool> loaders = {false, true, false, true};  // held, given back, published, never used
  EXPECT_EQ(reader->LoadersSlots(), loaders);
  auto successor = OpenWriter(4);
  const std::vector<bool> clients = {true, false, true, false};
  EXPECT_EQ(successor->clients_slots(), clients);
  EXPECT_EQ(successor->generation(), 2u);
  EXPECT_EQ(OpenReader(*successor)->LoadersSlots(), loaders) << "another client gets what this one had";
}

TEST_F(RingTest, TellsOfSlotsThatGoBackUnreadBeforeTheyDo) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  std::vector<std::pair<uint32_t, uint64_t>> skipped;  // slots, and how many had gone back
  reader->OnSkip([&](uint32_t slot) { skipped.emplace_back(slot, reader->header().released.load()); });
  reader->StartIteration();
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView view;
  ASSERT_TRUE(reader->Next(0, 0, &view).ok());
  reader->Release(view);
  EXPECT_TRUE(skipped.empty()) << "that one was read";
  reader->StartIteration();
  const std::vector<std::pair<uint32_t, uint64_t>> both = {{1, 1}, {2, 2}};
  EXPECT_EQ(skipped, both);
}

}  // namespace
}  // namespace headrace::ring
