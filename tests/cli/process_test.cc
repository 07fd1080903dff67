#include "cli/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;

Process Start(const std::string& script) {
  ProcessOptions options;
  options.argv = {"sh", "-c", script};
  options.environment = {{"HEADRACE_TEST", "seven"}};
  Result<Process> process = Process::Start(options);
  EXPECT_TRUE(process.ok()) << process.status().ToString();
  return std::move(process).value();
}

TEST(ProcessTest, GivesTheExitStatusOfAShell) {
  EXPECT_EQ(Start("exit 3").Wait(-1), 3);
  EXPECT_EQ(Start("kill -KILL $$").Wait(-1), 128 + SIGKILL);
}

TEST(ProcessTest, AddsToTheEnvironment) {
  EXPECT_EQ(Start("test \"$HEADRACE_TEST\" = seven -a -n \"$PATH\"").Wait(-1), 0);
}

TEST(ProcessTest, RedirectsOutput) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ProcessOptions options;
  options.argv = {"sh", "-c", "echo out; echo err >&2"};
  options.stdout_fd = options.stderr_fd = ends[1];
  Result<Process> process = Process::Start(options);
  close(ends[1]);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(process->Wait(-1), 0);
  char text[64] = {};
  EXPECT_EQ(read(ends[0], text, sizeof text), 8);
  EXPECT_STREQ(text, "out\nerr\n");
  close(ends[0]);
}

TEST(ProcessTest, ABinaryThatIsNotThereIsAnError) {
  ProcessOptions options;
  options.argv = {"/nonexistent/loader"};
  const Result<Process> process = Process::Start(options);
  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.status().code(), Code::kNotFound);
  EXPECT_THAT(process.status().message(), HasSubstr("/nonexistent/loader"));
}

TEST(ProcessTest, StopEndsAProcessThatIgnoresSigterm) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ProcessOptions options;
  options.argv = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"};
  options.stdout_fd = ends[1];
  Result<Process> process = Process::Start(options);
  close(ends[1]);
  ASSERT_TRUE(process.ok());
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);  // the trap is set
  EXPECT_EQ(process->Wait(0), std::nullopt);
  EXPECT_EQ(process->Stop(50), 128 + SIGKILL);
  close(ends[0]);
}

TEST(ProcessTest, DiesWithTheThreadThatStartedIt) {
  Process process;
  std::thread([&] { process = Start("exec sleep 1000"); }).join();
  EXPECT_EQ(process.Wait(10000), 128 + SIGKILL);
}

TEST(ScratchDirectoryTest, IsRemovedWithItsContents) {
  std::string path;
  {
    const auto directory = ScratchDirectory::Make("headrace-test-");
    ASSERT_TRUE(directory.ok());
    path = directory->path();
    std::filesystem::create_directory(path + "/inner");
    std::ofstream(path + "/inner/file") << "x";
    EXPECT_TRUE(std::filesystem::exists(path + "/inner/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace headrace::cli
