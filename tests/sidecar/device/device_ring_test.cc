// A loader's ring in GPU memory, against the stand-in driver: where things lie, who waits for whom, who takes over.
#include "sidecar/device/device_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <future>

#include "sidecar/device/device_layout.h"
#include "sidecar/device/image_code.h"
#include "tests/common/ring/ring_fixture.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/sidecar/device/program_images.h"

namespace headrace::device {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr int64_t kValues = 1024;
constexpr uint64_t kBytes = kValues * sizeof(int64_t);

class DeviceRingTest : public ring::RingTest {
 protected:
  DeviceRingTest() : before_(State()) {}
  void TearDown() override {
    FakeCudaHoldCopies(0);
    const FakeCudaState after = State();
    EXPECT_EQ(after.contexts + after.streams + after.events + after.registrations + after.device_bytes + after.modules,
              0);
    EXPECT_EQ(after.refusals, before_.refusals) << FakeCudaLastRefusal();
  }
  static FakeCudaState State() {
    FakeCudaState state;
    FakeCudaGetState(&state);
    return state;
  }
  static std::unique_ptr<DeviceRing> Make(const ring::RingWriter& writer, std::vector<GpuImages> images = {},
                                          int gpu = 0) {
    auto made = DeviceRing::Create(gpu, writer, std::move(images));
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? std::move(*made) : nullptr;
  }

  // What a trainer has mapped.
  struct Mapped {
    std::unique_ptr<gpu::PrimaryContext> context;
    std::unique_ptr<gpu::SharedMemory> memory;
    std::unique_ptr<gpu::Handover> handover;
    uint64_t stride = 0;

    std::vector<int64_t> Values(uint64_t slot) const {
      std::vector<int64_t> values(kValues);
      const gpu::PrimaryContext::Current current(*context);
      const gpu::Driver& driver = context->driver();
      EXPECT_EQ(driver.memcpy_dtoh_async(values.data(), memory->address() + slot * stride, kBytes, nullptr), 0);
      EXPECT_EQ(driver.stream_synchronize(nullptr), 0);
      return values;
    }
  };
  static Mapped Map(const DeviceRing& device_ring, const ring::RingWriter& writer) {
    Mapped mapped;
    const ring::Geometry& geometry = writer.geometry();
    mapped.stride = geometry.device_stride();
    mapped.context = std::move(*gpu::PrimaryContext::Retain(*gpu::Driver::Open(), 0));
    const uint64_t bytes = geometry.slot_count * geometry.device_stride();
    mapped.memory = std::move(*gpu::SharedMemory::Import(mapped.context.get(), device_ring.memory_fd(), bytes));
    mapped.handover =
        std::move(*gpu::Handover::Import(mapped.context.get(), device_ring.handover_fd(), geometry.slot_count));
    return mapped;
  }

