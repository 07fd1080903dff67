// Writer and reader of one ring in one thread: order, epochs, take-over, bounds.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/ring/geometry.h"
#include "tests/common/ring/ring_fixture.h"

namespace headrace::ring {
namespace {

using testing::HasSubstr;
using Outcome = RingReader::Outcome;

#define ASSERT_NEXT(reader, epoch, want)                           \
  do {                                                             \
    auto outcome = (reader).Next(epoch, 0, &view);                 \
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();      \
    ASSERT_EQ(static_cast<int>(*outcome), static_cast<int>(want)); \
  } while (false)

TEST_F(RingTest, DeliversInOrderThenEndsTheEpochOnce) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  EXPECT_EQ(reader->StartIteration(), 0u);
  SlotView view;
  ASSERT_NEXT(*reader, 0, Outcome::kTimeout);
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  ASSERT_TRUE(WriteEnd(*writer, 0, 3).ok());
  EXPECT_EQ(writer->occupancy(), 4u);
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_NEXT(*reader, 0, Outcome::kBatch);
    EXPECT_EQ(view.step, step);
    EXPECT_TRUE(Intact(view));
    reader->Release(view);
  }
  ASSERT_NEXT(*reader, 0, Outcome::kEndOfEpoch);
  ASSERT_NEXT(*reader, 0, Outcome::kEndOfEpoch);
  EXPECT_EQ(writer->occupancy(), 0u);
  EXPECT_EQ(reader->header().batches_read.load(), 3u);
}

TEST_F(RingTest, FullRingWaitsAndStops) {
  auto writer = OpenWriter(2);
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  ASSERT_TRUE(Write(*writer, 0, 1).ok());
  std::atomic<bool> stop{true};
  EXPECT_EQ(writer->Reserve(stop).status().code(), Code::kCancelled);
}

