// The client against a fake loader: restarts, failures, partial steps, time-outs.
#include "headrace/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/client/client_fixture.h"

namespace headrace {
namespace {

using fakes::FakeLoader;
using testing::HasSubstr;

TEST_F(ClientTest, MissingRunDirectoryIsSaidAtOnce) {
  std::filesystem::remove_all(options_.directory);
  EXPECT_EQ(Connect(60000), HEADRACE_NOT_FOUND);
  EXPECT_THAT(headrace_last_error(), HasSubstr("headrace.dev/input"));
  EXPECT_THAT(headrace_last_error(), HasSubstr(options_.directory));
}

TEST_F(ClientTest, NoLoaderWithinTheTime) {
  EXPECT_EQ(Connect(30), HEADRACE_UNAVAILABLE);
  EXPECT_THAT(headrace_last_error(), HasSubstr("loader.sock"));
}

TEST_F(ClientTest, WaitsForTheLoaderToStart) {
  std::unique_ptr<FakeLoader> loader;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    loader = StartLoader();
  });
  EXPECT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  later.join();
}

TEST_F(ClientTest, LoadersErrorComesThroughTheHandshake) {
  options_.error = "NotFound: spec.source.files.paths[0]: '/data/*.tfrecord' matches no file";
  auto loader = StartLoader();
  EXPECT_EQ(Connect(60000), HEADRACE_NOT_FOUND);
  EXPECT_THAT(headrace_last_error(), HasSubstr("spec.source.files.paths[0]: '/data/*.tfrecord' matches no file"));
}

TEST_F(ClientTest, LoadersFailureComesAfterItsBatches) {
  options_.fail_at_step = 2;
  options_.error = "Corrupt: a.tfrecord: offset 88: bad checksum";
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  ReadSteps(iterator, 0, 0, 0, 2);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_CORRUPT);
  EXPECT_STREQ(headrace_last_error(), "a.tfrecord: offset 88: bad checksum");
  EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_CORRUPT);
}

TEST_F(ClientTest, SecondReaderOfAReplicaIsRefused) {
  options_.replicas = 2;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  Iterate(0);
  ASSERT_EQ(Connect(200), HEADRACE_OK) << "asking attaches to nothing";
  headrace_iterator* second = nullptr;
  EXPECT_EQ(headrace_iterator_create(datasets_.back(), 0, &second), HEADRACE_CONFLICT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("read by another trainer"));
  ReadSteps(Iterate(1), 1, 0, 0, 3);
}

TEST_F(ClientTest, NextEndsBeforeAPartialStepThatAsOptionalDelivers) {
  options_.replicas = 2;
  options_.steps = 3;
  options_.partial_last_step = true;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batches[2];

  headrace_iterator* iterator = Iterate(HEADRACE_WHOLE_WORKER);
  for (int step = 0; step < 2; ++step) {
    ASSERT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_OK) << headrace_last_error();
    for (headrace_batch* batch : batches) headrace_batch_free(batch);
  }
  EXPECT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_END);
  EXPECT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_END);

  iterator = Iterate(HEADRACE_WHOLE_WORKER);
  int32_t has_value = 0;
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(headrace_next_as_optional(iterator, 10000, batches, &has_value), HEADRACE_OK);
    ASSERT_EQ(has_value, 1) << step;
    EXPECT_EQ(headrace_batch_epoch(batches[0]), 1);
    EXPECT_EQ(headrace_batch_rows(batches[0]), 4);
    const int64_t rows = step == 2 ? 0 : 4;
    EXPECT_EQ(headrace_batch_rows(batches[1]), rows);
    headrace_tensor x{};
    x.size = sizeof(x);
    ASSERT_EQ(headrace_batch_tensor(batches[1], 1, &x), HEADRACE_OK);
    EXPECT_EQ(x.shape[0], rows);
    EXPECT_EQ(x.shape[1], 3);
    for (headrace_batch* batch : batches) headrace_batch_free(batch);
  }
  ASSERT_EQ(headrace_next_as_optional(iterator, 10000, batches, &has_value), HEADRACE_OK);
  EXPECT_EQ(has_value, 0);
}

TEST_F(ClientTest, OneReplicasNextEndsBeforeThePartialStepToo) {
  options_.replicas = 2;
  options_.steps = 3;
  options_.partial_last_step = true;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* first = Iterate(0);
  ReadSteps(first, 0, 0, 0, 2);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(first, 10000, &batch), HEADRACE_END);
}

