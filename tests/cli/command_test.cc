// The `headrace` binary as a user runs it, with real loaders.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/process.h"

namespace headrace::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int status = -1;
  std::string output;  // of both streams
};

class CommandTest : public testing::Test {
 protected:
  CommandTest() : directory_(std::move(ScratchDirectory::Make("headrace-test-")).value()) {}

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  Outcome Headrace(std::vector<std::string> arguments) {
    const std::string log = directory_.path() + "/output";
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ProcessOptions options;
    options.argv = std::move(arguments);
    options.argv.insert(options.argv.begin(), HEADRACE_BIN_DIR "/headrace");
    options.environment = {{"TMPDIR", directory_.path()}};
    options.stdout_fd = options.stderr_fd = fd;
    Result<Process> process = Process::Start(options);
    close(fd);
    EXPECT_TRUE(process.ok()) << process.status().ToString();
    Outcome outcome;
    if (process.ok()) outcome.status = process->Wait(60000).value_or(-1);
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    outcome.output = text.str();
    return outcome;
  }

  std::string RangeInput(const std::string& pipeline) {
    return Write("input.yaml",
                 "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: numbers}\n"
                 "spec:\n  source: {range: {stop: 9}}\n  pipeline:\n" +
                     pipeline);
  }

  ScratchDirectory directory_;
};

