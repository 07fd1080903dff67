// Batches on a GPU, against the stand-in for the CUDA driver: who outlives whom, what fails, and who is killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "client/destination.h"
#include "tests/client/pinned_fixture.h"

namespace headrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class PinnedLifetimeTest : public PinnedTest {};

TEST_F(PinnedLifetimeTest, BatchOutlivesIteratorAndDataSet) {
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batch = Next(Iterate(0));
  headrace_iterator_free(iterators_[0]);
  headrace_dataset_free(datasets_[0]);
  iterators_.clear();
  datasets_.clear();
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0));
  TrainerStream stream;
  EXPECT_EQ(headrace_batch_use_on_stream(batch, stream.handle()), HEADRACE_OK) << headrace_last_error();
  headrace_batch_free(batch);
}

TEST_F(PinnedLifetimeTest, BatchesAreFreedByOtherThreads) {
  options_.steps = 200;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  std::thread freeing;
  for (uint64_t step = 0; step < 200; ++step) {
    headrace_batch* batch = Next(iterator);
    if (freeing.joinable()) freeing.join();
    freeing = std::thread([this, batch, step] {
      EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, step));
      headrace_batch_free(batch);
    });
  }
  freeing.join();
}

TEST_F(PinnedLifetimeTest, IteratorsStartWhileCopiesAreHeld) {
  options_.steps = -1;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  FakeCudaHoldCopies(1);
  Iterate(0);
  ASSERT_TRUE(Eventually([&] { return State().copies_to_device - before_.copies_to_device == 4; }));
  std::thread later([&] { FakeCudaHoldCopies(0); });
  headrace_iterator* iterator = Iterate(0);  // what was on its way is read by the GPU before its slot goes back
  later.join();
  headrace_batch* batch = Next(iterator);
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(1, 0));
  headrace_batch_free(batch);
}

TEST_F(PinnedLifetimeTest, FullGpuIsAnErrorThatSaysSo) {
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  FakeCudaFailNextAllocation();
  headrace_iterator* iterator = Iterate(0);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_EXHAUSTED);
  EXPECT_THAT(headrace_last_error(), AllOf(HasSubstr("cuMemAlloc of"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"),
                                           HasSubstr("lower the batch size")));
  batch = Next(iterator);  // memory is there again
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0));
  headrace_batch_free(batch);
}

TEST_F(PinnedLifetimeTest, ForkedTrainerIsToldToSpawn) {
  options_.memory = MemoryKind::kPinned;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  int output[2];
  ASSERT_EQ(pipe(output), 0);
  const pid_t child = fork();
  if (child == 0) {
    client::ConnectPolicy policy;
    policy.takes_device = true;
    ring::HandshakeReply reply;
    reply.memory = MemoryKind::kPinned;
    const std::string text = client::ChooseDestinations(policy, reply).status().ToString();
    _exit(write(output[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  close(output[1]);
  char text[1000] = {};
  EXPECT_GT(read(output[0], text, sizeof(text) - 1), 0);
  close(output[0]);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(
      text, AllOf(StartsWith("Unavailable: spec.delivery.memory is Pinned"), HasSubstr("forked"), HasSubstr("spawn")));
}

TEST_F(PinnedLifetimeTest, ForkedProcessMayDropWhatItInherits) {
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  headrace_batch* batch = Next(iterator);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    headrace_batch* none = nullptr;
    if (headrace_next(iterator, 0, &none) != HEADRACE_UNAVAILABLE) _exit(1);
    if (std::string(headrace_last_error()).find("spawn") == std::string::npos) _exit(2);
    headrace_iterator* other = nullptr;
    if (headrace_iterator_create(datasets_[0], 0, &other) != HEADRACE_UNAVAILABLE) _exit(3);
    headrace_batch_free(batch);
    headrace_iterator_free(iterator);
    headrace_dataset_free(datasets_[0]);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 0)) << "the parent's batch is its own";
  headrace_batch_free(batch);
  batch = Next(iterator);
  EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, 1));
  headrace_batch_free(batch);
}

