// The real HTTP library against a real socket, with the faults of real networks.
#include "operator/kube/transport.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include "common/net/certificates.h"
#include "common/net/http_server.h"
#include "operator/kube/informer.h"
#include "operator/kube/object.h"
#include "tests/fakes/api_server.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json Map(const std::string& name) { return {{"metadata", {{"namespace", "ml"}, {"name", name}}}}; }

class TransportTest : public ::testing::Test {
 protected:
  TransportTest() { options_.url = server_.url(); }
  HttpTransport& transport() {
    if (!transport_) {
      auto made = MakeTransport(options_);
      EXPECT_TRUE(made.ok()) << made.status().ToString();
      transport_ = *std::move(made);
    }
    return *transport_;
  }
  const HttpCall get_a_{.method = "GET", .target = "/api/v1/namespaces/ml/configmaps/a"};
  const HttpCall watch_{.method = "GET", .target = "/api/v1/configmaps?watch=true&resourceVersion=1"};

  FakeApi api_;
  FakeApiServer server_{&api_};
  TransportOptions options_;
  std::unique_ptr<HttpTransport> transport_;
};

TEST_F(TransportTest, SendsAndReceives) {
  api_.Put(kConfigMaps, Map("a"));
  const Result<HttpReply> reply = transport().Send(get_a_);
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->headers.at("content-type"), "application/json");
  EXPECT_EQ(NameOf(json::parse(reply->body)), "a");
  EXPECT_EQ(transport().Send({.method = "GET", .target = "/api/v1/namespaces/ml/configmaps/none"})->status, 404);
  const HttpCall patch{.method = "PATCH",
                       .target = "/api/v1/namespaces/ml/configmaps/a?fieldManager=me",
                       .content_type = "application/merge-patch+json",
                       .body = R"({"data":{"k":"v"}})"};
  EXPECT_EQ(transport().Send(patch)->status, 200);
  EXPECT_EQ(api_.Find(kConfigMaps, "ml", "a")["data"]["k"], "v");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(transport().Send(get_a_).ok());
  EXPECT_LT(server_.connections(), 10) << "connections are kept alive";
}

TEST_F(TransportTest, ReadsTheTokenForEachRequest) {
  char path[] = "/tmp/headrace-token-XXXXXX";
  ::close(::mkstemp(path));
  options_.token_file = path;
  std::ofstream(path) << "first\n";
  ASSERT_TRUE(transport().Send(get_a_).ok());
  EXPECT_EQ(server_.last_header("Authorization"), "Bearer first");
  std::ofstream(path) << "second";
  ASSERT_TRUE(transport().Send(get_a_).ok());
  EXPECT_EQ(server_.last_header("Authorization"), "Bearer second");
  ::unlink(path);
  EXPECT_EQ(transport().Send(get_a_).status().code(), Code::kNotFound);
}

TEST_F(TransportTest, FollowsNoRedirect) {
  server_.NextFault(Fault::kRedirect);
  const Result<HttpReply> reply = transport().Send(get_a_);
  EXPECT_TRUE(!reply.ok() || reply->status == 302);
  EXPECT_EQ(api_.CountCalls("elsewhere"), 0u);
}

TEST_F(TransportTest, BrokenRepliesAreErrorsAndTheNextCallWorks) {
  options_.call_timeout = 1000ms;
  api_.Put(kConfigMaps, Map("a"));
  EXPECT_TRUE(transport().Send(get_a_).ok());
  // What fails at once is tried once more, so it takes two faults; a time-out is not.
  for (const auto& [fault, times] :
       {std::pair{Fault::kShortBody, 2}, {Fault::kReset, 2}, {Fault::kHalfOpen, 1}, {Fault::kGarbageChunk, 2}}) {
    server_.NextFault(fault, times);
    const Result<HttpReply> reply = transport().Send(get_a_);
    EXPECT_EQ(reply.status().code(), Code::kUnavailable) << static_cast<int>(fault);
    EXPECT_TRUE(transport().Send(get_a_).ok()) << static_cast<int>(fault);
  }
  server_.NextFault(Fault::kSlow);
  EXPECT_TRUE(transport().Send(get_a_).ok());
}

