#include "common/net/connections.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

class ConnectionsTest : public ::testing::Test {
 protected:
  Connections::Place Enter(const char* name) {
    return connections_.Enter([this, name] { gone_ += name; });
  }
  Connections connections_{2, 100, [this] { ++rooms_; }};
  std::string gone_;
  int rooms_ = 0;
};

TEST_F(ConnectionsTest, AtTheCapTheLongestAwaitedGoes) {
  const auto a = Enter("a");
  const auto b = Enter("b");
  EXPECT_TRUE(connections_.HasRoom());
  const auto c = Enter("c");
  connections_.Await(a);
  EXPECT_FALSE(connections_.HasRoom());
  EXPECT_EQ(gone_, "b");
  EXPECT_EQ(rooms_, 0);
  connections_.Leave(b);
  EXPECT_EQ(rooms_, 1);
  EXPECT_TRUE(connections_.HasRoom());
  connections_.Leave(c);
  connections_.Leave(a);
  EXPECT_EQ(rooms_, 1) << "nobody waited for room";
}

TEST_F(ConnectionsTest, WhoWaitsForUsDoesNotGo) {
  const auto a = Enter("a");
  const auto b = Enter("b");
  const auto c = Enter("c");
  connections_.Hold(a);
  EXPECT_FALSE(connections_.HasRoom());
  EXPECT_EQ(gone_, "b");
  connections_.Hold(c);
  EXPECT_FALSE(connections_.HasRoom()) << "nobody but the one who goes already";
  EXPECT_EQ(gone_, "b");
  connections_.Await(c);
  EXPECT_FALSE(connections_.HasRoom()) << "the latest";
  EXPECT_EQ(gone_, "b");
  connections_.Await(a);
  EXPECT_FALSE(connections_.HasRoom());
  EXPECT_EQ(gone_, "bc");
  for (const auto place : {a, b, c}) connections_.Leave(place);
}

TEST_F(ConnectionsTest, RequestsTogetherHaveALimit) {
  const auto a = Enter("a");
  const auto b = Enter("b");
  const auto c = Enter("c");
  EXPECT_TRUE(connections_.Take(a, 60));
  EXPECT_TRUE(connections_.Take(b, 40));
  EXPECT_TRUE(connections_.Take(c, 50));
  EXPECT_EQ(gone_, "a") << "the longest awaited of those with a request";
  connections_.Leave(a);  // its bytes are not given back twice
  connections_.Hold(b);
  connections_.Hold(c);
  const auto d = Enter("d");
  EXPECT_TRUE(connections_.Take(d, 10));
  connections_.Await(d);
  EXPECT_FALSE(connections_.Take(d, 11)) << "b and c wait for us";
  connections_.Await(b);
  EXPECT_TRUE(connections_.Take(d, 50));
  EXPECT_EQ(gone_, "a");
  for (const auto place : {b, c, d}) connections_.Leave(place);
}

}  // namespace
}  // namespace headrace
