// headrace-loader as a process, read through its socket and rings: starts, failures, kills, restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/ring/handshake.h"
#include "common/ring/reader.h"
#include "common/spec/names.h"
#include "tests/fakes/http_faults.h"
#include "tests/sidecar/files.h"

namespace headrace::side {
namespace {

using nlohmann::json;
using ring::RingReader;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

// Polls `done` until it is true. The bound is for a machine under load; nothing waits for it to pass.
bool Eventually(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    usleep(1000);
  }
  return true;
}

class Loader : public testing::Test {
 protected:
  void Plan(const std::string& spec) {
    auto parsed = ParseInputSpec(json::parse(spec));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    plan_path_ = folder_.Write("plan.json", ToJson(CompilePlan(std::move(*parsed), "ml/clicks")).dump());
  }

  void Start(int workers = 1, int replicas = 1) {
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setenv(names::kEnvDir, folder_.path().c_str(), 1);
      setenv(names::kEnvPlan, plan_path_.c_str(), 1);
      setenv(names::kEnvDataDir, folder_.path().c_str(), 1);
      setenv(names::kEnvNumWorkers, std::to_string(workers).c_str(), 1);
      setenv(names::kEnvReplicasPerWorker, std::to_string(replicas).c_str(), 1);
      const char* const path = HEADRACE_BIN_DIR "/headrace-loader";
      execl(path, path, nullptr);
      _exit(127);
    }
  }
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int Stop(int signal = SIGTERM) {
    kill(pid_, signal);
    return Wait();
  }
  void TearDown() override {
    if (pid_ > 0) Stop(SIGKILL);
  }

  // Asks the loader for a replica's ring, as a client does: waits until it answers.
  Result<ring::HandshakeReply> Ask(int replica, std::unique_ptr<RingReader>* reader) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder_.path() + "/" + names::kSocketFile).c_str());
    int socket = -1;
    const bool connected = Eventually([&] {
      socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
      if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return true;
      close(socket);
      return false;
    });
    if (!connected) return Unavailable("the loader does not listen");
    sockets_.push_back(socket);
    RETURN_IF_ERROR(ring::SendMessage(socket, ring::EncodeRequest({replica, ""}), -1));
    int fd = -1;
    ASSIGN_OR_RETURN(const std::string text, ring::ReceiveMessage(socket, 30000, &fd));
    ASSIGN_OR_RETURN(const ring::HandshakeReply reply, ring::DecodeReply(text));
    if (fd >= 0) {
      ASSIGN_OR_RETURN(*reader, RingReader::Attach(fd));
      close(fd);
    }
    return reply;
  }

  // The int64 values of the next batch's first component; empty at the end of the epoch.
  static Result<std::vector<int64_t>> Next(RingReader& reader, uint64_t epoch) {
    ring::SlotView view;
    ASSIGN_OR_RETURN(const auto outcome, reader.Next(epoch, 30000, &view));
    if (outcome == RingReader::Outcome::kTimeout) return Unavailable("no batch came");
    if (outcome == RingReader::Outcome::kEndOfEpoch) return std::vector<int64_t>();
    std::vector<int64_t> values(view.rows);
    if (view.rows > 0) std::memcpy(values.data(), view.data + view.extents[0].offset, view.extents[0].bytes);
    reader.Release(view);
    return values;
  }

  Folder folder_;

 private:
  std::string plan_path_;
  pid_t pid_ = -1;
  std::vector<int> sockets_;
};

constexpr char kRange[] = R"({"source": {"range": {"stop": 10}}, "pipeline": [{"batch": {"size": 4}}]})";

TEST_F(Loader, ServesEpochAfterEpochAndEndsOnSigterm) {
  Plan(kRange);
  Start();
  std::unique_ptr<RingReader> reader;
  const auto reply = Ask(0, &reader);
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->input, "ml/clicks");
  EXPECT_EQ(reply->effective_policy, "Data");
  EXPECT_EQ(reply->global_batch_size, 4);
  EXPECT_EQ(reply->cardinality, 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const uint64_t iterator = reader->StartIteration();
    EXPECT_EQ(iterator, static_cast<uint64_t>(epoch));
    std::vector<std::vector<int64_t>> batches;
    for (auto batch = Next(*reader, iterator); batch.ok() && !batch->empty(); batch = Next(*reader, iterator)) {
      batches.push_back(*batch);
    }
    EXPECT_THAT(batches, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9)));
  }
  EXPECT_EQ(Stop(), 0);
}

TEST_F(Loader, ANewIteratorStartsTheNextEpochForAllReplicas) {
  Plan(R"({"source": {"range": {"stop": 1000}}, "pipeline": [{"batch": {"size": 2}}]})");
  Start(1, 2);
  std::unique_ptr<RingReader> readers[2];
  ASSERT_TRUE(Ask(0, &readers[0]).ok());
  ASSERT_TRUE(Ask(1, &readers[1]).ok());
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (auto& reader : readers) EXPECT_EQ(reader->StartIteration(), epoch);
    for (int64_t step = 0; step < 5; ++step) {  // far from the end
      for (int64_t replica = 0; replica < 2; ++replica) {
        const auto batch = Next(*readers[replica], epoch);
        ASSERT_TRUE(batch.ok()) << batch.status().message();
        EXPECT_THAT(*batch, ElementsAre(2 * step + replica));
      }
    }
  }
}

