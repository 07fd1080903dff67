#include "sidecar/remote/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/http_faults.h"
#include "tests/sidecar/remote/stores.h"

namespace headrace::side {
namespace {

using fakes::Answer;
using fakes::HttpFaults;
using fakes::RangeOf;
using fakes::SeenRequest;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Outcome {
  Status status;
  std::string bytes;
  uint64_t counted = 0;
};

// Reads [offset, offset + n) of an object of the given size, as s3://bucket/key of that server.
Outcome ReadRange(const HttpFaults& server, uint64_t size, uint64_t offset, size_t n, const std::string& version = "",
                  std::map<std::string, std::string> variables = {}) {
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf(std::move(variables)), QuickPolicy());
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/some key", size, version}, &counted);
  Outcome outcome;
  outcome.bytes.resize(n);
  ObjectRead read(object.get(), offset, {reinterpret_cast<uint8_t*>(outcome.bytes.data()), n});
  outcome.status = read.Finish();
  outcome.counted = counted;
  return outcome;
}

TEST(ObjectRead, ReadsItsRange) {
  const std::string data = Numbered(5000);
  const HttpFaults server([&](const SeenRequest& request) { return RangeOf(request, data); });
  const Outcome outcome = ReadRange(server, data.size(), 1000, 2000, "\"v1\"");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.bytes, data.substr(1000, 2000));
  EXPECT_EQ(outcome.counted, 2000u);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].target, "/bucket/some%20key");
  EXPECT_EQ(requests[0].headers.at("range"), "bytes=1000-2999");
  EXPECT_EQ(requests[0].headers.at("if-match"), "\"v1\"");
  EXPECT_EQ(requests[0].headers.count("authorization"), 0u);
}

TEST(ObjectRead, TriesAgainWhatMayPass) {
  const std::string data = Numbered(100000);
  // Each of them once, and then the answer.
  const std::vector<std::function<void(Answer&)>> faults = {
      [](Answer& a) { a = {.status = 503, .body = "<Error><Code>SlowDown</Code></Error>"}; },
      [](Answer& a) { a = {.status = 500}; },
      [](Answer& a) { a = {.status = 429}; },
      [](Answer& a) { a = {.status = 400, .body = "<Error><Code>RequestTimeout</Code></Error>"}; },
      [](Answer& a) { a.reset_after = 0; },
      [](Answer& a) { a.reset_after = 30000; },
      [](Answer& a) { a.close_after = 50000; },
      [](Answer& a) { a.stall_after = 60000; },
      [](Answer& a) { a.silent = true; },
      [](Answer& a) { a.headers[1].second = "bytes 7-106/100000"; },
      [](Answer& a) { a.headers.pop_back(); },
      [](Answer& a) { a.body.resize(0); },
      [](Answer& a) { a.body += "more"; },
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    int asked = 0;
    const HttpFaults server([&](const SeenRequest& request) {
      Answer answer = RangeOf(request, data);
      if (asked++ == 0) faults[i](answer);
      return answer;
    });
    const Outcome outcome = ReadRange(server, data.size(), 0, data.size());
    ASSERT_TRUE(outcome.status.ok()) << "fault " << i << ": " << outcome.status.ToString();
    EXPECT_EQ(outcome.bytes, data) << "fault " << i;
    EXPECT_LE(server.requests().size(), 2u) << "fault " << i;
    EXPECT_GE(outcome.counted, data.size());
  }
}

TEST(ObjectRead, GoesOnWhereABodyBrokeOff) {
  const std::string data = Numbered(100000);
  int asked = 0;
  const HttpFaults server([&](const SeenRequest& request) {
    Answer answer = RangeOf(request, data);
    if (asked++ == 0) answer.close_after = 40000;
    return answer;
  });
  const Outcome outcome = ReadRange(server, data.size(), 10, 90000);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.bytes, data.substr(10, 90000));
  EXPECT_EQ(outcome.counted, 90000u);  // none twice
  EXPECT_EQ(server.requests()[1].headers.at("range"), "bytes=40010-90009");
}

TEST(ObjectRead, GivesUpAfterThePolicysAttempts) {
  const HttpFaults server([&](const SeenRequest&) {
    return Answer{.status = 503, .body = "<Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>"};
  });
  const Outcome outcome = ReadRange(server, 100, 0, 100);
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr("s3://bucket/some key: at byte 0: "),
                                              HasSubstr("after 5 attempts with 503 SlowDown: Reduce your rate."),
                                              HasSubstr("use fewer workers")));
  EXPECT_EQ(server.requests().size(), 5u);
}

