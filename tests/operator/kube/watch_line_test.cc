#include "operator/kube/watch_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headrace::kube {
namespace {

using nlohmann::json;

constexpr char kFields[] = R"([{"manager":"a","fieldsV1":{"f:spec":{"k:{\"port\":1}":{".":{}},"v:[\"]\\":{}}}},[]])";

TEST(WatchLineTest, LeavesManagedFieldsOutWhereverTheyStand) {
  const std::string fields = kFields;
  const json expected = {{"object", {{"metadata", {{"name", "p"}, {"uid", "u"}}}}}};
  for (const std::string& metadata : std::vector<std::string>{
           R"("managedFields":)" + fields + R"(,"name":"p","uid":"u")",
           R"("name":"p","managedFields":)" + fields + R"(,"uid":"u")",
           R"("name":"p","uid":"u","managedFields":)" + fields, R"("managedFields":[],"name":"p","uid":"u")"}) {
    EXPECT_EQ(ParseWatchLine(R"({"object":{"metadata":{)" + metadata + "}}}"), expected) << metadata;
  }
  EXPECT_EQ(ParseWatchLine(R"({"metadata":{"managedFields":)" + fields + "}}"), json({{"metadata", json::object()}}));
  const std::string twice = R"({"a":{"managedFields":)" + fields + R"(,"b":{"managedFields":)" + fields + "}}}";
  EXPECT_EQ(ParseWatchLine(twice), json({{"a", {{"b", json::object()}}}}));
}

TEST(WatchLineTest, TextThatOnlySpeaksOfThemStays) {
  for (const json& line : {json{{"note", R"("managedFields":[)"}}, json{{"managedFields", "[]"}},
                           json{{"x", R"(","managedFields":[],")"}}, json{{"managedFields:[", {1}}}}) {
    EXPECT_EQ(ParseWatchLine(line.dump()), line);
  }
}

TEST(WatchLineTest, WhatIsNoJsonIsDiscarded) {
  for (const char* line : {"", "{", R"({"managedFields":[)", R"({"managedFields":[")", R"({"managedFields":[]]})",
                           R"({"managedFields":["\)", R"({"a":1,"managedFields":[]x})"}) {
    EXPECT_TRUE(ParseWatchLine(line).is_discarded()) << line;
  }
}

}  // namespace
}  // namespace headrace::kube