TEST_F(RingTest, ReleasesInAnyOrder) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  for (uint64_t step = 0; step < 4; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  std::vector<SlotView> views(4);
  for (SlotView& held : views) ASSERT_TRUE(reader->Next(0, 0, &held).ok());
  reader->Release(views[2]);
  EXPECT_EQ(writer->occupancy(), 3u);
  reader->Release(views[0]);
  EXPECT_EQ(writer->occupancy(), 2u);
  reader->Release(views[0]);  // no longer held: nothing happens
  EXPECT_EQ(writer->occupancy(), 2u);
  for (uint64_t step = 4; step < 6; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  for (size_t kept : {1, 3}) EXPECT_TRUE(Intact(views[kept])) << "a held batch was overwritten";
  reader->Release(views[2]);  // its slot has another batch by now, which is not touched
  EXPECT_EQ(writer->occupancy(), 4u);
}

TEST_F(RingTest, AKeptBatchCostsOneSlotAndStopsNothing) {
  auto writer = OpenWriter(3);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  SlotView kept, view;
  ASSERT_TRUE(reader->Next(0, 0, &kept).ok());
  for (uint64_t step = 1; step < 20; ++step) {
    ASSERT_TRUE(Write(*writer, 0, step).ok());
    ASSERT_NEXT(*reader, 0, Outcome::kBatch);
    EXPECT_EQ(view.step, step);
    EXPECT_TRUE(Intact(view));
    reader->Release(view);
  }
  EXPECT_TRUE(Intact(kept));
  EXPECT_EQ(writer->occupancy(), 1u);
  // A loader that comes back goes on past it, too.
  writer = OpenWriter(3);
  EXPECT_EQ(writer->next_step(), 20u);
  for (uint64_t step = 20; step < 22; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  EXPECT_TRUE(Intact(kept));
}

TEST_F(RingTest, NextTrainerGetsWhatWasNotGivenBackInOrder) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  SlotView views[6];
  for (uint64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(Write(*writer, 0, step).ok());
    ASSERT_TRUE(reader->Next(0, 0, &views[step]).ok());
    if (step < 2) reader->Release(views[step]);
  }
  reader->Release(views[4]);
  ASSERT_TRUE(Write(*writer, 0, 6).ok());
  reader.reset();  // with 2, 3 and 5 held and 6 unread
  reader = OpenReader(*writer);
  SlotView view;
  for (uint64_t step : {3, 5, 6}) {
    ASSERT_NEXT(*reader, 0, Outcome::kBatch);
    EXPECT_EQ(view.step, step);
    EXPECT_TRUE(Intact(view));
    reader->Release(view);
  }
  // Batch 2 was held past the end of the ring: its descriptor is batch 6's, and its slot is the loader's again.
  EXPECT_EQ(writer->occupancy(), 0u);
  for (uint64_t step = 7; step < 11; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
}

TEST_F(RingTest, AllSlotsHeldIsAnErrorAndNotADeadlock) {
  auto writer = OpenWriter(2);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  ASSERT_TRUE(Write(*writer, 0, 1).ok());
  SlotView held[2];
  for (SlotView& view : held) ASSERT_TRUE(reader->Next(0, 0, &view).ok());
  SlotView view;
  // In the slices of a caller that looks at signals in between.
  Status status;
  for (int slice = 0; slice < 200 && status.ok(); ++slice) status = reader->Next(0, 20, &view).status();
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_THAT(status.message(), HasSubstr("all 2 batches"));
  reader->Release(held[0]);
  ASSERT_TRUE(Write(*writer, 0, 2).ok());
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  EXPECT_EQ(view.step, 2u);
}

TEST_F(RingTest, NewIterationReleasesTheRestOfTheOldEpoch) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView first;
  ASSERT_TRUE(reader->Next(0, 0, &first).ok());
  EXPECT_EQ(writer->TakeNewerEpoch(), std::nullopt);
  EXPECT_EQ(reader->StartIteration(), 1u);
  EXPECT_EQ(writer->TakeNewerEpoch(), 1u);
  EXPECT_EQ(writer->TakeNewerEpoch(), std::nullopt) << "taken";
  std::atomic<bool> stop{false};
  EXPECT_EQ(writer->Reserve(stop, 0).status().code(), Code::kCancelled);
  EXPECT_TRUE(Intact(first)) << "what the trainer holds stays";
  reader->Release(first);
  EXPECT_EQ(writer->occupancy(), 0u);
  // The loader was about to publish one more of the old epoch: skipped as well, with or without an end.
  ASSERT_TRUE(WriteEnd(*writer, 0, 3).ok());
  ASSERT_TRUE(Write(*writer, 1, 0).ok());
  SlotView view;
  ASSERT_NEXT(*reader, 1, Outcome::kBatch);
  EXPECT_EQ(view.epoch, 1u);
  ASSERT_NEXT(*reader, 0, Outcome::kEndOfEpoch);
}

TEST_F(RingTest, SeekReleasesWhatWasPublishedBefore) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView held;
  ASSERT_TRUE(reader->Next(0, 0, &held).ok());
  EXPECT_EQ(writer->TakeSeek(), std::nullopt);

  reader->StartIterationAt({0, 1, 7});
  std::atomic<bool> stop{false};
  EXPECT_EQ(writer->Reserve(stop, 0).status().code(), Code::kCancelled) << "until the loader follows";
  EXPECT_TRUE(Intact(held));
  EXPECT_EQ(writer->TakeSeek(), (Position{0, 1, 7}));
  EXPECT_EQ(writer->TakeSeek(), std::nullopt) << "taken";
  EXPECT_EQ(std::pair(writer->next_epoch(), writer->next_step()), std::pair(uint64_t{0}, uint64_t{1}));
  // The same steps as before, but published for the seek.
  for (uint64_t step = 1; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView view;
  for (uint64_t step = 1; step < 3; ++step) {
    ASSERT_NEXT(*reader, 0, Outcome::kBatch);
    EXPECT_EQ(view.step, step);
    reader->Release(view);
  }
  ASSERT_NEXT(*reader, 0, Outcome::kTimeout);
  EXPECT_EQ(reader->StartIteration(), 1u) << "the epoch after the one that was sought";
}

TEST_F(RingTest, SeekGoesBackToAnEpochThatIsOver) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(WriteEnd(*writer, 0, 0).ok());
  ASSERT_TRUE(Write(*writer, 1, 0).ok());
  SlotView view;
  ASSERT_NEXT(*reader, 0, Outcome::kEndOfEpoch);
  reader->StartIterationAt({0, 0, 0});
  ASSERT_NEXT(*reader, 0, Outcome::kTimeout);
  ASSERT_TRUE(writer->TakeSeek().has_value());
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  EXPECT_EQ(view.epoch, 0u);
}

TEST_F(RingTest, IteratorRightAfterASeekIsFollowedToo) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIterationAt({5, 1000, 0});
  EXPECT_EQ(reader->StartIteration(), 6u);
  EXPECT_EQ(writer->TakeSeek(), (Position{5, 1000, 0}));
  EXPECT_EQ(writer->TakeNewerEpoch(), 6u) << "the trainer waits for it";
}

TEST_F(RingTest, RestartedLoaderStillFindsASeekThatNobodyFollowed) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  reader->StartIterationAt({3, 2, 0});
  auto successor = OpenWriter(4);
  EXPECT_EQ(successor->TakeSeek(), (Position{3, 2, 0}));
  ASSERT_TRUE(Write(*successor, 3, 2).ok());
  EXPECT_EQ(OpenWriter(4)->TakeSeek(), std::nullopt) << "followed by the one before";
}