  // Writes a batch of one component to a slot and sends it.
  struct Sent {
    uint8_t* slot = nullptr;
    std::vector<ring::ComponentExtent> extents;
    std::promise<Status> done;
    std::future<Status> status = done.get_future();
  };
  static std::unique_ptr<Sent> Send(ring::RingWriter& writer, DeviceRing& device_ring, int64_t value) {
    auto sent = std::make_unique<Sent>();
    sent->slot = *writer.TryReserve();
    if (sent->slot == nullptr) return nullptr;
    std::fill_n(reinterpret_cast<int64_t*>(sent->slot), kValues, value);
    sent->extents = {{0, kBytes, 1, {kValues}}};
    const auto done = [](void* to, const Status& status) { static_cast<Sent*>(to)->done.set_value(status); };
    device_ring.Send(sent->slot, sent->extents, done, sent.get());
    return sent;
  }
  static void Publish(ring::RingWriter& writer, DeviceRing& device_ring, Sent& sent, uint64_t step) {
    ASSERT_TRUE(sent.status.get().ok());
    device_ring.MarkFilled(sent.slot);
    ring::SlotDescriptor descriptor{};
    descriptor.step = step;
    descriptor.rows = kValues;
    descriptor.device_ring = device_ring.generation();
    writer.Publish(descriptor, sent.extents);
  }
  static bool IsDone(const Sent& sent) {
    return sent.status.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  const std::atomic<bool> never_{false};
  const FakeCudaState before_;
};

TEST_F(DeviceRingTest, HasTheSlotsPlacesAndIsSeenByWhoMapsIt) {
  auto writer = OpenWriter(3, kValues);
  auto device_ring = Make(*writer);
  const Mapped mapped = Map(*device_ring, *writer);
  for (int64_t step = 0; step < 3; ++step) {
    const auto sent = Send(*writer, *device_ring, 100 + step);
    Publish(*writer, *device_ring, *sent, static_cast<uint64_t>(step));
  }
  for (uint64_t slot = 0; slot < 3; ++slot) EXPECT_THAT(mapped.Values(slot), Each(100 + static_cast<int64_t>(slot)));
  EXPECT_EQ(State().pageable_copies, before_.pageable_copies) << "the ring is registered";
  EXPECT_TRUE(device_ring->idle());
}

TEST_F(DeviceRingTest, DoneIsSaidWhenTheCopyIsAndNotBefore) {
  auto writer = OpenWriter(2, kValues);
  auto device_ring = Make(*writer);
  FakeCudaHoldCopies(1);
  const auto sent = Send(*writer, *device_ring, 7);
  EXPECT_FALSE(IsDone(*sent));
  EXPECT_FALSE(device_ring->idle());
  FakeCudaHoldCopies(0);
  EXPECT_TRUE(sent->status.get().ok());
  device_ring->Drain(never_);
  EXPECT_TRUE(device_ring->idle());
}

TEST_F(DeviceRingTest, ASlotIsNotFilledBeforeTheTrainerHasDrainedIt) {
  auto writer = OpenWriter(2, kValues);
  auto reader = OpenReader(*writer);
  auto device_ring = Make(*writer);
  const Mapped mapped = Map(*device_ring, *writer);
  reader->StartIteration();
  for (uint64_t step = 0; step < 2; ++step) {
    const auto sent = Send(*writer, *device_ring, static_cast<int64_t>(step));
    Publish(*writer, *device_ring, *sent, step);
  }
  ring::SlotView view;
  ASSERT_EQ(*reader->Next(0, 1000, &view), ring::RingReader::Outcome::kBatch);
  reader->Release(view);  // back in the ring, while the trainer's stream still reads it
  const auto sent = Send(*writer, *device_ring, 2);
  ASSERT_NE(sent, nullptr);
  EXPECT_FALSE(IsDone(*sent));
  EXPECT_THAT(mapped.Values(0), Each(0));
  EXPECT_EQ(State().value_waits - before_.value_waits, 1);
  {
    const gpu::PrimaryContext::Current current(*mapped.context);
    EXPECT_TRUE(mapped.handover->DrainBehind(0, nullptr).ok());
  }
  EXPECT_TRUE(sent->status.get().ok());
  EXPECT_THAT(mapped.Values(0), Each(2));
}

TEST_F(DeviceRingTest, AReaderOfHostMemoryIsNotWaitedFor) {
  auto writer = OpenWriter(2, kValues);
  auto reader = OpenReader(*writer);
  auto device_ring = Make(*writer);
  reader->StartIteration();
  std::unique_ptr<Sent> waiting;
  for (uint64_t step = 0; step < 6; ++step) {
    const auto sent = Send(*writer, *device_ring, static_cast<int64_t>(step));
    if (step == 2) {  // what a trainer that was killed left without a word
      EXPECT_FALSE(IsDone(*sent));
      device_ring->SetReader(DeviceRing::Reader::kHost);
    }
    Publish(*writer, *device_ring, *sent, step);
    ring::SlotView view;
    ASSERT_EQ(*reader->Next(0, 1000, &view), ring::RingReader::Outcome::kBatch);
    reader->Release(view);
  }
}

TEST_F(DeviceRingTest, ANewLoaderFillsWhatTheClientHas) {
  auto writer = OpenWriter(4, kValues);
  auto device_ring = Make(*writer);
  for (uint64_t step = 0; step < 3; ++step) {
    const auto sent = Send(*writer, *device_ring, 40 + static_cast<int64_t>(step));
    Publish(*writer, *device_ring, *sent, step);
  }
  auto old = std::make_unique<Mapped>(Map(*device_ring, *writer));
  device_ring.reset();
  writer.reset();
  EXPECT_THAT(old->Values(1), Each(41)) << "the memory lives as long as somebody has it mapped";

  writer = OpenWriter(4, kValues);
  device_ring = Make(*writer);
  EXPECT_EQ(device_ring->generation(), 2U);
  {
    const Mapped mapped = Map(*device_ring, *writer);
    for (uint64_t slot = 0; slot < 3; ++slot) {
      EXPECT_THAT(mapped.Values(slot), Each(40 + static_cast<int64_t>(slot)));
      EXPECT_FALSE(mapped.handover->IsDrained(slot)) << "and waits for its reader";
    }
    EXPECT_TRUE(mapped.handover->IsDrained(3));
  }
  EXPECT_EQ(State().device_bytes, 2 * (2 << 20)) << "one of each loader";
  old.reset();
  EXPECT_EQ(State().device_bytes, 2 << 20);
}

TEST_F(DeviceRingTest, WhatStaysInTheRingIsNotCopied) {
  auto writer = OpenWriter(2, 8 * kValues);
  auto device_ring = Make(*writer);
  uint8_t* const slot = *writer->TryReserve();
  std::memset(slot, 1, 8 * kBytes);
  // A ragged component in between, and one far behind it.
  std::vector<ring::ComponentExtent> extents = {
      {0, kBytes, 1, {kValues}},
      {2 * kBytes, kBytes, 2, {1, -1}, /*splits_offset=*/3 * kBytes},
      {6 * kBytes, kBytes, 1, {kValues}},
  };
  const FakeCudaState before = State();
  std::promise<Status> done;
  const auto end = [](void* to, const Status& status) { static_cast<std::promise<Status>*>(to)->set_value(status); };
  device_ring->Send(slot, extents, end, &done);
  EXPECT_TRUE(done.get_future().get().ok());
  EXPECT_EQ(State().copies_to_device - before.copies_to_device, 2);
  Mapped mapped = Map(*device_ring, *writer);
  EXPECT_THAT(mapped.Values(0), Each(0x0101010101010101));
  mapped.stride = 2 * kBytes;
  EXPECT_THAT(mapped.Values(1), Each(static_cast<int64_t>(0xA5A5A5A5A5A5A5A5))) << "nobody wrote there";
  EXPECT_THAT(mapped.Values(3), Each(0x0101010101010101));
}

TEST_F(DeviceRingTest, StopEndsTheWaitAndNothingIsSaidLater) {
  auto writer = OpenWriter(2, kValues);
  auto device_ring = Make(*writer);
  FakeCudaHoldCopies(1);
  const auto sent = Send(*writer, *device_ring, 1);
  const std::atomic<bool> stop{true};
  device_ring->Drain(stop);
  EXPECT_FALSE(device_ring->idle());
  FakeCudaHoldCopies(0);
  device_ring->Drain(never_);
  EXPECT_FALSE(IsDone(*sent));
}

// A label for each image, and images of which the GPU makes floats.
class ImagesRingTest : public DeviceRingTest {
 protected:
  static constexpr int64_t kImages = 4;
  static constexpr int64_t kPixels = 6 * 8;

