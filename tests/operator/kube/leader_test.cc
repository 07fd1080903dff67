#include "operator/kube/leader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "tests/fakes/api.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class LeaderTest : public ::testing::Test {
 protected:
  struct Replica {
    std::atomic<bool> leads = false;
    std::atomic<bool> lost = false;
    std::string holder_at_stop;
    std::unique_ptr<LeaderElector> elector;
  };
  void Start(Replica& replica, const std::string& identity, HttpTransport* transport = nullptr) {
    clients_.push_back(std::make_unique<Client>(transport ? transport : &api_, ClientOptions{}));
    LeaderElector::Options options;
    options.name_space = "headrace";
    options.lease = "operator";
    options.identity = identity;
    options.duration = 300ms;
    options.renew_deadline = 200ms;
    options.retry = retry_;
    options.look = 10ms;
    options.on_lead = [&] { replica.leads = true; };
    options.on_lose = [&] { replica.lost = true; };
    options.on_stop = [&] { replica.holder_at_stop = Spec()["holderIdentity"]; };
    replica.elector = std::make_unique<LeaderElector>(clients_.back().get(), options);
  }
  json Spec() const { return api_.Find(kLeases, "headrace", "operator")["spec"]; }

  std::chrono::milliseconds retry_{10};
  FakeApi api_;
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(LeaderTest, OneLeadsAndASecondTakesOverAtOnceWhenItIsReleased) {
  auto a = std::make_unique<Replica>();
  Start(*a, "a");
  ASSERT_TRUE(api_.WaitUntil([&] { return a->leads.load(); }));
  EXPECT_EQ(Spec()["holderIdentity"], "a");
  Replica b;
  Start(b, "b");
  const size_t calls = api_.CountCalls("GET");
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.CountCalls("GET") > calls + 50; }));  // well beyond the lease's duration
  EXPECT_FALSE(b.leads);
  EXPECT_FALSE(a->lost);
  a->elector.reset();
  EXPECT_EQ(a->holder_at_stop, "a") << "its work ends before the lease is given back";
  EXPECT_FALSE(a->lost) << "asked to stop, not beaten";
  ASSERT_TRUE(api_.WaitUntil([&] { return b.leads.load(); }));
  EXPECT_EQ(Spec()["holderIdentity"], "b");
  EXPECT_EQ(Spec()["leaseTransitions"], 1);
}

TEST_F(LeaderTest, ALeaderThatVanishedIsReplacedAfterTheDuration) {
  api_.Put(kLeases, {{"metadata", {{"namespace", "headrace"}, {"name", "operator"}}},
                     {"spec", {{"holderIdentity", "dead"}, {"renewTime", "2099-01-01T00:00:00.000000Z"}}}});
  const auto start = std::chrono::steady_clock::now();
  Replica b;
  Start(b, "b");
  ASSERT_TRUE(api_.WaitUntil([&] { return b.leads.load(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 290ms) << "its clock is not trusted, the waiting is";
}

TEST_F(LeaderTest, AStandbyLooksMoreOftenThanALeaderRenews) {
  json lease = {{"metadata", {{"namespace", "headrace"}, {"name", "operator"}}}, {"spec", {{"holderIdentity", "a"}}}};
  api_.Put(kLeases, lease);
  retry_ = 1h;
  Replica b;
  Start(b, "b");
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.CountCalls("GET") > 0; }));
  lease["spec"]["holderIdentity"] = "";
  api_.Put(kLeases, lease);
  EXPECT_TRUE(api_.WaitUntil([&] { return b.leads.load(); }));
}

TEST_F(LeaderTest, ALeaderThatCannotRenewStopsLeading) {
  Replica a;
  Start(a, "a");
  ASSERT_TRUE(api_.WaitUntil([&] { return a.leads.load(); }));
  api_.FailNext("PUT", StatusReply(500, "down"), 1 << 20);
  EXPECT_TRUE(api_.WaitUntil([&] { return a.lost.load(); }));
}

TEST_F(LeaderTest, AShortOutageIsSurvived) {
  Replica a;
  Start(a, "a");
  ASSERT_TRUE(api_.WaitUntil([&] { return a.leads.load(); }));
  api_.FailNext("GET", {}, 3);
  const size_t renewals = api_.CountCalls("PUT");
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.CountCalls("PUT") > renewals + 5; }));
  EXPECT_FALSE(a.lost);
}

}  // namespace
}  // namespace headrace::kube
