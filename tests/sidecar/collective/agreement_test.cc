// Agreements over sockets, several in one process, and raw peers where one must misbehave.
#include "sidecar/collective/agreement.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "sidecar/collective/wire.h"
#include "tests/sidecar/collective/agreements.h"

namespace headrace::side {
namespace {

using ::testing::HasSubstr;

TEST_F(AgreementTest, AThousandUnevenEpochsEndAlike) {
  std::vector<std::unique_ptr<Agreement>> workers;
  for (const int64_t w : {2, 0, 1}) workers.push_back(Start(Options(w, 3)));  // worker 0 is not the first to come
  ExpectSameEnds({workers[0].get(), workers[1].get(), workers[2].get()}, 1000, 17);
  for (const auto& worker : workers) EXPECT_TRUE(worker->failure().ok()) << worker->failure().ToString();
}

TEST_F(AgreementTest, WhoBreaksOutHasEnded) {
  const auto zero = Start(Options(0, 3));
  const auto one = Start(Options(1, 3));
  const auto two = Start(Options(2, 3));
  one->Announce(0, 5, false);
  one->Announce(1, 1, false);  // its trainer began another iteration
  two->Announce(0, 7, false);
  two->Announce(4, 0, true);
  EXPECT_EQ(*RunEpoch(*zero, 0, 3), 7);
  zero->Announce(1, 0, true);
  EXPECT_TRUE(*zero->AnyHasStep(1, 0, kNo));
  one->Announce(1, 1, true);
  EXPECT_FALSE(*zero->AnyHasStep(1, 1, kNo)) << "worker 2 skipped it";
}

TEST_F(AgreementTest, GivesUpWhenAsked) {
  const auto zero = Start(Options(0, 2));
  const auto one = Start(Options(1, 2));
  for (Agreement* agreement : {zero.get(), one.get()}) {
    agreement->Announce(0, 1, true);
    int asked = 0;
    EXPECT_EQ(agreement->AnyHasStep(1, 0, [&] { return ++asked == 3; }).status().code(), Code::kCancelled);
  }
}

TEST_F(AgreementTest, OptionsThatCannotBe) {
  AgreementOptions options = Options(0, 1);
  EXPECT_THAT(Agreement::Start(options).status().message(), HasSubstr("at least two workers"));
  options = Options(1, 2);
  options.coordinator = "trainer-0.clicks:9465";
  EXPECT_THAT(Agreement::Start(options).status().message(), HasSubstr("ca.crt"));
  options.tls_dir = folder_;
  options.coordinator = "trainer-0.clicks";
  EXPECT_THAT(Agreement::Start(options).status().message(), HasSubstr("host:port"));
  options.coordinator = "unix:" + std::string(200, 'x');
  EXPECT_THAT(Agreement::Start(options).status().message(), HasSubstr("shorter folder"));
  options = Options(0, 2);
  options.coordinator = "unix:" + folder_ + "/none/coordinator.sock";
  EXPECT_EQ(Agreement::Start(options).status().code(), Code::kUnavailable);
}

TEST_F(AgreementTest, WhoNeverComesIsNamed) {
  AgreementOptions options = Options(0, 3);
  options.start_timeout_ms = 300;
  const auto zero = Start(options);
  options.topology.worker_index = 1;
  const auto one = Start(options);
  const Result<int64_t> end = RunEpoch(*one, 0, 2);
  EXPECT_EQ(end.status().code(), Code::kUnavailable);
  EXPECT_THAT(end.status().message(), HasSubstr("worker 2 has not connected"));
  EXPECT_THAT(zero->failure().message(), HasSubstr("worker 2 has not connected"));
}

TEST_F(AgreementTest, AMissingCoordinatorIsNamed) {
  AgreementOptions options = Options(1, 2);
  options.start_timeout_ms = 300;
  const auto one = Start(options);
  ASSERT_TRUE(Eventually([&] { return !one->failure().ok(); }));
  EXPECT_THAT(one->failure().message(), HasSubstr("worker 0"));
  EXPECT_THAT(one->failure().message(), HasSubstr(SocketPath()));
}

TEST_F(AgreementTest, AMismatchNamesBoth) {
  struct Case {
    void (*change)(AgreementOptions&);
    std::string ours, theirs;
  };
  const Case cases[] = {{[](AgreementOptions& o) { o.run_id = "earlier"; }, "\"run\"", "\"earlier\""},
                        {[](AgreementOptions& o) { o.plan_hash = "fedcba"; }, "\"0123456789abcdef\"", "\"fedcba\""},
                        {[](AgreementOptions& o) { o.topology.num_workers = 4; }, "of 2", "of 4"}};
  for (const Case& mismatch : cases) {
    const auto zero = Start(Options(0, 2));
    AgreementOptions options = Options(1, 2);
    options.start_timeout_ms = 300;
    mismatch.change(options);
    const auto one = Start(options);
    ASSERT_TRUE(Eventually([&] { return !one->failure().ok(); }));
    EXPECT_THAT(one->failure().message(), HasSubstr(mismatch.ours));
    EXPECT_THAT(one->failure().message(), HasSubstr(mismatch.theirs));
    EXPECT_THAT(one->failure().message(), HasSubstr("worker 1 (host pod-1)"));
    EXPECT_TRUE(zero->failure().ok()) << "worker 0's run is another";
  }
}

TEST_F(AgreementTest, OneThatFailsTellsAll) {
  const auto zero = Start(Options(0, 3));
  const auto one = Start(Options(1, 3));
  const auto two = Start(Options(2, 3));
  two->Fail(Corrupt("part-3.tfrecord, offset 17: the checksum is wrong"));
  const std::string expected = "worker 2 (host pod-2): part-3.tfrecord, offset 17: the checksum is wrong";
  EXPECT_EQ(RunEpoch(*zero, 0, 1).status().message(), expected);
  EXPECT_EQ(RunEpoch(*one, 0, 1).status().message(), expected);
  EXPECT_EQ(one->failure().code(), Code::kCorrupt);
}

TEST_F(AgreementTest, WhoLeavesInOrderIsMissedOnlyByWhoNeedsIt) {
  AgreementOptions options = Options(0, 3);
  options.peer_timeout_ms = 1000;
  const auto zero = Start(options);
  options.topology.worker_index = 1;
  const auto one = Start(options);
  options.topology.worker_index = 2;
  auto two = Start(options);
  two->Announce(0, 4, true);
  two->Announce(1, 2, false);  // prefetched
  EXPECT_EQ(two->AnyHasStep(0, 9, [n = 0]() mutable { return ++n > 3; }).status().code(), Code::kCancelled);
  two.reset();
  one->Announce(0, 1, true);
  EXPECT_EQ(*RunEpoch(*zero, 0, 2), 4) << "it had ended there";
  const auto end = RunEpoch(*one, 1, 1);
  EXPECT_THAT(end.status().message(), HasSubstr("worker 2"));
  EXPECT_THAT(end.status().message(), HasSubstr("left before the end of epoch 1"));
  EXPECT_TRUE(zero->failure().ok()) << zero->failure().ToString();
  EXPECT_TRUE(one->failure().ok());
  // Its pod may be replaced.
  options.host_name = "pod-2-again";
  two = Start(options);
  two->Announce(1, 5, true);
  zero->Announce(1, 0, true);
  ASSERT_TRUE(Eventually([&] { return one->AnyHasStep(1, 4, kNo).ok(); }));
  EXPECT_FALSE(*one->AnyHasStep(1, 5, kNo));
}

TEST_F(AgreementTest, ACoordinatorThatLeavesSaysWhatItKnows) {
  AgreementOptions options = Options(0, 2);
  options.peer_timeout_ms = 1000;
  auto zero = Start(options);
  options.topology.worker_index = 1;
  const auto one = Start(options);
  one->Announce(0, 1, true);
  zero->Announce(0, 5, true);
  EXPECT_FALSE(*zero->AnyHasStep(0, 5, kNo)) << "and so worker 1 was here";
  zero.reset();
  EXPECT_TRUE(*one->AnyHasStep(0, 4, kNo));
  EXPECT_FALSE(*one->AnyHasStep(0, 5, kNo));
  one->Announce(1, 1, true);
  EXPECT_THAT(one->AnyHasStep(1, 1, kNo).status().message(), HasSubstr("has left"));
  EXPECT_TRUE(one->failure().ok()) << one->failure().ToString();
}

TEST_F(AgreementTest, ARestartedCoordinatorLearnsEverythingAgain) {
  auto zero = Start(Options(0, 3));
  const auto one = Start(Options(1, 3));
  const auto two = Start(Options(2, 3));
  one->Announce(0, 6, true);
  two->Announce(0, 3, false);
  two->Announce(1, 1, false);  // broke out of epoch 0 at step 3
  EXPECT_EQ(*RunEpoch(*zero, 0, 2), 6);
  zero.reset();
  zero = Start(Options(0, 3));
  EXPECT_EQ(*RunEpoch(*zero, 0, 2), 6);
  EXPECT_EQ(*RunEpoch(*one, 0, 6), 6);
  EXPECT_TRUE(one->failure().ok());
}

// A loader without a mind of its own.
class RawPeer {
 public:
  // Greets, and says `more` in the same breath: one who is refused cannot say it later.
  RawPeer(const std::string& path, int64_t worker, int64_t workers, const std::string& more = "")
      : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    wire::Hello hello;
    hello.num_workers = workers;
    hello.worker = worker;
    hello.run_id = "run";
    hello.plan_hash = "0123456789abcdef";
    hello.host = "raw";
    Send(wire::Encode(hello) + more);
  }
  ~RawPeer() { ::close(socket_); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void Send(const std::string& bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int socket_;
};

TEST_F(AgreementTest, APeerThatDiesIsNamedByAll) {
  AgreementOptions options = Options(0, 3);
  options.peer_timeout_ms = 1000;
  const auto zero = Start(options);
  options.topology.worker_index = 1;
  const auto one = Start(options);
  {
    RawPeer two(SocketPath(), 2, 3);
    two.Send(wire::Encode(wire::Report{0, 4, false, false, 0}));
    zero->Announce(0, 0, true);
    EXPECT_TRUE(*zero->AnyHasStep(0, 3, kNo));
  }
  const Result<int64_t> end = RunEpoch(*one, 0, 1);
  EXPECT_EQ(end.status().code(), Code::kUnavailable);
  EXPECT_THAT(end.status().message(), HasSubstr("worker 2 (host raw) was lost: its connection closed"));
  EXPECT_THAT(zero->failure().message(), HasSubstr("worker 2 (host raw) was lost"));
}

TEST_F(AgreementTest, APeerThatFallsSilentIsNamed) {
  AgreementOptions options = Options(0, 2);
  options.peer_timeout_ms = 300;
  const auto zero = Start(options);
  RawPeer one(SocketPath(), 1, 2);  // stays connected
  ASSERT_TRUE(Eventually([&] { return !zero->failure().ok(); }));
  EXPECT_THAT(zero->failure().message(), HasSubstr("worker 1 (host raw) was lost: no word came from it"));
}

TEST_F(AgreementTest, APeerThatComesBackInTimeHasLostNothing) {
  const auto zero = Start(Options(0, 2));
  zero->Announce(0, 2, true);
  {
    RawPeer one(SocketPath(), 1, 2);
    one.Send(wire::Encode(wire::Report{0, 4, false, false, 0}));
    EXPECT_TRUE(*zero->AnyHasStep(0, 3, kNo));
  }
  const auto one = Start(Options(1, 2));
  EXPECT_EQ(*RunEpoch(*one, 0, 6), 6);  // from its first step: what it delivered before is skipped by the engine
  EXPECT_FALSE(*zero->AnyHasStep(0, 6, kNo));
  EXPECT_TRUE(zero->failure().ok());
}

TEST_F(AgreementTest, AFreshConnectionReplacesAHalfOpenOne) {
  const auto zero = Start(Options(0, 2));
  zero->Announce(0, 0, true);
  RawPeer half_open(SocketPath(), 1, 2);
  half_open.Send(wire::Encode(wire::Report{0, 1, false, false, 0}));
  EXPECT_TRUE(*zero->AnyHasStep(0, 0, kNo));
  const auto one = Start(Options(1, 2));
  EXPECT_EQ(*RunEpoch(*one, 0, 3), 3);
  EXPECT_FALSE(*zero->AnyHasStep(0, 3, kNo));
}

TEST_F(AgreementTest, NoiseCostsItsOwnConnectionOnly) {
  const auto zero = Start(Options(0, 2));
  const auto one = Start(Options(1, 2));
  RawPeer(SocketPath(), 1, 9, "?");
  const RawPeer noise(SocketPath(), 7, 2, "GET / HTTP/1.1\r\n\r\n");
  ExpectSameEnds({zero.get(), one.get()}, 20, 4);
}

// A coordinator without a mind of its own.
class RawCoordinator {
 public:
  explicit RawCoordinator(const std::string& path) : listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
  }
  ~RawCoordinator() {
    ::close(socket_);
    ::close(listener_);
  }
  void Accept() {
    socket_ = ::accept(listener_, nullptr, nullptr);
    const timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void Send(const wire::Message& message) {
    const std::string bytes = wire::Encode(message);
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  wire::Message Receive() {
    for (;;) {
      std::string_view rest = inbox_;
      const auto message = wire::Decode(&rest);
      EXPECT_TRUE(message.ok()) << message.status().ToString();
      if (!message.ok()) return wire::Refusal{};
      if (message->has_value()) {
        inbox_ = std::string(rest);
        return **message;
      }
      char bytes[1024];
      const ssize_t size = ::recv(socket_, bytes, sizeof bytes, 0);
      EXPECT_GT(size, 0) << "no message came";
      if (size <= 0) return wire::Refusal{};
      inbox_.append(bytes, static_cast<size_t>(size));
    }
  }

 private:
  const int listener_;
  int socket_ = -1;
  std::string inbox_;
};

TEST_F(AgreementTest, StepsAreReportedOnceSomebodyWaits) {
  RawCoordinator zero(SocketPath());
  AgreementOptions options = Options(1, 2);
  options.peer_timeout_ms = 60000;  // a word every 12 s where there is nothing to say
  const auto one = Start(options);
  zero.Accept();
  EXPECT_EQ(std::get<wire::Hello>(zero.Receive()).host, "pod-1");
  zero.Send(wire::Welcome{"raw"});
  EXPECT_EQ(std::get<wire::Report>(zero.Receive()), (wire::Report{0, 0, false, false, 0}));
  for (int64_t step = 1; step <= 1000; ++step) one->Announce(0, step, false);
  one->Announce(1, 10, false);
  // What is heard next comes after all of these, and comes alone.
  zero.Send(wire::News{true, false, 2, 0, wire::kNever, ""});
  EXPECT_EQ(std::get<wire::Final>(zero.Receive()), (wire::Final{0, 1000}));
  EXPECT_EQ(std::get<wire::Report>(zero.Receive()), (wire::Report{1, 10, false, false, 0}));
  one->Announce(1, 11, false);
  EXPECT_EQ(std::get<wire::Report>(zero.Receive()), (wire::Report{1, 11, false, false, 0}));
  one->Announce(2, 0, false);
  EXPECT_EQ(std::get<wire::Final>(zero.Receive()), (wire::Final{1, 11}))
      << "who waits in epoch 1 hears that it is left";
  EXPECT_EQ(std::get<wire::Report>(zero.Receive()), (wire::Report{2, 0, false, false, 0}));
}

}  // namespace
}  // namespace headrace::side