  ImagesRingTest() {
    images_.component = 1;
    images_.decoded = {"image", DType::kUint8, {6, 8, 3}};
    images_.program = Photographs(kPixels, 3, DType::kFloat32, DType::kFloat16);
  }
  void SetUp() override {
    if (ImageCode().empty()) GTEST_SKIP() << "this build is without CUDA, and so without image kernels";
  }

  std::unique_ptr<ring::RingWriter> OpenImagesWriter() {
    std::vector<ring::ComponentExtent> extents = Extents(kImages);
    ring::RingGeometry geometry = Geometry(3);
    geometry.slot_bytes = extents[1].offset + extents[1].bytes;
    geometry.device_slot_bytes = PlaceInDeviceSlot({&images_, 1}, extents);
    geometry.component_count = 2;
    return std::move(*ring::RingWriter::Open(path(), geometry));
  }
  std::vector<ring::ComponentExtent> Extents(int64_t count) const {
    const auto images = static_cast<uint64_t>(count);
    return {{0, images * sizeof(int64_t), 1, {count}}, {64, images * images_.image_bytes(), 4, {count, 3, 6, 8}}};
  }
  std::vector<uint8_t> Decoded(int64_t count, uint32_t step) const {
    return RandomImages(images_.program, count, step + 1);
  }
  // Sends and publishes so many images as one step.
  void PublishImages(ring::RingWriter& writer, DeviceRing& device_ring, int64_t count, uint32_t step) {
    Sent sent;
    sent.slot = *writer.TryReserve();
    ASSERT_NE(sent.slot, nullptr);
    sent.extents = Extents(count);
    std::fill_n(reinterpret_cast<int64_t*>(sent.slot), count, int64_t{step});
    const std::vector<uint8_t> decoded = Decoded(count, step);
    std::copy(decoded.begin(), decoded.end(), sent.slot + 64);
    const auto done = [](void* to, const Status& status) { static_cast<Sent*>(to)->done.set_value(status); };
    device_ring.Send(sent.slot, sent.extents, done, &sent);
    Publish(writer, device_ring, sent, step);
  }
  // Bytes of a slot of the GPU, as whoever has mapped it sees them.
  static std::vector<uint8_t> Bytes(const Mapped& mapped, uint64_t slot, const ring::ComponentExtent& extent) {
    std::vector<uint8_t> bytes(extent.device_bytes);
    const gpu::PrimaryContext::Current current(*mapped.context);
    const gpu::Driver& driver = mapped.context->driver();
    const gpu::DevicePtr from = mapped.memory->address() + slot * mapped.stride + extent.device_offset;
    EXPECT_EQ(driver.memcpy_dtoh_async(bytes.data(), from, bytes.size(), nullptr), 0);
    EXPECT_EQ(driver.stream_synchronize(nullptr), 0);
    return bytes;
  }
  void ExpectImages(const Mapped& mapped, uint64_t slot, int64_t count, uint32_t step) const {
    std::vector<ring::ComponentExtent> extents = Extents(count);
    PlaceInDeviceSlot({&images_, 1}, extents);
    const std::vector<int64_t> labels(static_cast<size_t>(count), step);
    const std::vector<uint8_t> bytes = Bytes(mapped, slot, extents[0]);
    ASSERT_EQ(bytes.size(), labels.size() * sizeof(int64_t));
    EXPECT_EQ(std::memcmp(bytes.data(), labels.data(), bytes.size()), 0);
    EXPECT_TRUE(Bytes(mapped, slot, extents[1]) == Made(images_.program, Decoded(count, step))) << "step " << step;
  }

