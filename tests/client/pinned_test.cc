// Batches brought to a GPU by the client, against the stand-in for the CUDA driver: contents and order.
#include <gmock/gmock.h>

#include <cstddef>

#include "tests/client/pinned_fixture.h"
#include "tests/fakes/held_kernel.h"

namespace headrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(PinnedTest, TensorsAreOnTheGpuWithTheirValues) {
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    headrace_iterator* iterator = Iterate(0);
    for (uint64_t step = 0; step < 5; ++step) {
      headrace_batch* batch = Next(iterator);
      EXPECT_EQ(headrace_batch_epoch(batch), static_cast<int64_t>(epoch));
      EXPECT_EQ(headrace_batch_step(batch), static_cast<int64_t>(step));
      const headrace_tensor x = Tensor(batch, 1);
      EXPECT_EQ(x.device_type, 2);
      EXPECT_EQ(x.device_id, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data) % 64, 0U);
      EXPECT_EQ(x.shape[0], 4);
      EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(epoch, step));
      EXPECT_EQ(Copied<float>(batch, 1), Xs(epoch, step));
      headrace_batch_free(batch);
    }
    headrace_batch* none = nullptr;
    EXPECT_EQ(headrace_next(iterator, 10000, &none), HEADRACE_END);
    EXPECT_EQ(headrace_next(iterator, 10000, &none), HEADRACE_END);
  }
  EXPECT_EQ(State().copies_to_device - before_.copies_to_device, 15) << "components side by side are one copy";
  EXPECT_EQ(State().registrations, 1);
}

TEST_F(PinnedTest, EachReplicaHasItsGpu) {
  options_.replicas = 2;
  auto loader = StartLoader();
  for (const std::vector<int32_t>& gpus : {std::vector<int32_t>{}, {1, 0}, {1}}) {
    ASSERT_EQ(ConnectDevice(0, gpus), HEADRACE_OK) << headrace_last_error();
    headrace_iterator* iterator = Iterate(HEADRACE_WHOLE_WORKER);
    headrace_batch* batches[2];
    ASSERT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_OK) << headrace_last_error();
    for (int32_t r = 0; r < 2; ++r) {
      EXPECT_EQ(Tensor(batches[r], 0).device_id, gpus.empty() ? r : gpus[static_cast<size_t>(r) % gpus.size()]);
      EXPECT_EQ(Copied<int64_t>(batches[r], 0), Labels(static_cast<uint64_t>(headrace_batch_epoch(batches[r])), 0, r));
      headrace_batch_free(batches[r]);
    }
    headrace_iterator_free(iterators_.back());
    iterators_.pop_back();
    headrace_dataset_free(datasets_.back());
    datasets_.pop_back();
  }
}

TEST_F(PinnedTest, NextDoesNotWaitForTheCopy) {
  auto loader = StartLoader();
  FakeCudaHoldCopies(1);
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batch = Next(Iterate(0));  // while the copy cannot have begun
  EXPECT_EQ(loader->header(0).released.load(), 0U) << "the GPU has yet to read the slot";
  FakeCudaHoldCopies(0);
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0));
  EXPECT_TRUE(Eventually([&] { return loader->header(0).released.load() >= 1; }))
      << "the slot goes back though the trainer keeps the batch";
  headrace_batch_free(batch);
}

TEST_F(PinnedTest, StreamWaitsForTheBatch) {
  auto loader = StartLoader();
  FakeCudaHoldCopies(1);
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batch = Next(Iterate(0));
  TrainerStream stream;
  ASSERT_EQ(headrace_batch_use_on_stream(batch, stream.handle()), HEADRACE_OK) << headrace_last_error();
  std::vector<int64_t> labels(4);
  stream.Read(Tensor(batch, 0), labels.data());
  std::atomic<bool> read = false;
  stream.Run([](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &read);
  EXPECT_FALSE(read);
  FakeCudaHoldCopies(0);
  stream.Synchronize();
  EXPECT_EQ(labels, Labels(0, 0));
  headrace_batch_free(batch);
}

TEST_F(PinnedTest, MemoryIsNotOverwrittenWhileAStreamUsesIt) {
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(/*device_batches=*/1), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  headrace_batch* batch = Next(iterator);
  TrainerStream stream;
  ASSERT_EQ(headrace_batch_use_on_stream(batch, stream.handle()), HEADRACE_OK) << headrace_last_error();
  fakes::HeldKernel kernel;
  std::vector<int64_t> labels(4);
  stream.Run(fakes::HeldKernel::Run, &kernel);
  stream.Read(Tensor(batch, 0), labels.data());
  const headrace_tensor first = Tensor(batch, 0);
  headrace_batch_free(batch);  // the kernel still runs
  batch = Next(iterator);      // and the host need not wait for it
  EXPECT_EQ(Tensor(batch, 0).data, first.data) << "the same memory";
  EXPECT_EQ(headrace_batch_step(batch), 1);
  EXPECT_LE(loader->header(0).released.load(), 1U) << "the second copy has not been done";
  kernel.End();
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 1));
  stream.Synchronize();
  EXPECT_EQ(labels, Labels(0, 0));
  headrace_batch_free(batch);
}