TEST_F(ClientTest, TimeOutLosesNothing) {
  options_.replicas = 2;
  options_.pause_at_step = 1;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* iterator = Iterate(HEADRACE_WHOLE_WORKER);
  headrace_batch* batches[2];
  ASSERT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_OK);
  for (headrace_batch* batch : batches) headrace_batch_free(batch);
  EXPECT_EQ(headrace_next(iterator, 0, batches), HEADRACE_TIMED_OUT);
  EXPECT_EQ(headrace_next(iterator, 20, batches), HEADRACE_TIMED_OUT);
  loader.reset();
  options_.pause_at_step = -1;
  loader = StartLoader();
  ASSERT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_OK) << headrace_last_error();
  EXPECT_EQ(headrace_batch_step(batches[0]), 1);
  for (headrace_batch* batch : batches) headrace_batch_free(batch);
}

TEST_F(ClientTest, NewIteratorEndsTheOldOne) {
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* old = Iterate(0);
  ReadSteps(old, 0, 0, 0, 1);
  headrace_iterator* fresh = Iterate(0);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(old, 10000, &batch), HEADRACE_INVALID_ARGUMENT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("newer one"));
  ReadSteps(fresh, 0, 1, 0, 5);
  EXPECT_EQ(headrace_next(fresh, 10000, &batch), HEADRACE_END);
}

class PreparedTest : public ClientTest {
 protected:
  // Takes the first batch and frees it when the second is there, which is prepared by that.
  headrace_iterator* FreeTheFirst(const FakeLoader& loader) {
    headrace_iterator* const iterator = Iterate(0);
    const ring::RingHeader& header = loader.header(0);
    headrace_batch* batch = nullptr;
    EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_OK) << headrace_last_error();
    const uint64_t read = header.batches_read.load();
    while (header.published.load() - header.released.load() < 2) std::this_thread::yield();
    headrace_batch_free(batch);
    EXPECT_EQ(header.batches_read.load(), read + 1);
    return iterator;
  }
};

TEST_F(PreparedTest, IsWhatComesNext) {
  options_.steps = -1;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* const iterator = FreeTheFirst(*loader);
  headrace_position position{};
  position.size = sizeof(position);
  ASSERT_EQ(headrace_iterator_position(iterator, &position), HEADRACE_OK);
  EXPECT_EQ(position.step, 1) << "what the trainer has not got is not behind it";
  headrace_batch* batch = nullptr;
  ASSERT_EQ(headrace_next(iterator, 0, &batch), HEADRACE_OK) << headrace_last_error();
  EXPECT_EQ(headrace_batch_step(batch), 1);
  EXPECT_EQ(FirstLabel(batch), FakeLoader::Label(options_, 0, 1, 0));
  headrace_batch_free(batch);
  ReadSteps(iterator, 0, 0, 2, 20);
}

TEST_F(PreparedTest, GoesBackWithItsIterator) {
  options_.steps = -1;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator_free(FreeTheFirst(*loader));
  iterators_.pop_back();
  EXPECT_EQ(loader->header(0).released.load(), 2u);

  // Nor does a batch that is freed after its iterator and data set prepare another.
  headrace_iterator* const iterator = Iterate(0);
  headrace_batch* batch = nullptr;
  ASSERT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_OK) << headrace_last_error();
  const uint64_t read = loader->header(0).batches_read.load();
  headrace_iterator_free(iterator);
  iterators_.pop_back();
  headrace_dataset_free(datasets_.back());
  datasets_.pop_back();
  headrace_batch_free(batch);
  EXPECT_EQ(loader->header(0).batches_read.load(), read);
}

TEST_F(PreparedTest, GoesBackWhenANewerIteratorStarts) {
  options_.steps = -1;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  for (uint64_t epoch = 0; epoch < 3 * options_.slots; ++epoch) FreeTheFirst(*loader);  // none of the slots is lost
  ReadSteps(Iterate(0), 0, 3 * options_.slots, 0, 10);
}

TEST_F(PreparedTest, IsToldOfIfItIsCorrupt) {
  options_.steps = -1;
  std::atomic<int> published = 0;
  options_.spoil = [&](uint8_t*, std::vector<ring::ComponentExtent>& extents) {
    if (published++ == 1) extents[0].bytes -= 8;
  };
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* const iterator = FreeTheFirst(*loader);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_CORRUPT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("component 'label' of step 1"));
  ReadSteps(iterator, 0, 0, 2, 10);
}

