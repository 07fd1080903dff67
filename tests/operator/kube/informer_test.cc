// The informer against FakeApi in process: every way in which a watch can end.
#include "operator/kube/informer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "tests/fakes/api.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json Pod(const std::string& name, const json& labels = {{"headrace.dev/input", "clicks"}}) {
  return {{"metadata", {{"namespace", "ml"}, {"name", name}, {"labels", labels}}}};
}

class InformerTest : public ::testing::Test {
 protected:
  InformerTest() { options_.resource = kPods; }

  void Start() {
    informer_ = std::make_unique<Informer>(&api_, &client_, options_);
    informer_->AddHandler({.on_put =
                               [this](const Object& before, const Object& now) {
                                 const std::lock_guard lock(mutex_);
                                 log_.push_back((before ? "update " : "add ") + NameOf(*now));
                               },
                           .on_delete =
                               [this](const Object& removed) {
                                 const std::lock_guard lock(mutex_);
                                 log_.push_back("delete " + NameOf(*removed));
                               }});
    informer_->Start();
    ASSERT_TRUE(informer_->WaitForSync(10s));
    ASSERT_TRUE(api_.WaitUntil([&] { return api_.open_watches() == 1; }));
  }
  bool Reaches(const std::vector<std::string>& expected) {
    api_.WaitUntil([&] {
      const std::lock_guard lock(mutex_);
      return log_.size() >= expected.size();
    });
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(log_, expected);
    return log_ == expected;
  }
  size_t Lists() const { return api_.CountCalls("limit="); }
  size_t Watches() const { return api_.CountCalls("watch=true"); }

  FakeApi api_;
  Client client_{&api_, {.page_size = 2}};
  InformerOptions options_{.stream_lists = false, .backoff_min = 1ms, .backoff_max = 4ms};
  std::mutex mutex_;
  std::vector<std::string> log_;  // guarded by mutex_
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, ListsInPagesThenFollowsChanges) {
  for (const char* name : {"a", "b", "c", "d", "e"}) api_.Put(kPods, Pod(name));
  Start();
  EXPECT_EQ(Lists(), 3u);
  EXPECT_EQ(informer_->store().Size(), 5u);
  json changed = Pod("c");
  changed["spec"]["nodeName"] = "n1";
  api_.Put(kPods, changed);
  api_.Remove(kPods, "ml", "e");
  api_.Put(kPods, Pod("f"));
  Reaches({"add a", "add b", "add c", "add d", "add e", "update c", "delete e", "add f"});
  EXPECT_EQ((*informer_->store().Get("ml/c"))["spec"]["nodeName"], "n1");
  EXPECT_EQ(informer_->store().Get("ml/e"), nullptr);
  EXPECT_EQ(Lists(), 3u);
}

TEST_F(InformerTest, SelectsByLabelSoThatAnObjectThatLosesItIsDeleted) {
  options_.label_selector = "headrace.dev/input";
  api_.Put(kPods, Pod("a"));
  api_.Put(kPods, Pod("other", {{"app", "web"}}));
  Start();
  api_.Put(kPods, Pod("a", {{"app", "web"}}));
  Reaches({"add a", "delete a"});
}

TEST_F(InformerTest, StripsManagedFieldsAndSlims) {
  options_.slim = [](json& pod) { pod.erase("spec"); };
  json pod = Pod("a");
  pod["metadata"]["managedFields"] = json::array({1, 2});
  pod["spec"]["x"] = 1;
  pod["status"]["phase"] = "Running";
  api_.Put(kPods, pod);
  Start();
  const Object stored = informer_->store().Get("ml/a");
  EXPECT_FALSE((*stored)["metadata"].contains("managedFields"));
  EXPECT_FALSE(stored->contains("spec"));
  EXPECT_EQ((*stored)["status"]["phase"], "Running");
}

TEST_F(InformerTest, ResumesFromTheLastVersionAfterACleanEnd) {
  api_.Put(kPods, Pod("a"));
  Start();
  const json b = api_.Put(kPods, Pod("b"));
  Reaches({"add a", "add b"});
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return Watches() == 2; }));
  EXPECT_EQ(api_.CountCalls("resourceVersion=" + ResourceVersionOf(b)), 1u);
  api_.Put(kPods, Pod("c"));
  Reaches({"add a", "add b", "add c"});
  EXPECT_EQ(Lists(), 1u);
}

TEST_F(InformerTest, BookmarksMoveTheVersionToResumeFrom) {
  Start();
  api_.Put(kConfigMaps, Pod("elsewhere"));  // moves the server's version, unseen by this watch
  api_.Bookmark();
  api_.Put(kPods, Pod("a"));
  Reaches({"add a"});
  api_.Put(kConfigMaps, Pod("more"));
  const std::string marked = ResourceVersionOf(api_.Find(kConfigMaps, "ml", "more"));
  api_.Bookmark();
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return Watches() == 2 && api_.open_watches() == 1; }));
  EXPECT_EQ(api_.CountCalls("resourceVersion=" + marked), 1u);
  EXPECT_EQ(Lists(), 1u);
}

