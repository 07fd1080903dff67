#include "cli/worker_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "cli/input_file.h"
#include "cli/loaders.h"
#include "cli/process.h"

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr int kConnectTimeoutMs = 60000;
constexpr int kMostEpochs = 10000;

// The loaders of two workers that read the same few records, epoch after epoch.
class WorkerStreamTest : public testing::Test {
 protected:
  WorkerStreamTest() : directory_(std::move(ScratchDirectory::Make("headrace-test-")).value()) {
    setenv("PATH", (std::string(HEADRACE_BIN_DIR ":") + std::getenv("PATH")).c_str(), 1);
    const std::string file = directory_.path() + "/input.yaml";
    std::ofstream(file) << "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: numbers}\n"
                           "spec:\n  source: {range: {stop: 9}}\n  pipeline:\n  - batch: {size: 4}\n";
    LoaderOptions options;
    options.workers = 2;
    options.run_id = "test";
    loaders_ = std::move(LoaderGroup::Start(LoadInput(file, "").value().plan, options, directory_.path())).value();
  }

  Result<std::unique_ptr<WorkerStream>> Connect(int64_t worker, std::function<bool()> give_up) {
    return WorkerStream::Connect(loaders_->RunDirectory(worker), kConnectTimeoutMs, std::move(give_up));
  }

  // What ends the reading of epoch after epoch.
  static Status ReadAll(WorkerStream& stream, int timeout_ms) {
    for (int epoch = 0; epoch < kMostEpochs; ++epoch) {
      RETURN_IF_ERROR(stream.StartEpoch());
      while (true) {
        ASSIGN_OR_RETURN(const WorkerStep step, stream.Next(WorkerStream::Iteration::kNext, timeout_ms));
        if (step.empty()) break;
      }
    }
    return {};
  }

  ScratchDirectory directory_;
  std::unique_ptr<LoaderGroup> loaders_;
};

// Worker 0's trainer reads nothing, so its loader stops when its ring is full, and worker 1's cannot know whether that
// has another step.
TEST_F(WorkerStreamTest, AWaitForABatchIsGivenUp) {
  bool give_up = false;
  const auto stream = Connect(1, [&give_up] { return give_up; });
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  ASSERT_TRUE((*stream)->StartEpoch().ok());  // it connects to the ring
  give_up = true;
  const Status status = ReadAll(**stream, -1);
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_THAT(status.message(), HasSubstr("waiting for a batch"));
}

TEST_F(WorkerStreamTest, AWaitForABatchEndsWithItsTime) {
  const auto stream = Connect(1, [] { return false; });
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  const Status status = ReadAll(**stream, 1000);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("no batch came within 1 second"));
}

}  // namespace
}  // namespace headrace::cli