TEST_F(PreparedTest, StaysWithTheProcessThatReadsWhenItsChildDropsAll) {
  options_.steps = -1;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* const iterator = FreeTheFirst(*loader);
  headrace_batch* held = nullptr;
  ASSERT_EQ(headrace_next(iterator, 10000, &held), HEADRACE_OK);
  ReadSteps(iterator, 0, 0, 2, 3);
  const uint64_t released = loader->header(0).released.load();
  const uint32_t reader = loader->header(0).client_pid.load();
  const pid_t child = fork();
  if (child == 0) {
    headrace_iterator* own = nullptr;
    EXPECT_EQ(headrace_iterator_create(datasets_.back(), 0, &own), HEADRACE_UNAVAILABLE);
    EXPECT_THAT(headrace_last_error(), HasSubstr("forked from the one that connected"));
    headrace_batch_free(held);
    headrace_iterator_free(iterator);
    headrace_dataset_free(datasets_.back());
    _exit(HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(loader->header(0).released.load(), released);
  EXPECT_EQ(loader->header(0).client_pid.load(), reader);
  EXPECT_EQ(FirstLabel(held), FakeLoader::Label(options_, 0, 1, 0));
  headrace_batch_free(held);
  ReadSteps(iterator, 0, 0, 3, 20);
}

TEST_F(ClientTest, WholeWorkerStartsOneEpochForReplicasThatHadDifferentOnes) {
  options_.replicas = 2;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  Iterate(1);
  Iterate(1);
  headrace_iterator* iterator = Iterate(HEADRACE_WHOLE_WORKER);
  headrace_batch* batches[2];
  for (int64_t step = 0; step < 5; ++step) {
    ASSERT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_OK) << headrace_last_error();
    for (headrace_batch* batch : batches) {
      EXPECT_EQ(headrace_batch_epoch(batch), 2);
      EXPECT_EQ(headrace_batch_step(batch), step);
      headrace_batch_free(batch);
    }
  }
  EXPECT_EQ(headrace_next(iterator, 10000, batches), HEADRACE_END);
}

TEST_F(ClientTest, ReplicasReadByThreadsOfTheirOwn) {
  options_.replicas = 2;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    headrace_iterator* iterators[2] = {Iterate(0), Iterate(1)};
    std::thread second([&] { ReadSteps(iterators[1], 1, epoch, 0, 5); });
    ReadSteps(iterators[0], 0, epoch, 0, 5);
    second.join();
  }
}

TEST_F(ClientTest, AllSlotsHeldIsAnErrorUntilOneIsFreed) {
  options_.slots = 2;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* iterator = Iterate(0);
  headrace_batch* held[2];
  for (headrace_batch*& batch : held) ASSERT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_OK);
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, -1, &batch), HEADRACE_EXHAUSTED);
  EXPECT_THAT(headrace_last_error(), HasSubstr("all 2 batches"));
  for (headrace_batch* freed : held) headrace_batch_free(freed);
  ReadSteps(iterator, 0, 0, 2, 5);
}