TEST_F(RingTest, PrefetchesIntoTheNextEpoch) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  ASSERT_TRUE(WriteEnd(*writer, 0, 1).ok());
  ASSERT_TRUE(Write(*writer, 1, 0).ok());
  SlotView view;
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  reader->Release(view);
  ASSERT_NEXT(*reader, 0, Outcome::kEndOfEpoch);
  EXPECT_EQ(reader->StartIteration(), 1u);
  ASSERT_NEXT(*reader, 1, Outcome::kBatch);
  EXPECT_EQ(view.epoch, 1u);
}

TEST_F(RingTest, AnEpochWithoutItsEndIsOverWhenALaterOneIsThere) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  ASSERT_TRUE(Write(*writer, 3, 0).ok());
  SlotView view;
  ASSERT_NEXT(*reader, 2, Outcome::kEndOfEpoch);
  EXPECT_EQ(writer->occupancy(), 1u) << "the later epoch's batch is not consumed";
}

TEST_F(RingTest, FailureComesAfterWhatWasPublished) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  writer->Fail(Corrupt("/data/a.tfrecord: offset 12: bad checksum"));
  writer->Fail(Internal("a later error"));
  SlotView view;
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  for (int again = 0; again < 2; ++again) {
    Status status = reader->Next(0, 0, &view).status();
    EXPECT_EQ(status.ToString(), "Corrupt: /data/a.tfrecord: offset 12: bad checksum");
  }
}

TEST_F(RingTest, LongErrorIsCut) {
  auto writer = OpenWriter(2);
  auto reader = OpenReader(*writer);
  writer->Fail(Corrupt(std::string(10000, 'x')));
  SlotView view;
  Status status = reader->Next(0, 0, &view).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.ToString().size(), kMaxErrorBytes - 1);
}

TEST_F(RingTest, RestartedLoaderGoesOn) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView first;
  ASSERT_TRUE(reader->Next(0, 0, &first).ok());
  writer->Fail(Unavailable("gone"));
  writer.reset();
  writer = OpenWriter(4);
  EXPECT_EQ(writer->header().generation, 2u);
  EXPECT_EQ(writer->next_epoch(), 0u);
  EXPECT_EQ(writer->next_step(), 3u);
  EXPECT_EQ(writer->occupancy(), 3u);
  ASSERT_TRUE(Write(*writer, 0, 3).ok());
  SlotView view;
  for (uint64_t step = 1; step < 4; ++step) {
    ASSERT_NEXT(*reader, 0, Outcome::kBatch);
    EXPECT_EQ(view.step, step);
    EXPECT_TRUE(Intact(view));
  }
  EXPECT_TRUE(Intact(first));
  reader->Release(first);
  ASSERT_TRUE(WriteEnd(*writer, 0, 4).ok());
  writer = OpenWriter(4);
  EXPECT_EQ(writer->next_epoch(), 1u);
  EXPECT_EQ(writer->next_step(), 0u);
}

TEST_F(RingTest, RestartedTrainerGetsAgainWhatItHeld) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  for (uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(Write(*writer, 0, step).ok());
  SlotView view;
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  reader->Release(view);
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);  // held when the trainer dies
  reader.reset();
  reader = OpenReader(*writer);
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  EXPECT_EQ(view.step, 1u);
}

TEST_F(RingTest, AnotherPlanOrGeometryStartsANewFile) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  reader->StartIteration();
  ASSERT_TRUE(Write(*writer, 0, 0).ok());
  SlotView view;
  ASSERT_NEXT(*reader, 0, Outcome::kBatch);
  RingGeometry other = Geometry(4);
  other.plan_hash = "fedcba9876543210";
  auto replaced = RingWriter::Open(path(), other);
  ASSERT_TRUE(replaced.ok()) << replaced.status().ToString();
  EXPECT_EQ((*replaced)->header().generation, 1u);
  EXPECT_EQ((*replaced)->occupancy(), 0u);
  EXPECT_TRUE(Intact(view)) << "the old reader keeps its memory";
  auto larger = RingWriter::Open(path(), Geometry(8));
  ASSERT_TRUE(larger.ok());
  EXPECT_EQ((*larger)->header().slot_count, 8u);
  // Its slots hold what a GPU makes tensors of: other bytes than those of the loader before it.
  other = Geometry(8);
  other.device_slot_bytes = 3 * 4096 + 1;
  auto of_images = RingWriter::Open(path(), other);
  ASSERT_TRUE(of_images.ok());
  EXPECT_EQ((*of_images)->header().generation, 1u);
  EXPECT_EQ((*of_images)->header().device_slot_stride, 4 * 4096u);
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