TEST_F(TransportTest, ConnectionsThatTheServerDroppedAreNoError) {
  api_.Put(kConfigMaps, Map("a"));
  std::vector<std::thread> together;
  HttpTransport& shared = transport();
  for (int i = 0; i < 8; ++i) together.emplace_back([&] { EXPECT_TRUE(shared.Send(get_a_).ok()); });
  for (std::thread& thread : together) thread.join();
  server_.DropConnections();
  const HttpCall patch{.method = "PATCH",
                       .target = "/api/v1/namespaces/ml/configmaps/a?fieldManager=me",
                       .content_type = "application/merge-patch+json",
                       .body = R"({"data":{"k":"v"}})"};
  EXPECT_TRUE(transport().Send(patch).ok());
}

TEST_F(TransportTest, RefusesABodyAboveTheLimit) {
  options_.max_body_bytes = 1000;
  json large = Map("a");
  large["data"]["k"] = std::string(5000, 'x');
  api_.Put(kConfigMaps, large);
  const Result<HttpReply> reply = transport().Send(get_a_);
  EXPECT_EQ(reply.status().code(), Code::kUnavailable);
  EXPECT_NE(reply.status().message().find("larger than 1000 bytes"), std::string::npos) << reply.status().message();
}

TEST_F(TransportTest, NobodyListensIsUnavailable) {
  options_.url = "http://127.0.0.1:1";
  EXPECT_EQ(transport().Send(get_a_).status().code(), Code::kUnavailable);
  EXPECT_EQ(transport().Stream(watch_, 1000ms, {}, [](auto) { return Status(); }).status().code(), Code::kUnavailable);
}

TEST_F(TransportTest, HttpsWithoutAnAuthorityIsRefused) {
  EXPECT_EQ(MakeTransport({.url = "https://127.0.0.1:1", .token_file = {}, .ca_file = {}}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(TransportTest, TrustsTheGivenAuthorityAloneAndChecksTheName) {
  const auto now = std::chrono::system_clock::now();
  const Authority authority = *MakeAuthority("right", now - 1h, now + 1h);
  const auto issue = [&](const std::string& name) {
    return std::make_shared<const TlsKeyPair>(*IssueServingCertificate(authority, {name}, now - 1h, now + 1h));
  };
  std::mutex mutex;
  auto pair = issue("localhost");  // guarded by mutex
  HttpServerOptions server_options;
  server_options.tls = [&] {
    const std::lock_guard lock(mutex);
    return pair;
  };
  const auto server =
      *HttpServer::Start(server_options, [](const HttpRequest&) { return HttpResponse{.body = "over TLS"}; });
  const std::string base = ::testing::TempDir() + "headrace-transport-test";
  std::ofstream(base + "-right.pem") << authority.certificate_pem;
  std::ofstream(base + "-wrong.pem") << MakeAuthority("wrong", now - 1h, now + 1h)->certificate_pem;
  options_.url = "https://localhost:" + std::to_string(server->port());

  options_.ca_file = base + "-right.pem";
  const auto good = *MakeTransport(options_);
  const Result<HttpReply> reply = good->Send(get_a_);
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->body, "over TLS");
  std::string streamed;
  EXPECT_TRUE(good->Stream(watch_, 5000ms, {},
                           [&](std::string_view bytes) {
                             streamed += bytes;
                             return Status();
                           })
                  .ok());
  EXPECT_EQ(streamed, "over TLS");

  options_.ca_file = base + "-wrong.pem";
  EXPECT_EQ((*MakeTransport(options_))->Send(get_a_).status().code(), Code::kUnavailable);
  options_.ca_file = base + "-none.pem";
  EXPECT_EQ((*MakeTransport(options_))->Send(get_a_).status().code(), Code::kUnavailable);
  options_.ca_file = base + "-right.pem";
  {
    const std::lock_guard lock(mutex);
    pair = issue("elsewhere");
  }
  EXPECT_EQ((*MakeTransport(options_))->Send(get_a_).status().code(), Code::kUnavailable);
  ::unlink((base + "-right.pem").c_str());
  ::unlink((base + "-wrong.pem").c_str());
}

TEST_F(TransportTest, StreamsEachEventAsItComesAndEndsCleanly) {
  std::string received;
  std::thread writer([&] {
    api_.WaitUntil([&] { return api_.open_watches() == 1; });
    api_.SendLine("one");
    api_.SendLine("two");
    api_.EndWatches();
  });
  const Result<HttpReply> reply = transport().Stream(watch_, 5000ms, {}, [&](std::string_view bytes) {
    received += bytes;
    return Status();
  });
  writer.join();
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(received, "one\ntwo\n");
}

// While the reader is at one piece, the next ones gather: in order, and not without bound.
TEST_F(TransportTest, ASlowReaderIsWaitedFor) {
  constexpr size_t kLines = 40, kLineBytes = 100'000;
  std::mutex mutex;
  std::condition_variable changed;
  bool sent = false;
  std::thread writer([&] {
    api_.WaitUntil([&] { return api_.open_watches() == 1; });
    for (size_t i = 0; i < kLines; ++i) {
      if (i == kLines / 2) {
        const std::lock_guard lock(mutex);
        sent = true;
        changed.notify_all();
      }
      api_.SendLine(std::string(kLineBytes, static_cast<char>('A' + i)));
    }
    api_.EndWatches();
  });
  std::string received;
  size_t largest = 0;
  const Result<HttpReply> reply = transport().Stream(watch_, 10000ms, {}, [&](std::string_view bytes) {
    if (received.empty()) {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, 10s, [&] { return sent; });
    }
    received += bytes;
    largest = std::max(largest, bytes.size());
    return Status();
  });
  writer.join();
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_LT(largest, 4 * kLineBytes);
  std::string expected;
  for (size_t i = 0; i < kLines; ++i) expected += std::string(kLineBytes, static_cast<char>('A' + i)) + '\n';
  EXPECT_EQ(received.size(), expected.size());
  EXPECT_TRUE(received == expected);
}

TEST_F(TransportTest, StreamOfAnErrorStatusReturnsItsBody) {
  api_.FailNext("watch=true", StatusReply(410, "too old"));
  bool called = false;
  const Result<HttpReply> reply = transport().Stream(watch_, 5000ms, {}, [&](std::string_view) {
    called = true;
    return Status();
  });
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->status, 410);
  EXPECT_EQ(StatusOfReply(*reply, "watch").message(), "watch: HTTP 410: too old");
  EXPECT_FALSE(called);
}