// The trainer's host is done with each batch, and its stream with none: the next ones come meanwhile, into other
// memory.
TEST_F(PinnedTest, CopiesGoOnWhileAStreamUsesWhatWasFreed) {
  options_.on_demand = true;  // so that each batch was freed before the next one is taken
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(3), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  TrainerStream stream;
  fakes::HeldKernel kernel;
  stream.Run(fakes::HeldKernel::Run, &kernel);
  for (int i = 0; i < 3; ++i) {
    headrace_batch* batch = Next(iterator);
    ASSERT_EQ(headrace_batch_use_on_stream(batch, stream.handle()), HEADRACE_OK) << headrace_last_error();
    headrace_batch_free(batch);
  }
  EXPECT_TRUE(Eventually([&] { return loader->header(0).released.load() == 3; })) << "a copy waits for the stream";
  kernel.End();
  stream.Synchronize();
}

TEST_F(PinnedTest, TensorOfVariableLengthStaysInTheRing) {
  options_.variable = true;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  headrace_batch* batch = Next(iterator);
  EXPECT_EQ(Tensor(batch, 0).device_type, 2);
  EXPECT_EQ(Tensor(batch, 1).device_type, 2);
  for (int32_t i = 2; i < 6; ++i) EXPECT_EQ(Tensor(batch, i).device_type, 1) << i;
  EXPECT_EQ(Copied<float>(batch, 1), Xs(0, 0));
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0));
  const headrace_tensor title = Tensor(batch, 3);
  EXPECT_EQ(std::string(static_cast<const char*>(title.data), static_cast<size_t>(title.nbytes)), "batch 0");
  EXPECT_EQ(loader->header(0).released.load(), 0U) << "the slot is the batch's";
  headrace_batch_free(batch);
  for (uint64_t step = 1; step < 5; ++step) {
    batch = Next(iterator);
    EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, step));
    headrace_batch_free(batch);
  }
  EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_END);
}

TEST_F(PinnedTest, SlotOfAFreedBatchWaitsForItsCopy) {
  options_.variable = true;
  auto loader = StartLoader();
  FakeCudaHoldCopies(1);
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batch = Next(Iterate(0));
  TrainerStream stream;
  ASSERT_EQ(headrace_batch_use_on_stream(batch, stream.handle()), HEADRACE_OK) << headrace_last_error();
  std::vector<int64_t> labels(4);
  stream.Read(Tensor(batch, 0), labels.data());
  headrace_batch_free(batch);
  EXPECT_EQ(loader->header(0).released.load(), 0U) << "the GPU has yet to read it";
  FakeCudaHoldCopies(0);
  stream.Synchronize();
  EXPECT_EQ(labels, Labels(0, 0));
  EXPECT_TRUE(Eventually([&] { return loader->header(0).released.load() >= 1; }));
}

TEST_F(PinnedTest, TrainerThatKeepsEverythingIsTold) {
  options_.steps = 8;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(/*device_batches=*/2), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  headrace_batch* kept[] = {Next(iterator), Next(iterator)};
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, -1, &batch), HEADRACE_EXHAUSTED);
  EXPECT_THAT(headrace_last_error(), AllOf(HasSubstr("all 2 batches"), HasSubstr("device_batches")));
  EXPECT_EQ(headrace_next(iterator, 0, &batch), HEADRACE_EXHAUSTED);
  headrace_batch_free(kept[0]);
  batch = Next(iterator);
  EXPECT_EQ(headrace_batch_step(batch), 2) << "nothing is lost";
  EXPECT_EQ(Copied<int64_t>(kept[1], 0), Labels(0, 1)) << "what is kept stays as it was";
  headrace_batch_free(kept[1]);
  headrace_batch_free(batch);
}

TEST_F(PinnedTest, TimeoutLosesNothingAndFailureComesAfterTheBatches) {
  options_.fail_at_step = 2;
  options_.error = "Corrupt: a.tfrecord: offset 88: bad checksum";
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  for (uint64_t step = 0; step < 2; ++step) {
    headrace_batch* batch = Next(iterator);
    EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, step));
    headrace_batch_free(batch);
  }
  headrace_batch* batch = nullptr;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_CORRUPT);
    EXPECT_STREQ(headrace_last_error(), "a.tfrecord: offset 88: bad checksum");
  }
}