// range(4).batch(4) over two replicas is [0 1], [2 3].
std::string Case(const std::string& name, const std::string& second_piece) {
  return R"({"name": ")" + name +
         R"(", "api": "distribute_dataset", "source": {"kind": "range", "count": 4}, "transforms":
    [{"op": "batch", "size": 4, "drop_remainder": false}], "workers": 1, "replicas_per_worker": 2, "policy": "DATA",
    "rebatch": "PerBatch", "expect": {"steps": [[[[0,1],)" +
         second_piece + R"(]]], "global_steps": 1, "policy_applied": "DATA"}})";
}

std::string OneLine(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text + "\n";
}

TEST_F(CommandTest, VerifyPassesARightCase) {
  const Outcome outcome = Headrace({"verify", Write("cases.jsonl", OneLine(Case("right", "[2,3]")))});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, EndsWith("1 passed, 0 failed\n"));
}

TEST_F(CommandTest, VerifyFailsAWrongCase) {
  const std::string cases = OneLine(Case("right", "[2,3]")) + OneLine(Case("wrong", "[2,4]"));
  const Outcome outcome = Headrace({"verify", Write("cases.jsonl", cases), "--jobs", "2"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("FAIL wrong: worker 0, step 0: expected [[0,1],[2,4]], got [[0,1],[2,3]]\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("FAIL right")));
  EXPECT_THAT(outcome.output, EndsWith("1 passed, 1 failed\n"));
}

TEST_F(CommandTest, VerifyFilters) {
  const std::string path = Write("cases.jsonl", OneLine(Case("right", "[2,3]")) + OneLine(Case("wrong", "[2,4]")));
  EXPECT_EQ(Headrace({"verify", path, "--filter", "^ri"}).status, 0);
  EXPECT_NE(Headrace({"verify", path, "--filter", "nothing"}).status, 0);  // no case is no success
  EXPECT_THAT(Headrace({"verify", path, "--filter", "("}).output, HasSubstr("not a regular expression"));
}

// The guide's own lines for range(9).batch(4) over two replicas.
TEST_F(CommandTest, RunPrintsWhatEachReplicaGets) {
  const Outcome outcome = Headrace({"run", "-f", RangeInput("  - batch: {size: 4}\n"), "--replicas", "2"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("step 0  ([0 1], [2 3])\nstep 1  ([4 5], [6 7])\nstep 2  ([8], [])\n"
                                        "epoch 0 ended after 3 steps, 9 records\n"));
}

// Pieces so large that few are read ahead; those of a step are held until all of them are there.
TEST_F(CommandTest, RunDeliversLargeBatchesToManyReplicas) {
  const std::string input = Write("large.yaml",
                                  "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: large}\n"
                                  "spec:\n  source: {range: {stop: 9000000}}\n"
                                  "  pipeline: [{batch: {size: 2800000, dropRemainder: true}}]\n"
                                  "  delivery: {prefetchSteps: 1}\n");
  const Outcome outcome = Headrace({"run", "-f", input, "--replicas", "8"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("epoch 0 ended after 3 steps, 8400000 records"));
}

TEST_F(CommandTest, RunStopsAfterTheStepsAskedFor) {
  const std::string input = RangeInput("  - repeat: {count: -1}\n  - batch: {size: 4}\n");
  const Outcome outcome = Headrace({"run", "-f", input, "--steps", "2", "--epochs", "2"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("step 0  [0 1 2 3]\nstep 1  [4 5 6 7]\nepoch 0 stopped after 2 steps"));
  EXPECT_THAT(outcome.output, HasSubstr("step 0  [0 1 2 3]\nstep 1  [4 5 6 7]\nepoch 1 stopped after 2 steps"));
}

TEST_F(CommandTest, RunGivesTheStatusOfTheFirstTrainerThatFails) {
  const std::string input = RangeInput("  - batch: {size: 4}\n");
  // The second fails when the first has spoken, which is ended with it.
  const Outcome outcome = Headrace({"run", "-f", input, "--workers", "2", "--", "sh", "-c",
                                    "echo dir ${HEADRACE_DIR##*/} rank $RANK of $WORLD_SIZE\n"
                                    "test $RANK = 1 || { : > \"$0\"; exec sleep 1000; }\n"
                                    "until [ -e \"$0\" ]; do sleep 0.02; done; exit 7",
                                    input + ".spoken"});
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("[worker 0] dir worker-0 rank 0 of 2\n"));
  EXPECT_THAT(outcome.output, HasSubstr("[worker 1] dir worker-1 rank 1 of 2\n"));
}

TEST_F(CommandTest, TheLoadersErrorReachesTheUser) {
  const std::string input =
      Write("input.yaml",
            "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: n}\n"
            "spec:\n  source: {files: {paths: [\"missing-*\"]}}\n"
            "  features: [{name: x, dtype: int64, shape: []}]\n  pipeline: [{batch: {size: 4}}]\n");
  const Outcome outcome = Headrace({"run", "-f", input});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("spec.source.files.paths[0]"));
  EXPECT_THAT(outcome.output, HasSubstr("missing-*"));
}

TEST_F(CommandTest, AFunctionThatNeverServesIsNamed) {
  const std::string file = Write("input.yaml",
                                 "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: f}\n"
                                 "spec: {source: {function: {command: [sh, -c, \"exit 3\"]}}}\n");
  const Outcome outcome = Headrace({"run", "-f", file});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output,
              HasSubstr("spec.source.function.command: the function of worker 0 ended with status 3 before it called"));
}

TEST_F(CommandTest, ExplainAsJson) {
  const Outcome outcome = Headrace({"explain", "-f", RangeInput("  - batch: {size: 4}\n"), "-o", "json"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("\"globalBatchSize\": 4"));
}

TEST_F(CommandTest, IndexIsKeptBesideTheFiles) {
  const std::string data = Write("lines.txt", "one\ntwo\n\nfour");
  const std::string input = Write("input.yaml",
                                  "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: lines}\n"
                                  "spec: {source: {files: {format: Text, paths: [\"*.txt\"]}}}\n");
  EXPECT_EQ(Headrace({"index", "-f", input}).output, data + ": 4 records\n");
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/.headrace/lines.txt.index"));
  EXPECT_EQ(Headrace({"index", "-f", input}).output, data + ": 4 records, as its index says\n");
  const Outcome range = Headrace({"index", "-f", RangeInput("  - batch: {size: 4}\n")});
  EXPECT_EQ(range.status, 1);
  EXPECT_EQ(range.output, "headrace: spec.source: has no files to index\n");
}

TEST_F(CommandTest, BenchNamesTheLimit) {
  const std::string input = RangeInput("  - batch: {size: 4}\n");
  const Outcome outcome = Headrace({"bench", "-f", input, "--seconds", "1", "--workers", "2"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("records +[1-9][0-9,.]* a second"));
  EXPECT_THAT(outcome.output, ContainsRegex("first batch +[0-9]+ ms after the start"));
  EXPECT_THAT(outcome.output, ContainsRegex("CPU +[0-9.]+ seconds per million records"));
  EXPECT_THAT(outcome.output, ContainsRegex("memory +[1-9][0-9,.]* MB"));
  EXPECT_THAT(outcome.output, ContainsRegex("read +1 +[0-9]+ %"));
  EXPECT_THAT(outcome.output, HasSubstr("limit"));
}

TEST_F(CommandTest, BenchSaysWhyThereIsNothingToMeasure) {
  const std::string input = RangeInput("  - take: {count: 0}\n  - batch: {size: 4}\n");
  const Outcome outcome = Headrace({"bench", "-f", input, "--seconds", "1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("worker 0: the input has no batch"));
}

// The trainer of a run looks at the loaders of its own run.
TEST_F(CommandTest, TopShowsTheLoaderOfATrainer) {
  const std::string input = RangeInput("  - batch: {size: 4}\n");
  const Outcome outcome =
      Headrace({"run", "-f", input, "--replicas", "2", "--", "sh", "-c",
                "until test -e $HEADRACE_DIR/metrics.addr; do sleep 0.02; done; exec \"$0\" top --once",
                HEADRACE_BIN_DIR "/headrace"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("numbers, epoch "));
  EXPECT_THAT(outcome.output, ContainsRegex("worker-0 +0 +0 +0 .*\n +1 +0 +0 "));
  EXPECT_THAT(outcome.output, EndsWith("  -> no batch is taken: the trainer computes, or is not there\n"));
}

TEST_F(CommandTest, TopNamesAnAddressThatIsNone) {
  const Outcome outcome = Headrace({"top", "--once", "localhost:http"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("\"localhost:http\": \"http\" is no port"));
  EXPECT_THAT(Headrace({"top", "--dir", directory_.path()}).output, HasSubstr("no loader serves metrics there"));
}

TEST_F(CommandTest, TyposAreNamed) {
  EXPECT_EQ(Headrace({"verfy"}).status, 2);
  EXPECT_THAT(Headrace({"verfy"}).output, HasSubstr("did you mean `headrace verify`?"));
  EXPECT_THAT(Headrace({"run", "--wokrers", "2"}).output, HasSubstr("did you mean --workers?"));
  EXPECT_THAT(Headrace({"--help"}).output, HasSubstr("headrace run -f examples/digits/input.yaml --workers 2"));
}

}  // namespace
}  // namespace headrace::cli