TEST(ObjectRead, DoesNotRepeatWhatWillNotPass) {
  struct Case {
    int status;
    std::string code;
    std::map<std::string, std::string> variables;
    Code expected;
    std::string remedy;
  };
  const std::map<std::string, std::string> keys = {{"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
                                                   {"AWS_SECRET_ACCESS_KEY", "sesame"}};
  const std::vector<Case> cases = {
      {403, "AccessDenied", {}, Code::kUnavailable, "name a Secret in spec.source.files.objectStore.credentialsSecret"},
      {403, "AccessDenied", keys, Code::kUnavailable, "AWS_ACCESS_KEY_ID says who asks: allow it to read objects"},
      {403, "SignatureDoesNotMatch", keys, Code::kUnavailable, "check the keys in the Secret"},
      {404, "NoSuchKey", keys, Code::kNotFound, "check the path in spec.source.files.paths"},
      {404, "NoSuchBucket", keys, Code::kNotFound, "check the bucket's name"},
      {301, "PermanentRedirect", keys, Code::kInvalidArgument, "set spec.source.files.objectStore.region to it"},
      {400, "AuthorizationHeaderMalformed", keys, Code::kInvalidArgument, "the bucket is in region eu-west-1"},
  };
  for (const Case& c : cases) {
    const HttpFaults server([&](const SeenRequest&) {
      return Answer{.status = c.status,
                    .headers = {},
                    .body = "<?xml version=\"1.0\"?><Error><Code>" + c.code + "</Code><Message>No.</Message>" +
                            (c.status < 403 ? "<Region>eu-west-1</Region>" : "") + "</Error>"};
    });
    const Outcome outcome = ReadRange(server, 100, 20, 10, "", c.variables);
    EXPECT_EQ(outcome.status.code(), c.expected) << c.code;
    EXPECT_THAT(outcome.status.message(),
                AllOf(HasSubstr("s3://bucket/some key: at byte 20: "), HasSubstr(c.code + ": No."), HasSubstr(c.remedy),
                      HasSubstr(server.url()), Not(HasSubstr("sesame"))));
    EXPECT_EQ(server.requests().size(), 1u) << c.code;
  }
}

TEST(ObjectRead, NoticesThatTheObjectIsAnother) {
  const std::string data = Numbered(1000);
  const auto changed = [&](const HttpFaults& server, const std::string& version) {
    const Outcome outcome = ReadRange(server, data.size(), 0, 500, version);
    EXPECT_EQ(outcome.status.code(), Code::kConflict) << outcome.status.ToString();
    EXPECT_THAT(outcome.status.message(), HasSubstr("s3://bucket/some key: at byte 0: the object was written anew"));
    EXPECT_EQ(server.requests().size(), 1u);
  };
  changed(HttpFaults([&](const SeenRequest&) { return Answer{.status = 412}; }), "\"v0\"");
  // Servers that know no If-Match.
  changed(HttpFaults([&](const SeenRequest& request) { return RangeOf(request, data); }), "\"v0\"");
  changed(HttpFaults([&](const SeenRequest& request) { return RangeOf(request, data + "x"); }), "\"v1\"");
}

TEST(ObjectRead, HoldsLaterReadsToTheVersionOfTheFirst) {
  const std::string data = Numbered(1000);
  int asked = 0;
  const HttpFaults server(
      [&](const SeenRequest& request) { return RangeOf(request, data, asked++ == 0 ? "\"v1\"" : "\"v2\""); });
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}), QuickPolicy());
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/key", data.size(), ""}, &counted);
  std::string bytes(100, '\0');
  const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  EXPECT_TRUE(ObjectRead(object.get(), 0, out).Finish().ok());
  EXPECT_EQ(ObjectRead(object.get(), 100, out).Finish().code(), Code::kConflict);
  EXPECT_EQ(server.requests()[0].headers.count("if-match"), 0u);
  EXPECT_EQ(server.requests()[1].headers.at("if-match"), "\"v1\"");
}

TEST(ObjectRead, TellsVersionsByDateWhereThereIsNoEtag) {
  const std::string data = Numbered(1000);
  int asked = 0;
  const HttpFaults server([&](const SeenRequest& request) {
    Answer answer = RangeOf(request, data);
    answer.headers[0] = {"Last-Modified",
                         asked++ < 2 ? "Wed, 21 Oct 2015 07:28:00 GMT" : "Wed, 21 Oct 2015 07:28:01 GMT"};
    return answer;
  });
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}), QuickPolicy());
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/key", data.size(), ""}, &counted);
  std::string bytes(100, '\0');
  const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  EXPECT_TRUE(ObjectRead(object.get(), 0, out).Finish().ok());
  EXPECT_TRUE(ObjectRead(object.get(), 100, out).Finish().ok());
  EXPECT_EQ(ObjectRead(object.get(), 200, out).Finish().code(), Code::kConflict);
}

TEST(ObjectRead, RefusesAServerWithoutRanges) {
  const std::string data = Numbered(1000);
  const HttpFaults server([&](const SeenRequest&) { return Answer{.body = data}; });
  EXPECT_EQ(ReadRange(server, data.size(), 0, data.size()).bytes, data);  // all of it: that is what it sends
  const Outcome outcome = ReadRange(server, data.size(), 0, 10);
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_THAT(outcome.status.message(), HasSubstr("sends whole files only"));
}