// A loader in a process of its own, killed and started again under a trainer that goes on.
class LoaderProcess {
 public:
  LoaderProcess(const std::string& directory, std::vector<std::string> options) {
    int input[2], output[2];
    EXPECT_EQ(pipe(input), 0);
    EXPECT_EQ(pipe(output), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(input[0], 0);
      dup2(output[1], 1);
      for (int fd : {input[0], input[1], output[0], output[1]}) close(fd);
      std::vector<char*> arguments;
      static char binary[] = HEADRACE_RING_LOADER;
      arguments.push_back(binary);
      arguments.push_back(const_cast<char*>(directory.c_str()));
      for (std::string& option : options) arguments.push_back(option.data());
      arguments.push_back(nullptr);
      execv(binary, arguments.data());
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    char ready[6];
    EXPECT_EQ(read(output[0], ready, sizeof(ready)), 6);
    close(output[0]);
  }
  ~LoaderProcess() { Kill(); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(input_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
};

TEST_F(ClientTest, KilledLoaderComesBackAndNothingIsLost) {
  options_.replicas = 2;
  options_.steps = 400;
  const std::vector<std::string> arguments = {"replicas=2", "steps=400"};
  auto loader = std::make_unique<LoaderProcess>(options_.directory, arguments);
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(HEADRACE_WHOLE_WORKER);
  headrace_batch* batches[2];
  for (uint64_t step = 0; step < 400; ++step) {
    if (step % 40 == 39) {
      loader->Kill();
      loader = std::make_unique<LoaderProcess>(options_.directory, arguments);
    }
    ASSERT_EQ(headrace_next(iterator, -1, batches), HEADRACE_OK) << headrace_last_error();
    for (int32_t replica = 0; replica < 2; ++replica) {
      ASSERT_EQ(FirstLabel(batches[replica]), FakeLoader::Label(options_, 0, step, replica)) << step;
      headrace_batch_free(batches[replica]);
    }
  }
  EXPECT_EQ(headrace_next(iterator, -1, batches), HEADRACE_END);
}

TEST_F(ClientTest, LoaderThatStaysAwayIsAnErrorAfterItsBatches) {
  setenv("HEADRACE_LOADER_TIMEOUT", "0.3", 1);
  auto loader = std::make_unique<LoaderProcess>(options_.directory, std::vector<std::string>{"pause_at_step=2"});
  ASSERT_EQ(Connect(10000), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  ReadSteps(iterator, 0, 0, 0, 1);
  headrace_batch* second = nullptr;
  ASSERT_EQ(headrace_next(iterator, 10000, &second), HEADRACE_OK);
  loader->Kill();
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, -1, &batch), HEADRACE_UNAVAILABLE);
  EXPECT_THAT(headrace_last_error(), HasSubstr("has not come back within 0.3 s"));
  EXPECT_EQ(FirstLabel(second), FakeLoader::Label(options_, 0, 1, 0)) << "what the trainer holds survives the loader";
  headrace_batch_free(second);
}

TEST_F(ClientTest, LoaderThatComesBackWithAnotherPlanIsAnError) {
  auto loader = std::make_unique<LoaderProcess>(options_.directory, std::vector<std::string>{"pause_at_step=0"});
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  headrace_iterator* iterator = Iterate(0);
  loader->Kill();
  loader = std::make_unique<LoaderProcess>(options_.directory, std::vector<std::string>{"plan_hash=fedcba9876543210"});
  headrace_batch* batch = nullptr;
  EXPECT_EQ(headrace_next(iterator, -1, &batch), HEADRACE_UNAVAILABLE);
  EXPECT_THAT(headrace_last_error(), HasSubstr("plan fedcba9876543210, was 0123456789abcdef"));
}

TEST_F(ClientTest, KilledTrainerLeavesItsBatchesToTheNext) {
  options_.steps = -1;
  auto loader = std::make_unique<LoaderProcess>(options_.directory, std::vector<std::string>{"steps=-1"});
  // The trainer tells over a pipe how far it got, and dies in the middle of it.
  int progress[2];
  ASSERT_EQ(pipe(progress), 0);
  pid_t trainer = fork();
  if (trainer == 0) {
    ASSERT_EQ(Connect(), HEADRACE_OK);
    headrace_iterator* iterator = Iterate(0);
    while (true) {
      headrace_batch* batch = nullptr;
      if (headrace_next(iterator, 10000, &batch) != HEADRACE_OK) _exit(1);
      int64_t step = headrace_batch_step(batch);
      if (write(progress[1], &step, sizeof(step)) != sizeof(step)) _exit(1);
      headrace_batch_free(batch);
    }
  }
  close(progress[1]);
  int64_t step = 0;
  while (step < 50) ASSERT_EQ(read(progress[0], &step, sizeof(step)), static_cast<ssize_t>(sizeof(step)));
  kill(trainer, SIGKILL);
  waitpid(trainer, nullptr, 0);
  close(progress[0]);
  // The next trainer starts the next epoch at once, with the whole ring at its disposal.
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  ReadSteps(Iterate(0), 0, 1, 0, 10);
}

TEST_F(ClientTest, BadLoaderTimeoutIsSaid) {
  setenv("HEADRACE_LOADER_TIMEOUT", "soon", 1);
  EXPECT_EQ(Connect(), HEADRACE_INVALID_ARGUMENT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("HEADRACE_LOADER_TIMEOUT is 'soon'"));
}

}  // namespace
}  // namespace headrace