  GpuImages images_;
};

TEST_F(ImagesRingTest, TheGpuMakesThemInSlotsOfTheirOwnLayout) {
  auto writer = OpenImagesWriter();
  auto device_ring = Make(*writer, {images_});
  const Mapped mapped = Map(*device_ring, *writer);
  const FakeCudaState before = State();
  PublishImages(*writer, *device_ring, kImages, 0);
  PublishImages(*writer, *device_ring, 1, 1);  // a batch that is not full
  PublishImages(*writer, *device_ring, 0, 2);  // and one of nothing
  ExpectImages(mapped, 0, kImages, 0);
  ExpectImages(mapped, 1, 1, 1);
  EXPECT_EQ(State().launches - before.launches, 2);
  EXPECT_EQ(State().copies_to_device - before.copies_to_device, 4);
  EXPECT_EQ(State().pageable_copies, before.pageable_copies);
}

// One memory holds what one batch after the other is made of.
TEST_F(ImagesRingTest, BatchesOnTheirWayDoNotMix) {
  auto writer = OpenImagesWriter();
  auto device_ring = Make(*writer, {images_});
  const Mapped mapped = Map(*device_ring, *writer);
  FakeCudaHoldCopies(1);
  std::vector<std::unique_ptr<Sent>> all;
  for (uint32_t step = 0; step < 3; ++step) {
    Sent& sent = *all.emplace_back(std::make_unique<Sent>());
    sent.slot = *writer->TryReserve();
    sent.extents = Extents(kImages);
    std::fill_n(reinterpret_cast<int64_t*>(sent.slot), kImages, int64_t{step});
    const std::vector<uint8_t> decoded = Decoded(kImages, step);
    std::copy(decoded.begin(), decoded.end(), sent.slot + 64);
    const auto done = [](void* to, const Status& status) { static_cast<Sent*>(to)->done.set_value(status); };
    device_ring->Send(sent.slot, sent.extents, done, &sent);
  }
  FakeCudaHoldCopies(0);
  for (uint32_t step = 0; step < 3; ++step) {
    Publish(*writer, *device_ring, *all[step], step);
    ExpectImages(mapped, step, kImages, step);
  }
}

TEST_F(ImagesRingTest, ANewLoaderHasThemMadeAgain) {
  auto writer = OpenImagesWriter();
  auto device_ring = Make(*writer, {images_});
  for (const uint32_t step : {0, 1}) PublishImages(*writer, *device_ring, kImages - step, step);
  device_ring.reset();
  writer = OpenImagesWriter();
  device_ring = Make(*writer, {images_});
  EXPECT_EQ(device_ring->generation(), 2U);
  const Mapped mapped = Map(*device_ring, *writer);
  for (const uint32_t step : {0, 1}) ExpectImages(mapped, step, kImages - step, step);
}

TEST_F(ImagesRingTest, WhatAnotherProcessWroteOverTheRingIsNotFilled) {
  auto writer = OpenImagesWriter();
  auto device_ring = Make(*writer, {images_});
  for (const uint32_t step : {0, 1, 2}) PublishImages(*writer, *device_ring, kImages, step);
  device_ring.reset();
  const ring::Geometry& geometry = writer->geometry();
  geometry.extents(writer->base(), 0)[1].device_bytes -= 2;   // not what its bytes become
  geometry.extents(writer->base(), 1)[1].bytes = 1ULL << 40;  // in no slot
  writer = OpenImagesWriter();
  const FakeCudaState before = State();
  device_ring = Make(*writer, {images_});
  EXPECT_EQ(State().launches - before.launches, 1);
  const Mapped mapped = Map(*device_ring, *writer);
  ExpectImages(mapped, 2, kImages, 2);
  for (const uint64_t slot : {0, 1, 2})
    EXPECT_FALSE(mapped.handover->IsDrained(slot)) << "whoever has it gives it back";
}

TEST_F(ImagesRingTest, ADriverThatIsTooOldIsAnErrorThatSaysSo) {
  setenv("FAKE_CUDA_OLD", "1", 1);
  auto writer = OpenImagesWriter();
  const Status status = DeviceRing::Create(0, *writer, {images_}).status();
  unsetenv("FAKE_CUDA_OLD");
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("the image kernels: cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
                    HasSubstr("update the driver")));
}

TEST_F(DeviceRingTest, EachReplicaHasItsGpuAndFailuresSayWhichAndWhatToDo) {
  std::vector<std::unique_ptr<ring::RingWriter>> writers;
  ring::RingGeometry geometry = Geometry(2, kValues);
  for (uint32_t replica = 0; replica < 3; ++replica) {
    geometry.replica = replica;
    writers.push_back(std::move(*ring::RingWriter::Open(path() + std::to_string(replica), geometry)));
  }
  {
    const Result<DeviceRings> rings = MakeDeviceRings(writers, {});
    ASSERT_TRUE(rings.ok()) << rings.status().ToString();
    EXPECT_EQ((*rings)[0]->gpu(), *gpu::GpuUuid(0));
    EXPECT_EQ((*rings)[1]->gpu(), *gpu::GpuUuid(1));
    EXPECT_EQ((*rings)[2]->gpu(), *gpu::GpuUuid(0)) << "of two GPUs";
  }
  FakeCudaFailNextAllocation();
  const Status full = MakeDeviceRings(writers, {}).status();
  EXPECT_EQ(full.code(), Code::kExhausted);
  EXPECT_THAT(full.message(), AllOf(HasSubstr("a ring for replica 0 on GPU 0"), HasSubstr("cuMemCreate of 2097152"),
                                    HasSubstr("lower the batch size")));
  setenv("FAKE_CUDA_WITHOUT_ATTRIBUTE", "102", 1);
  const Status unable = MakeDeviceRings(writers, {}).status();
  unsetenv("FAKE_CUDA_WITHOUT_ATTRIBUTE");
  EXPECT_THAT(unable.message(), AllOf(HasSubstr("cannot share memory between processes"), HasSubstr("attribute 102"),
                                      HasSubstr("CUDA_ERROR_NOT_SUPPORTED"), HasSubstr("spec.delivery.memory: Host")));
}

}  // namespace
}  // namespace headrace::device