TEST(ObjectRead, HonoursRetryAfter) {
  const std::string data = Numbered(1000);
  std::vector<std::chrono::steady_clock::time_point> times;
  const HttpFaults server([&](const SeenRequest& request) {
    times.push_back(std::chrono::steady_clock::now());
    if (times.size() == 1) return Answer{.status = 503, .headers = {{"Retry-After", "1"}}};
    return RangeOf(request, data);
  });
  EXPECT_TRUE(ReadRange(server, data.size(), 0, data.size()).status.ok());
  ASSERT_EQ(times.size(), 2u);
  EXPECT_GE(times[1] - times[0], std::chrono::seconds(1));
}

TEST(ObjectRead, ReusesConnections) {
  const std::string data = Numbered(1000);
  const HttpFaults server([&](const SeenRequest& request) { return RangeOf(request, data); });
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}), QuickPolicy());
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/key", data.size(), ""}, &counted);
  std::string bytes(10, '\0');
  for (uint64_t i = 0; i < 50; ++i) {
    ObjectRead read(object.get(), i, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    ASSERT_TRUE(read.Finish().ok());
    EXPECT_EQ(bytes, data.substr(i, 10));
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(ObjectRead, ReadsManyAtATime) {
  const std::string data = Numbered(1 << 20);
  // Nobody is answered until ten have asked.
  std::atomic<int> asked{0};
  const HttpFaults server(
      [&](const SeenRequest& request) {
        if (++asked == 10) asked.notify_all();
        for (int now = asked; now < 10; now = asked) asked.wait(now);
        return RangeOf(request, data);
      },
      /*handles_at_once=*/true);
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}));
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/key", data.size(), ""}, &counted);
  std::string bytes(data.size(), '\0');
  std::vector<std::unique_ptr<ObjectRead>> reads;
  const size_t part = data.size() / 10 + 1;
  for (size_t at = 0; at < data.size(); at += part) {
    reads.push_back(std::make_unique<ObjectRead>(object.get(), at,
                                                 std::span(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size())
                                                     .subspan(at, std::min(part, data.size() - at))));
  }
  for (const auto& read : reads) ASSERT_TRUE(read->Finish().ok());
  EXPECT_EQ(bytes, data);
}

TEST(ObjectRead, EndsAtOnceWhenItIsNoLongerWanted) {
  const HttpFaults server([&](const SeenRequest&) { return Answer{.silent = true}; });
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}));
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/key", 1000, ""}, &counted);
  std::string bytes(1000, '\0');
  std::thread stopper;
  {
    ObjectRead dropped(object.get(), 0, {reinterpret_cast<uint8_t*>(bytes.data()), 500});
    ObjectRead stopped(object.get(), 500, {reinterpret_cast<uint8_t*>(bytes.data()) + 500, 500});
    stopper = std::thread([&] { store.Stop(); });
    EXPECT_EQ(stopped.Finish().code(), Code::kCancelled);
  }
  stopper.join();
  EXPECT_EQ(ObjectRead(object.get(), 0, {reinterpret_cast<uint8_t*>(bytes.data()), 5}).Finish().code(),
            Code::kCancelled);
}

TEST(ObjectRead, ClosesTheConnectionOfADroppedRead) {
  HttpFaults server([&](const SeenRequest& request) {
    Answer answer = RangeOf(request, Numbered(100000));
    answer.stall_after = 10;
    return answer;
  });
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}));
  std::atomic<uint64_t> counted{0};
  const auto object = store.Open({"s3://bucket/key", 100000, ""}, &counted);
  std::string bytes(100000, '\0');
  {
    const ObjectRead read(object.get(), 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    while (counted == 0 && server.requests().empty()) std::this_thread::yield();
  }
  server.AwaitGone(1);
}

// Signed requests: the server takes only keys that are not expired.
TEST(ObjectRead, RenewsCredentialsThatTheStoreSaysHaveExpired) {
  const std::string data = Numbered(1000);
  int given = 0;
  const HttpFaults agent([&](const SeenRequest&) {
    const std::string id = "AKID" + std::to_string(++given);
    return Answer{.body = R"({"AccessKeyId": ")" + id + R"(", "SecretAccessKey": "sesame", "Token": "t",
                             "Expiration": "2999-01-01T00:00:00Z"})"};
  });
  const HttpFaults server([&](const SeenRequest& request) {
    const std::string& who = request.headers.at("authorization");
    if (who.find("Credential=AKID1/") != std::string::npos) {
      return Answer{.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"};
    }
    return RangeOf(request, data);
  });
  const Outcome outcome = ReadRange(server, data.size(), 0, data.size(), "",
                                    {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.url() + "/v1/credentials"}});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.bytes, data);
  EXPECT_EQ(server.requests().size(), 2u);
  EXPECT_EQ(agent.requests().size(), 2u);
  EXPECT_EQ(server.requests()[0].headers.at("x-amz-security-token"), "t");
}

}  // namespace
}  // namespace headrace::side