TEST_F(TransportTest, AQuietStreamLastsUntilItsIdleTimeoutAndStopEndsItAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto ignore = [](std::string_view) { return Status(); };
  // The head comes with the first event only, as from a proxy that holds it back.
  EXPECT_EQ(transport().Stream(watch_, 1000ms, {}, ignore).status().code(), Code::kUnavailable);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 900ms);
  std::stop_source stop;
  std::thread stopper([&] {
    api_.WaitUntil([&] { return api_.CountCalls("watch=true") == 2; });
    stop.request_stop();
  });
  EXPECT_EQ(transport().Stream(watch_, 60000ms, stop.get_token(), ignore).status().code(), Code::kCancelled);
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST_F(TransportTest, TheReadersErrorEndsTheStream) {
  std::thread writer([&] {
    api_.WaitUntil([&] { return api_.open_watches() == 1; });
    api_.SendLine("one");
  });
  EXPECT_EQ(transport().Stream(watch_, 5000ms, {}, [](std::string_view) { return Corrupt("no"); }).status().code(),
            Code::kCorrupt);
  writer.join();
}

// The whole chain: whatever happens to a watch, the store ends up equal to the server.
class InformerOverSocketTest : public TransportTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(InformerOverSocketTest, SurvivesTheFault) {
  Client client(&transport(), {});
  InformerOptions options;
  options.resource = kConfigMaps;
  options.stream_lists = false;
  options.watch_timeout = 1s;  // half-open connections are noticed after it
  options.idle_margin = 200ms;
  options.backoff_min = 1ms;
  options.backoff_max = 10ms;
  api_.Put(kConfigMaps, Map("a"));
  Informer informer(&transport(), &client, options);
  informer.Start();
  ASSERT_TRUE(informer.WaitForSync(10s));
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.open_watches() == 1; }));
  // The watch that is open is healthy; the next has the fault on its first event.
  server_.NextFault(GetParam());
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.CountCalls("watch=true") >= 2 || GetParam() == Fault::kRefuse; }));
  api_.Put(kConfigMaps, Map("b"));
  EXPECT_TRUE(api_.WaitUntil([&] { return informer.store().Size() == 2; }));
  api_.Remove(kConfigMaps, "ml", "a");
  EXPECT_TRUE(api_.WaitUntil([&] { return informer.store().Size() == 1; }));
  EXPECT_EQ(api_.CountCalls("limit="), 1u) << "a broken watch resumes; it needs no new list";
}

INSTANTIATE_TEST_SUITE_P(Faults, InformerOverSocketTest,
                         ::testing::Values(Fault::kRefuse, Fault::kHalfOpen, Fault::kReset, Fault::kSlow,
                                           Fault::kGarbageChunk, Fault::kNegativeChunk, Fault::kHugeChunk));

}  // namespace
}  // namespace headrace::kube