TEST_F(RingTest, ForeignFileIsReplaced) {
  OpenWriter(4);
  int fd = open(path().c_str(), O_RDWR);
  ASSERT_EQ(pwrite(fd, "garbage!", 8, 0), 8);
  close(fd);
  auto writer = OpenWriter(4);
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->header().generation, 1u);
}

TEST_F(RingTest, BadGeometryIsRefused) {
  RingGeometry geometry = Geometry(1);
  EXPECT_EQ(RingWriter::Open(path(), geometry).status().code(), Code::kInvalidArgument);
  geometry = Geometry(2);
  geometry.plan_hash = std::string(24, 'a');
  EXPECT_EQ(RingWriter::Open(path(), geometry).status().code(), Code::kInvalidArgument);
}

TEST_F(RingTest, VolumeTooSmallIsAnErrorAtOpen) {
  if (mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=65536") != 0) {
    GTEST_SKIP() << "mounting a tmpfs needs CAP_SYS_ADMIN; the branch is the same as for a full disk";
  }
  RingGeometry geometry = Geometry(4);
  geometry.slot_bytes = 1 << 20;
  Status status = RingWriter::Open(path(), geometry).status();
  bool left = std::filesystem::exists(path() + ".new");
  umount(directory_.c_str());
  EXPECT_EQ(status.code(), Code::kExhausted) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr(path()));
  EXPECT_THAT(status.message(), HasSubstr("4202496 bytes"));  // 4 slots, a page of header, a page of descriptors
  EXPECT_THAT(status.message(), HasSubstr("65536 left"));
  EXPECT_THAT(status.message(), HasSubstr("sizeLimit"));
  EXPECT_FALSE(left) << "a failed open leaves no file";
}

TEST_F(RingTest, HeaderOfOtherBytesIsRefusedByField) {
  auto writer = OpenWriter(4);
  auto* header = const_cast<RingHeader*>(&writer->header());
  auto attach = [&] {
    auto reader = RingReader::Attach(writer->fd());
    return reader.ok() ? std::string() : reader.status().ToString();
  };
  EXPECT_EQ(attach(), "");
  const RingHeader& good = writer->header();
  struct Case {
    uint64_t RingHeader::*field;
    uint64_t value;
    const char* want;
  };
  for (const Case& bad :
       {Case{&RingHeader::slot_count, 0, "slot_count"}, Case{&RingHeader::slot_count, ~uint64_t{0}, "slot_count"},
        Case{&RingHeader::slot_count, 5, "file_bytes"}, Case{&RingHeader::slot_stride, 100, "slot_stride"},
        Case{&RingHeader::slot_stride, uint64_t{1} << 63, "slot_bytes"},
        Case{&RingHeader::descriptor_offset, 0, "descriptor_offset"},
        Case{&RingHeader::descriptor_stride, 8, "descriptor_stride"},
        Case{&RingHeader::data_offset, 4097, "data_offset"}, Case{&RingHeader::file_bytes, 4096, "file_bytes"},
        Case{&RingHeader::device_slot_stride, 100, "device_slot_stride"}}) {
    uint64_t was = good.*bad.field;
    header->*bad.field = bad.value;
    EXPECT_THAT(attach(), testing::StartsWith("Corrupt: "));
    EXPECT_THAT(attach(), HasSubstr(bad.want));
    header->*bad.field = was;
  }
  header->version = 99;
  EXPECT_THAT(attach(), HasSubstr("version is 99, want 5"));
  header->version = kLayoutVersion;
  header->component_count = 4000;
  EXPECT_THAT(attach(), HasSubstr("component_count is 4000"));
  header->component_count = 1;
  header->released.store(1);
  EXPECT_THAT(attach(), HasSubstr("released is 1"));
  header->released.store(0);
  header->magic[0] = 'X';
  EXPECT_THAT(attach(), HasSubstr("HDRCRING"));
}

TEST_F(RingTest, CountersThatCannotBeAreErrors) {
  auto writer = OpenWriter(4);
  auto reader = OpenReader(*writer);
  auto* header = const_cast<RingHeader*>(&writer->header());
  header->published.store(100);
  SlotView view;
  EXPECT_EQ(reader->Next(0, 0, &view).status().code(), Code::kCorrupt);
  header->released.store(50);
  std::atomic<bool> stop{false};
  EXPECT_EQ(writer->Reserve(stop).status().code(), Code::kCorrupt);
}

TEST_F(RingTest, EmptyDescriptorIsNotARing) {
  int fd = open((directory_ + "/short").c_str(), O_RDWR | O_CREAT, 0600);
  EXPECT_EQ(RingReader::Attach(fd).status().code(), Code::kCorrupt);
  close(fd);
}

}  // namespace
}  // namespace headrace::ring