TEST_F(InformerTest, GoneAsAStatusLeadsToAListOfTheDifferences) {
  api_.Put(kPods, Pod("a"));
  api_.Put(kPods, Pod("b"));
  Start();
  Reaches({"add a", "add b"});
  api_.FailNext("watch=true", StatusReply(410, "too old resource version"));
  api_.Remove(kPods, "ml", "a");
  Reaches({"add a", "add b", "delete a"});
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.open_watches() == 1 && Lists() == 2; }));
  Reaches({"add a", "add b", "delete a"});
  api_.Put(kPods, Pod("c"));
  Reaches({"add a", "add b", "delete a", "add c"});
}

TEST_F(InformerTest, GoneInsideTheStreamLeadsToAListThatFindsWhatWasMissed) {
  api_.Put(kPods, Pod("a"));
  api_.Put(kPods, Pod("b"));
  Start();
  // The watch is cut; while it cannot come back, one pod goes, one comes, and the history is dropped.
  api_.FailNext("watch=true", {0, {}, {}}, 1 << 20);
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return Watches() >= 3; }));
  api_.Remove(kPods, "ml", "a");
  api_.Put(kPods, Pod("c"));
  api_.Compact();
  EXPECT_EQ(Lists(), 1u);
  EXPECT_NE(informer_->store().Get("ml/a"), nullptr);  // an unreachable server empties no cache
  api_.ClearFailures();
  Reaches({"add a", "add b", "add c", "delete a"});
  EXPECT_EQ(Lists(), 2u);
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.open_watches() == 1; }));
  api_.SendLine(ExpiredLine());
  ASSERT_TRUE(api_.WaitUntil([&] { return Lists() == 3 && api_.open_watches() == 1; }));
  api_.Put(kPods, Pod("d"));
  Reaches({"add a", "add b", "add c", "delete a", "add d"});
}

TEST_F(InformerTest, AnErrorEventOtherThanGoneResumesTheWatch) {
  Start();
  api_.SendLine(R"({"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is slow"}})");
  ASSERT_TRUE(api_.WaitUntil([&] { return Watches() == 2 && api_.open_watches() == 1; }));
  EXPECT_EQ(Lists(), 1u);
}

TEST_F(InformerTest, GarbageInTheStreamEndsOnlyThatWatch) {
  Start();
  for (const char* line : {"{not json", "[]", "{\"type\":\"ADDED\"}", "{\"type\":\"NEWS\",\"object\":{}}", "42"}) {
    const size_t before = Watches();
    api_.SendLine(line);
    ASSERT_TRUE(api_.WaitUntil([&] { return Watches() > before && api_.open_watches() == 1; })) << line;
  }
  api_.Put(kPods, Pod("a"));
  Reaches({"add a"});
}

TEST_F(InformerTest, AFailedFirstListIsTriedAgainAndNotSynced) {
  api_.FailNext("limit=", StatusReply(500, "starting"), 3);
  api_.Put(kPods, Pod("a"));
  Start();
  EXPECT_EQ(Lists(), 4u);
  EXPECT_EQ(informer_->store().Size(), 1u);
}

TEST_F(InformerTest, AnExpiredContinueTokenRestartsTheList) {
  for (const char* name : {"a", "b", "c"}) api_.Put(kPods, Pod(name));
  api_.FailNext("continue=", StatusReply(410, "expired"));
  Start();
  EXPECT_EQ(informer_->store().Size(), 3u);
  EXPECT_EQ(Lists(), 4u);
}

// The list as a stream ("WatchList").
class StreamedListTest : public InformerTest {
 protected:
  StreamedListTest() {
    options_.stream_lists = true;
    options_.on_call = [this](const char* verb, const Status& status) {
      const std::lock_guard lock(mutex_);
      ends_.push_back(std::string(verb) + " " + std::string(CodeName(status.code())));
    };
  }
  ~StreamedListTest() override { informer_.reset(); }  // its thread writes to ends_
  std::vector<std::string> Ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  std::vector<std::string> ends_;  // guarded by mutex_
};

TEST_F(StreamedListTest, IsFollowedByTheChangesInOneStream) {
  api_.Put(kPods, Pod("b"));
  api_.Put(kPods, Pod("a"));
  Start();
  api_.Put(kPods, Pod("c"));
  api_.Remove(kPods, "ml", "a");
  Reaches({"add a", "add b", "add c", "delete a"});
  EXPECT_EQ(Lists(), 0u);
  EXPECT_EQ(Watches(), 1u);
}

TEST_F(StreamedListTest, AnEmptyListIsOneToo) {
  Start();
  EXPECT_EQ(informer_->store().Size(), 0u);
  EXPECT_EQ(Lists(), 0u);
}