TEST_F(PinnedLifetimeTest, LoaderThatComesBackIsReadOn) {
  options_.steps = 40;
  auto loader = StartLoader();
  ASSERT_EQ(ConnectDevice(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  for (uint64_t step = 0; step < 40; ++step) {
    if (step % 10 == 5) {
      loader.reset();
      loader = StartLoader();
    }
    headrace_batch* batch = Next(iterator);
    EXPECT_EQ(Copied<int64_t>(batch, 0), Labels(0, step));
    headrace_batch_free(batch);
  }
}

// A trainer in a process of its own.
class Trainer {
 public:
  Trainer(const std::string& directory, uint64_t epoch, uint64_t step, int batches) {
    int output[2];
    EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
    const std::string place[] = {std::to_string(epoch), std::to_string(step), std::to_string(batches)};
    pid_ = fork();
    if (pid_ == 0) {
      dup2(output[1], 1);
      execl(HEADRACE_PINNED_TRAINER, HEADRACE_PINNED_TRAINER, directory.c_str(), place[0].c_str(), place[1].c_str(),
            place[2].c_str(), nullptr);
      _exit(127);
    }
    close(output[1]);
    lines_ = fdopen(output[0], "r");
  }
  ~Trainer() {
    Kill();
    std::fclose(lines_);
  }
  std::string Line() {
    char line[2000];
    if (std::fgets(line, sizeof(line), lines_) == nullptr) return "nothing";
    return std::string(line).substr(0, std::string(line).find('\n'));
  }
  void Kill() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  FILE* lines_ = nullptr;
};

TEST_F(PinnedLifetimeTest, TrainersKilledDuringTransferLoseNothing) {
  constexpr uint64_t kSteps = 300;
  options_.steps = kSteps;
  auto loader = StartLoader();
  uint64_t step = 0;
  for (int kills = 0; step < kSteps; ++kills) {
    Trainer trainer(options_.directory, 0, step, kills % 7);
    std::string line = trainer.Line();
    for (; line != "copying" && line != "end"; line = trainer.Line()) {
      ASSERT_EQ(line, std::to_string(step) + " " + std::to_string(Labels(0, step)[0]));
      step += 1;
    }
    if (line == "end") break;
    trainer.Kill();  // with copies under way, which will never be done
  }
  EXPECT_EQ(step, kSteps);
  Trainer last(options_.directory, 0, kSteps - 2, 100);
  EXPECT_EQ(last.Line(), "298 1192");
  EXPECT_EQ(last.Line(), "299 1196");
  EXPECT_EQ(last.Line(), "end") << "and leaves nothing in the driver";
}

TEST(Destinations, FollowTheInputTheTrainerAndTheProcess) {
  client::ConnectPolicy policy;
  ring::HandshakeReply reply;
  reply.topology.replicas_per_worker = 3;
  const auto choose = [&] { return client::ChooseDestinations(policy, reply); };
  EXPECT_FALSE((*choose())[2].gpu);
  EXPECT_EQ((*choose())[0].reason, "Host: the trainer takes host memory only");
  policy.takes_device = true;
  EXPECT_EQ((*choose())[2].gpu, 0) << "of two GPUs";
  EXPECT_EQ((*choose())[1].gpu, 1);
  reply.memory = MemoryKind::kHost;
  EXPECT_EQ((*choose())[0].reason, "Host: spec.delivery.memory says so");
  reply.memory = MemoryKind::kPinned;
  EXPECT_THAT((*choose())[0].reason, HasSubstr("Pinned: GPU 0 of the 2 that the trainer's process sees; "
                                               "spec.delivery.memory is Pinned"));
  reply.memory = MemoryKind::kDevice;
  reply.memory_reason = "the loader has no GPU: why";
  EXPECT_EQ((*choose())[1].gpu, 1);
  EXPECT_EQ((*choose())[1].memory, MemoryKind::kPinned);
  EXPECT_THAT((*choose())[0].reason, HasSubstr("spec.delivery.memory is Device, and the loader has no GPU: why"));
  // Replica r's ring is filled on the other one of the two.
  reply.device_rings = {{*gpu::GpuUuid(1), 1}, {*gpu::GpuUuid(0), 1}, {"GPU-not-here", 1}};
  EXPECT_EQ((*choose())[0].memory, MemoryKind::kDevice);
  EXPECT_EQ((*choose())[0].gpu, 1);
  EXPECT_TRUE((*choose())[0].error.ok());
  EXPECT_EQ((*choose())[2].memory, MemoryKind::kPinned);
  EXPECT_THAT((*choose())[2].error.message(),
              HasSubstr("replica 2's ring on GPU-not-here, which this process does not"));
  reply.memory = MemoryKind::kAuto;
  EXPECT_TRUE((*choose())[2].error.ok());
  policy.gpus = {1, 1, 1};
  EXPECT_EQ((*choose())[0].memory, MemoryKind::kDevice);
  EXPECT_EQ((*choose())[1].memory, MemoryKind::kPinned);
  EXPECT_THAT((*choose())[1].reason, HasSubstr("GPU 0 of this process, which names another"));
}

}  // namespace
}  // namespace headrace