TEST_F(Loader, RefusesASecondReaderOfAReplicaAndAReplicaThatIsNotThere) {
  Plan(kRange);
  Start();
  std::unique_ptr<RingReader> reader;
  ASSERT_TRUE(Ask(0, &reader).ok());
  EXPECT_THAT(Ask(0, &reader).status().message(), HasSubstr("read by another client"));
  EXPECT_THAT(Ask(1, &reader).status().message(), HasSubstr("replicas 0 to 0"));
}

TEST_F(Loader, KilledAtAnyMomentLosesAndRepeatsNothing) {
  Plan(R"({"source": {"range": {"stop": 600}}, "pipeline": [{"shuffle": {"bufferSize": 50, "seed": 1}},
           {"batch": {"size": 1}}]})");
  std::vector<int64_t> undisturbed;
  std::vector<int64_t> disturbed;
  for (std::vector<int64_t>* values : {&undisturbed, &disturbed}) {
    Start();
    std::unique_ptr<RingReader> reader;
    ASSERT_TRUE(Ask(0, &reader).ok());
    const uint64_t epoch = reader->StartIteration();
    while (true) {
      const auto batch = Next(*reader, epoch);
      ASSERT_TRUE(batch.ok()) << batch.status().message();
      if (batch->empty()) break;
      values->push_back((*batch)[0]);
      if (values == &disturbed && values->size() % 97 == 0) {
        EXPECT_EQ(Stop(SIGKILL), -SIGKILL);
        Start();  // takes the ring over; the reader goes on with the mapping it has
      }
    }
    Stop();
    std::filesystem::remove(folder_.path() + "/replica-0.ring");
  }
  EXPECT_EQ(undisturbed.size(), 600u);
  EXPECT_EQ(disturbed, undisturbed);
}

constexpr char kFiles[] = R"({"source": {"files": {"paths": ["*.tfrecord"]}},
    "features": [{"name": "x", "dtype": "int64"}], "pipeline": [{"batch": {"size": 2}}]})";

TEST_F(Loader, EndsAtTheFirstErrorAndServesItAtTheNextAttempt) {
  Plan(kFiles);
  Start();
  EXPECT_EQ(Wait(), 1) << "the first attempt ends, so that the pod's status has the message";
  Start();
  std::unique_ptr<RingReader> reader;
  const Status error = Ask(0, &reader).status();
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_THAT(error.message(),
              HasSubstr("spec.source.files.paths[0]: \"" + folder_.path() + "/*.tfrecord\" matches no file"));
  EXPECT_THAT(error.message(), HasSubstr("plan.json")) << "what lies there instead";
  EXPECT_EQ(Stop(), 1);
  folder_.Write("a.tfrecord", TFRecordOf(ExampleOf({{"x", Int64List({5})}})));
  Start();
  EXPECT_TRUE(Ask(0, &reader).ok()) << "once mended, it serves";
}

TEST_F(Loader, RefusesMoreWorkersThanFiles) {
  folder_.Write("a.tfrecord", TFRecordOf(ExampleOf({{"x", Int64List({5})}})));
  Plan(kFiles);
  setenv(names::kEnvServeErrors, "1", 1);
  Start(2);
  unsetenv(names::kEnvServeErrors);
  std::unique_ptr<RingReader> reader;
  EXPECT_THAT(Ask(0, &reader).status().message(), HasSubstr("spec.source.files.paths: 1 file for 2 workers"));
}

TEST_F(Loader, DeliversWhatIsGoodBeforeADamagedRecord) {
  std::string file;
  for (int64_t i = 0; i < 4; ++i) file += TFRecordOf(ExampleOf({{"x", Int64List({i})}}));
  const size_t damaged_at = file.size();
  file += TFRecordOf(ExampleOf({{"x", Int64List({4})}}));
  file[damaged_at + 14] ^= 1;
  const std::string path = folder_.Write("a.tfrecord", file);
  Plan(kFiles);
  Start();
  std::unique_ptr<RingReader> reader;
  ASSERT_TRUE(Ask(0, &reader).ok());
  const uint64_t epoch = reader->StartIteration();
  EXPECT_THAT(*Next(*reader, epoch), ElementsAre(0, 1));
  EXPECT_THAT(*Next(*reader, epoch), ElementsAre(2, 3));
  const auto error = Next(*reader, epoch);
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.status().code(), Code::kCorrupt);
  EXPECT_THAT(error.status().message(), HasSubstr(path + ": record at byte " + std::to_string(damaged_at)));
  EXPECT_EQ(Stop(), 1);
}

// A store that does not answer, on which the loader would wait, with retries, for minutes: while it starts, and later.
TEST_F(Loader, EndsWhenToldToWhileAStoreIsSilent) {
  for (const bool at_start : {true, false}) {
    fakes::HttpFaults store([at_start](const fakes::SeenRequest& request) {
      const auto range = request.headers.find("range");
      const bool asks_for_size = range != request.headers.end() && range->second == "bytes=0-0";
      if (asks_for_size && !at_start) return fakes::RangeOf(request, std::string(1 << 20, 'x'));
      fakes::Answer answer;
      answer.silent = true;
      return answer;
    });
    Plan(R"({"source": {"files": {"paths": [")" + store.url() +
         R"(/a.tfrecord"]}}, "pipeline": [{"batch": {"size": 4}}]})");
    Start();
    ASSERT_TRUE(Eventually([&] { return store.requests().size() > (at_start ? 0 : 1); }));
    EXPECT_EQ(Stop(), 0);
  }
}

}  // namespace
}  // namespace headrace::side