TEST_F(StreamedListTest, ItsVersionIsResumedFrom) {
  api_.Put(kPods, Pod("a"));
  const json last = api_.Put(kConfigMaps, Pod("elsewhere"));
  Start();
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return Watches() == 2 && api_.open_watches() == 1; }));
  EXPECT_EQ(api_.CountCalls("resourceVersion=" + ResourceVersionOf(last) + "&"), 1u);
  EXPECT_EQ(api_.CountCalls("sendInitialEvents"), 1u);
  api_.Put(kPods, Pod("b"));
  Reaches({"add a", "add b"});
}

TEST_F(StreamedListTest, AServerThatCannotIsAskedOnceAndThenForPages) {
  api_.StreamLists(false);
  api_.Put(kPods, Pod("a"));
  Start();
  EXPECT_EQ(Lists(), 1u);
  api_.FailNext("resourceVersion=", StatusReply(410, "too old"));
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return Lists() == 2 && api_.open_watches() == 1; }));
  EXPECT_EQ(api_.CountCalls("sendInitialEvents"), 1u);
}

TEST_F(StreamedListTest, OneThatBreaksOffIsFollowedByPagesAndTheNextIsStreamedAgain) {
  api_.FailNext("sendInitialEvents", {0, {}, {}});
  api_.Put(kPods, Pod("a"));
  Start();
  Reaches({"add a"});
  EXPECT_EQ(Lists(), 1u);
  EXPECT_EQ(Ends(), (std::vector<std::string>{"watchlist Unavailable", "list OK"}));
  api_.SendLine(ExpiredLine());
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.CountCalls("sendInitialEvents") == 2 && api_.open_watches() == 1; }));
  ASSERT_TRUE(api_.WaitUntil([&] { return Ends().size() == 4; }));
  EXPECT_EQ(Ends(), (std::vector<std::string>{"watchlist Unavailable", "list OK", "watch Exhausted", "watchlist OK"}));
  EXPECT_EQ(Lists(), 1u);
}

TEST_F(StreamedListTest, AfterALostHistoryWhatIsNotInItIsGone) {
  api_.Put(kPods, Pod("a"));
  api_.Put(kPods, Pod("b"));
  Start();
  api_.FailNext("watch=true", {0, {}, {}}, 1 << 20);
  api_.EndWatches();
  ASSERT_TRUE(api_.WaitUntil([&] { return Watches() >= 3; }));
  api_.Remove(kPods, "ml", "a");
  api_.Put(kPods, Pod("c"));
  api_.Compact();
  api_.ClearFailures();
  Reaches({"add a", "add b", "add c", "delete a"});
  EXPECT_EQ(Lists(), 0u);
}

TEST(StoreTest, GivesBackWhatWasPut) {
  Store store;
  const auto object = std::make_shared<const json>(json::parse(R"({
    "metadata": {"namespace": "ml", "name": "a"},
    "spec": {"text": "\u00e9\u0000", "numbers": [0, -1, 9223372036854775807, 0.5], "none": null, "flags": [true, false]}})"));
  EXPECT_EQ(store.Put(object), nullptr);
  EXPECT_EQ(*store.Get("ml/a"), *object);
  const auto changed = std::make_shared<const json>(Pod("a"));
  EXPECT_EQ(*store.Put(changed), *object);
  EXPECT_EQ(*store.Delete("ml/a"), *changed);
}

TEST(StoreTest, FindsByItsIndexWhatIsStoredNow) {
  Store store([](const json& object) { return object.value("group", ""); });
  const auto put = [&](const char* name, const char* group) {
    json pod = Pod(name);
    pod["group"] = group;
    store.Put(std::make_shared<const json>(pod));
  };
  const auto names = [&](const char* group) {
    std::string all;
    for (const Object& object : store.Indexed(group)) all += object->at("metadata").at("name").get<std::string>();
    return all;
  };
  put("b", "x");
  put("a", "x");
  put("c", "y");
  put("d", "");
  EXPECT_EQ(names("x"), "ab");
  EXPECT_EQ(names("y"), "c");
  EXPECT_EQ(names(""), "") << "what has no value is found under none";
  put("a", "y");
  EXPECT_EQ(names("x"), "b");
  EXPECT_EQ(names("y"), "ac");
  put("a", "");
  store.Delete("ml/b");
  store.Delete("ml/d");
  EXPECT_EQ(names("x"), "");
  EXPECT_EQ(names("y"), "c");
  EXPECT_EQ(Store().Indexed("x").size(), 0u) << "a store without an index";
}

TEST(StoreTest, WaitForSeesAnObjectThatComesLater) {
  Store store;
  EXPECT_EQ(store.WaitFor("ml/a", 1ms), nullptr);
  std::thread writer([&] { store.Put(std::make_shared<json>(Pod("a"))); });
  EXPECT_NE(store.WaitFor("ml/a", 10s), nullptr);
  writer.join();
  EXPECT_EQ(store.Size(), 1u);
  EXPECT_NE(store.Delete("ml/a"), nullptr);
  EXPECT_EQ(store.Delete("ml/a"), nullptr);
}

}  // namespace
}  // namespace headrace::kube
