// Opening the CUDA driver, and what is said where that does not work. Each case in a process of its own, since a
// process opens the driver once.
#include "common/gpu/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

namespace headrace::gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// What `body` returns in a process with these variables.
std::string InChild(std::initializer_list<std::pair<const char*, const char*>> environment,
                    const std::function<std::string()>& body) {
  int output[2];
  if (pipe(output) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : environment) setenv(name, value, 1);
    const std::string text = body();
    _exit(write(output[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(output[1]);
  std::string text;
  char part[512];
  for (ssize_t got; (got = read(output[0], part, sizeof(part))) > 0;) text.append(part, static_cast<size_t>(got));
  close(output[0]);
  waitpid(child, nullptr, 0);
  return text;
}

std::string Count() {
  const Result<int> count = CountGpus();
  return count.ok() ? std::to_string(*count) : count.status().ToString();
}

TEST(Driver, CountsTheGpus) { EXPECT_EQ(InChild({{"FAKE_CUDA_GPUS", "3"}}, Count), "3"); }

TEST(Driver, MissingLibraryNamesItAndTheRemedy) {
  EXPECT_THAT(InChild({{"HEADRACE_LIBCUDA", "/nowhere/libcuda.so.1"}}, Count),
              AllOf(StartsWith("NotFound: no CUDA driver in this process"), HasSubstr("/nowhere/libcuda.so.1"),
                    HasSubstr("nvidia.com/gpu"), HasSubstr("spec.delivery.memory: Host")));
}

TEST(Driver, OtherLibraryIsNoDriver) {
  EXPECT_THAT(InChild({{"HEADRACE_LIBCUDA", "libm.so.6"}}, Count),
              AllOf(StartsWith("Unavailable"), HasSubstr("libm.so.6 has no cuInit")));
}

TEST(Driver, OldDriverIsSaidWithBothVersions) {
  EXPECT_THAT(InChild({{"FAKE_CUDA_VERSION", "11040"}}, Count),
              AllOf(StartsWith("Unavailable"), HasSubstr("for CUDA 11.4, 12.0 is the oldest that works"),
                    HasSubstr("update the node's NVIDIA driver")));
}

TEST(Driver, NoGpuIsSaidInCudasWords) {
  EXPECT_THAT(InChild({{"FAKE_CUDA_GPUS", "0"}}, Count),
              AllOf(StartsWith("NotFound: cuInit: CUDA_ERROR_NO_DEVICE (100"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(Driver, OpensAgainAfterAFailure) {
  EXPECT_EQ(InChild({{"FAKE_CUDA_GPUS", "0"}},
                    [] {
                      const std::string before = Count();
                      setenv("FAKE_CUDA_GPUS", "1", 1);
                      return before.substr(0, 8) + " " + Count();
                    }),
            "NotFound 1");
}

TEST(Driver, ForkedProcessIsToldToSpawn) {
  const auto count_and_fork = [] {
    std::string text = Count() + " ";
    return text += InChild({}, Count);
  };
  EXPECT_THAT(InChild({}, count_and_fork),
              AllOf(StartsWith("2 Unavailable: this process was forked"), HasSubstr("spawn")));
}

TEST(Driver, ErrorsNameCallErrorAndRemedy) {
  const auto check = [](Error error) {
    return [error]() -> std::string {
      const Result<const Driver*> driver = Driver::Open();
      return driver.ok() ? (*driver)->Check(error, "cuMemAlloc of 12 bytes").ToString() : driver.status().ToString();
    };
  };
  EXPECT_EQ(InChild({}, check(kSuccess)), "OK");
  EXPECT_THAT(InChild({}, check(kErrorOutOfMemory)),
              AllOf(StartsWith("Exhausted: cuMemAlloc of 12 bytes: CUDA_ERROR_OUT_OF_MEMORY (2, "),
                    HasSubstr("lower the batch size"), HasSubstr("or write spec.delivery.memory: Host")));
  EXPECT_THAT(InChild({}, check(12345)), StartsWith("Unavailable: cuMemAlloc of 12 bytes: an unknown error (12345"));
}

}  // namespace
}  // namespace headrace::gpu
