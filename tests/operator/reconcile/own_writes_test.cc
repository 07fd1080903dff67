#include "operator/reconcile/own_writes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::op {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json Map(const char* version) {
  return {{"metadata", {{"namespace", "ml"}, {"name", "plan"}, {"resourceVersion", version}}}};
}

class OwnWritesTest : public ::testing::Test {
 protected:
  void Cached(const char* version) { cache_.Put(std::make_shared<const json>(Map(version))); }
  kube::Store cache_;
  OwnWrites writes_;
  OwnWrites::Time now_{};
};

TEST_F(OwnWritesTest, AreShownOnceTheCacheHasThemOrWhatCameAfter) {
  EXPECT_TRUE(writes_.Shown("ml/clicks", now_)) << "nothing was written";
  Cached("98");
  writes_.Note("ml/clicks", &cache_, Map("100"), now_);
  EXPECT_FALSE(writes_.Shown("ml/clicks", now_));
  EXPECT_TRUE(writes_.Shown("ml/views", now_)) << "another input";
  Cached("99");
  EXPECT_FALSE(writes_.Shown("ml/clicks", now_)) << "numbers, not text";
  Cached("1000");
  EXPECT_TRUE(writes_.Shown("ml/clicks", now_));
}

TEST_F(OwnWritesTest, AnObjectThatIsNotThereYetIsNotShown) {
  writes_.Note("ml/clicks", &cache_, Map("100"), now_);
  EXPECT_FALSE(writes_.Shown("ml/clicks", now_));
  Cached("100");
  EXPECT_TRUE(writes_.Shown("ml/clicks", now_));
}

TEST_F(OwnWritesTest, WhatSomebodyDeletedStopsNothingForLong) {
  writes_.Note("ml/clicks", &cache_, Map("100"), now_);
  EXPECT_FALSE(writes_.Shown("ml/clicks", now_ + 5s));
  EXPECT_TRUE(writes_.Shown("ml/clicks", now_ + 6s));
}

TEST_F(OwnWritesTest, AnAnswerWithoutAVersionIsNotWaitedFor) {
  writes_.Note("ml/clicks", &cache_, json{{"metadata", {{"name", "plan"}}}}, now_);
  EXPECT_TRUE(writes_.Shown("ml/clicks", now_));
}

}  // namespace
}  // namespace headrace::op