TEST_F(PinnedTest, TimesOutWhileTheLoaderMakesNothing) {
  options_.pause_at_step = 1;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  headrace_batch_free(Next(iterator));
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, 0, &batch), HEADRACE_TIMED_OUT);
  EXPECT_EQ(headrace_next(iterator, 30, &batch), HEADRACE_TIMED_OUT);
}

TEST_F(PinnedTest, NewIteratorEndsTheOldOneAndSeeksGoWhereTheySay) {
  options_.steps = 50;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* old = Iterate(0);
  headrace_batch* kept = Next(old);
  headrace_position place{};
  place.size = sizeof(place);
  ASSERT_EQ(headrace_iterator_position(old, &place), HEADRACE_OK);
  EXPECT_EQ(place.step, 1) << "what is on its way to the GPU does not count";
  place.step = 20;
  headrace_iterator* iterator = nullptr;
  ASSERT_EQ(headrace_iterator_create_at(datasets_[0], 0, &place, &iterator), HEADRACE_OK) << headrace_last_error();
  iterators_.push_back(iterator);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(old, 0, &batch), HEADRACE_INVALID_ARGUMENT);
  for (uint64_t step = 20; step < 50; ++step) {
    batch = Next(iterator);
    EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, step));
    headrace_batch_free(batch);
  }
  EXPECT_EQ(Copied<int64_t>(kept, 0), Labels(0, 0));
  headrace_batch_free(kept);
}

TEST_F(PinnedTest, OnDemandNothingIsTakenBeforeItIsAskedFor) {
  options_.on_demand = true;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  ASSERT_TRUE(Eventually([&] { return loader->header(0).published.load() == 4; }));
  for (uint64_t step = 0; step < 5; ++step) {
    EXPECT_EQ(loader->header(0).batches_read.load(), step);
    headrace_batch* batch = Next(iterator);
    EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, step));
    headrace_batch_free(batch);
  }
}

TEST_F(PinnedTest, InfoSaysWhereAndWhy) {
  auto loader = StartLoader();
  headrace_info info{};
  info.size = sizeof(info);
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(headrace_get_info(datasets_[0], &info), HEADRACE_OK);
  EXPECT_STREQ(info.memory, "Pinned");
  EXPECT_THAT(info.memory_reason, AllOf(HasSubstr("GPU 0 of the 2"), HasSubstr("spec.delivery.memory is Auto")));
  EXPECT_EQ(ConnectDevice(0, {2}), HEADRACE_INVALID_ARGUMENT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("replica 0 is to have GPU 2, and this process sees GPUs 0 to 1"));
  EXPECT_EQ(ConnectDevice(-1), HEADRACE_INVALID_ARGUMENT);
}

TEST_F(PinnedTest, ProgramsOfBeforeGetHostMemory) {
  auto loader = StartLoader();
  headrace_connect_options old{};
  old.size = offsetof(headrace_connect_options, takes_device);
  old.directory = options_.directory.c_str();
  old.timeout_ms = 10000;
  old.takes_device = 1;  // beyond what `size` says there is
  headrace_dataset* dataset = nullptr;
  ASSERT_EQ(headrace_connect(&old, &dataset), HEADRACE_OK) << headrace_last_error();
  datasets_.push_back(dataset);
  headrace_batch* batch = Next(Iterate(0));
  headrace_tensor label{};
  label.size = offsetof(headrace_tensor, device_type);
  label.device_type = 77;
  ASSERT_EQ(headrace_batch_tensor(batch, 0, &label), HEADRACE_OK);
  EXPECT_EQ(label.device_type, 77) << "not theirs to know";
  EXPECT_EQ(*static_cast<const int64_t*>(label.data), 0);
  // The calls for GPU memory do no harm.
  EXPECT_EQ(headrace_batch_use_on_stream(batch, nullptr), HEADRACE_OK);
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0));
  EXPECT_EQ(Tensor(batch, 0).device_type, 1);
  headrace_batch_free(batch);
  EXPECT_EQ(State().contexts, 0);
}

TEST_F(PinnedTest, StreamMustHaveAName) {
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batch = Next(Iterate(0));
  EXPECT_EQ(headrace_batch_use_on_stream(batch, nullptr), HEADRACE_INVALID_ARGUMENT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("(void*)1 for the legacy default stream"));
  EXPECT_EQ(headrace_batch_use_on_stream(batch, reinterpret_cast<void*>(1)), HEADRACE_OK) << headrace_last_error();
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0)) << "copied on that stream";
  headrace_batch_free(batch);
}

}  // namespace
}  // namespace headrace
