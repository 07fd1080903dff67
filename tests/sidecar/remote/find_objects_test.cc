#include "sidecar/remote/find_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/fakes/http_faults.h"
#include "tests/sidecar/remote/fake_bucket.h"
#include "tests/sidecar/remote/stores.h"

namespace headrace::side {
namespace {

using fakes::Answer;
using fakes::HttpFaults;
using fakes::RangeOf;
using fakes::SeenRequest;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Result<std::vector<FoundObject>> All(ObjectListing* listing, size_t path) {
  std::vector<FoundObject> all;
  while (true) {
    ASSIGN_OR_RETURN(auto next, listing->Next(path));
    if (next.empty()) return all;
    std::move(next.begin(), next.end(), std::back_inserter(all));
  }
}

std::vector<Result<std::vector<FoundObject>>> Find(ObjectStore* store, const std::vector<std::string>& paths) {
  const auto listing = store->List(paths);
  std::vector<Result<std::vector<FoundObject>>> found;
  for (size_t i = 0; i < paths.size(); ++i) found.push_back(All(listing.get(), i));
  return found;
}

std::vector<Result<std::vector<FoundObject>>> Find(const HttpFaults& server, const std::vector<std::string>& paths) {
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}), QuickPolicy());
  return Find(&store, paths);
}

std::vector<std::string> Names(const Result<std::vector<FoundObject>>& found) {
  if (!found.ok()) return {found.status().ToString()};
  std::vector<std::string> names;
  for (const FoundObject& object : *found) names.push_back(object.path);
  return names;
}

TEST(FindObjects, MatchesGlobsAsAVolumeDoes) {
  const HttpFaults server(FakeBucket({"data/", "data/a-1.rec", "data/a-2.rec", "data/b-1.rec", "data/deep/a-3.rec",
                                      "data/e&f <g>.rec", "data/other/a-4.rec", "data/other/b-4.rec", "z"},
                                     2));
  const auto found = Find(server, {"s3://bucket/data/a-*", "s3://bucket/data/*/a-?.rec", "s3://bucket/data/[!a]*",
                                   "s3://bucket/*", "s3://bucket/data/*/a-4.rec"});
  EXPECT_THAT(Names(found[0]), ElementsAre("s3://bucket/data/a-1.rec", "s3://bucket/data/a-2.rec"));
  EXPECT_THAT(Names(found[1]), ElementsAre("s3://bucket/data/deep/a-3.rec", "s3://bucket/data/other/a-4.rec"));
  EXPECT_THAT(Names(found[2]), ElementsAre("s3://bucket/data/b-1.rec", "s3://bucket/data/e&f <g>.rec"));
  EXPECT_THAT(Names(found[3]), ElementsAre("s3://bucket/z"));
  EXPECT_THAT(Names(found[4]), ElementsAre("s3://bucket/data/other/a-4.rec"));
  EXPECT_EQ((*found[0])[1].size, std::string("data/a-2.rec").size());
  EXPECT_EQ((*found[0])[1].version, "\"v1\"");
}

TEST(FindObjects, AsksOnceForAPathWithoutAGlob) {
  const HttpFaults server(FakeBucket({"data/a", "data/b"}, 10));
  const auto found = Find(server, {"s3://bucket/data/b"});
  ASSERT_TRUE(found[0].ok()) << found[0].status().ToString();
  EXPECT_EQ((*found[0])[0].size, 6u);
  EXPECT_EQ((*found[0])[0].version, "\"v1\"");
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(FindObjects, FindsEmptyObjects) {
  const HttpFaults server([](const SeenRequest& request) { return RangeOf(request, ""); });
  const auto found = Find(server, {"s3://bucket/empty"});
  ASSERT_TRUE(found[0].ok()) << found[0].status().ToString();
  EXPECT_EQ((*found[0])[0].size, 0u);
}

TEST(FindObjects, SaysWhatIsThereInstead) {
  const HttpFaults server(FakeBucket({"data/a-1.rec", "data/a-2.rec", "data/b/c", "y/z"}, 10));
  const auto found = Find(server, {"s3://bucket/data/train-*", "s3://bucket/data/sub/train-*", "s3://bucket/data/none",
                                   "s3://bucket/data/a-1.rec"});
  EXPECT_EQ(found[0].status().code(), Code::kNotFound);
  EXPECT_THAT(
      found[0].status().message(),
      HasSubstr("s3://bucket/data/train-* matches no object; folder s3://bucket/data/ holds a-1.rec, a-2.rec, b/"));
  EXPECT_THAT(found[1].status().message(), HasSubstr("folder s3://bucket/data/ holds a-1.rec"));
  EXPECT_EQ(found[2].status().code(), Code::kNotFound);
  EXPECT_THAT(found[2].status().message(),
              HasSubstr("s3://bucket/data/none is not there; folder s3://bucket/data/ holds"));
  EXPECT_TRUE(found[3].ok());
}

TEST(FindObjects, RefusalsAreThePathsOwn) {
  const HttpFaults server([](const SeenRequest& request) {
    if (request.target.rfind("/closed", 0) == 0) {
      return Answer{.status = 403, .body = "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"};
    }
    if (request.target.rfind("/none", 0) == 0) {
      return Answer{.status = 404, .body = "<Error><Code>NoSuchBucket</Code><Message>No.</Message></Error>"};
    }
    return RangeOf(request, "x");
  });
  const auto found = Find(server, {"s3://closed/a*", "s3://none/a*", "s3://open/a"});
  EXPECT_THAT(found[0].status().message(), AllOf(HasSubstr("s3://closed/a*"), HasSubstr("403 AccessDenied")));
  EXPECT_THAT(found[1].status().message(), AllOf(HasSubstr("s3://none/a*"), HasSubstr("check the bucket's name")));
  EXPECT_TRUE(found[2].ok());
}

// Every object once, in order, and in far fewer rounds than there are pages.
TEST(FindObjects, ListsRangesOfKeysAtTheSameTime) {
  std::set<std::string> keys;
  for (int i = 0; i < 20000; ++i) {
    char key[64];
    std::snprintf(key, sizeof key, "data/train-%05d-of-20000", i);
    keys.insert(key);
  }
  // Boundaries fall on keys too.
  keys.insert({"data/train-1", "data/train-10", "data/train-2", "data/train-x", "data/trail", "data/train-0/x"});
  const HttpFaults server(FakeBucket(keys, 100), /*handles_at_once=*/true);
  const auto found = Find(server, {"s3://bucket/data/train-*"});
  std::vector<std::string> expected;
  for (const std::string& key : keys) {
    if (key != "data/trail" && key != "data/train-0/x") expected.push_back("s3://bucket/" + key);
  }
  EXPECT_EQ(Names(found[0]), expected);
  EXPECT_LE(server.requests().size(), 300u);  // of 200 pages
  EXPECT_GT(server.connections(), 4);
}

std::set<std::string> KeysInFolders(int folders, int in_each) {
  std::set<std::string> keys;
  for (int folder = 0; folder < folders; ++folder) {
    for (int i = 0; i < in_each; ++i) {
      keys.insert("data/" + std::to_string(1000 + folder) + "/part-" + std::to_string(1000 + i));
    }
  }
  return keys;
}

// The first objects cost few requests, however many follow; all together come in order.
TEST(FindObjects, ListsAsFarAsObjectsAreWanted) {
  const std::set<std::string> keys = KeysInFolders(100, 50);
  const HttpFaults server(FakeBucket(keys, 100), /*handles_at_once=*/true);
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}), QuickPolicy());
  const auto listing = store.List({"s3://bucket/data/*/part-*"});
  const auto first = listing->Next(0);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(first->front().path, "s3://bucket/data/1000/part-1000");
  EXPECT_LE(server.requests().size(), 30u);  // of 101
  std::vector<std::string> names = Names(first);
  const auto rest = All(listing.get(), 0);
  ASSERT_TRUE(rest.ok()) << rest.status().ToString();
  for (const FoundObject& object : *rest) names.push_back(object.path);
  std::vector<std::string> expected;
  for (const std::string& key : keys) expected.push_back("s3://bucket/" + key);
  EXPECT_EQ(names, expected);
  EXPECT_EQ(server.requests().size(), 101u);
}

// "a-b/x" is before "a/x" and after "a", whatever folder they come from.
TEST(FindObjects, OrdersFoldersAsTheirObjects) {
  const HttpFaults server(FakeBucket({"a-b/x", "a/x", "a/y", "a0/x", "a/-/x"}, 1));
  const auto found = Find(server, {"s3://bucket/a*/*", "s3://bucket/*/x"});
  EXPECT_THAT(Names(found[0]),
              ElementsAre("s3://bucket/a-b/x", "s3://bucket/a/x", "s3://bucket/a/y", "s3://bucket/a0/x"));
  EXPECT_THAT(Names(found[1]), ElementsAre("s3://bucket/a-b/x", "s3://bucket/a/x", "s3://bucket/a0/x"));
}

// What is not in order could be read twice, or not at all.
TEST(FindObjects, RefusesAListingOutOfOrder) {
  int page = 0;
  const HttpFaults server([&](const SeenRequest&) {
    const std::string keys = page++ == 0 ? "<Contents><Key>b</Key><Size>1</Size></Contents>"
                                           "<Contents><Key>c</Key><Size>1</Size></Contents><IsTruncated>true"
                                           "</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
                                         : "<Contents><Key>a</Key><Size>1</Size></Contents>";
    return Answer{.body = "<ListBucketResult>" + keys + "</ListBucketResult>"};
  });
  EXPECT_THAT(Find(server, {"s3://bucket/*"})[0].status().message(),
              HasSubstr("s3://bucket/a: the server lists it after b: listings must be in lexical order"));
}

// A listing that nobody wants any more waits for no server.
TEST(FindObjects, EndsInTheMiddle) {
  const std::set<std::string> keys = KeysInFolders(20, 5);
  const FakeBucket bucket(keys, 100);
  const HttpFaults server(
      [&](const SeenRequest& request) {
        const bool late =
            request.target.find("1000") == std::string::npos && request.target.find("10") != std::string::npos;
        return late ? Answer{.silent = true} : bucket(request);
      },
      /*handles_at_once=*/true);
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({}), QuickPolicy());
  const auto listing = store.List({"s3://bucket/data/*/part-*"});
  const auto first = listing->Next(0);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(first->size(), 5u);
}

TEST(FindObjects, ABrokenListingIsAnError) {
  for (const char* body : {"", "<html>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                           "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>"}) {
    const HttpFaults server([&](const SeenRequest&) { return Answer{.body = body}; });
    EXPECT_EQ(Find(server, {"s3://bucket/a*"})[0].status().code(), Code::kCorrupt) << body;
  }
}

TEST(FindObjects, TakesFilesOfWebServers) {
  const HttpFaults server([](const SeenRequest& request) {
    if (request.target == "/moved") return Answer{.status = 302, .headers = {{"Location", "/a?sign=sesame"}}};
    if (request.target == "/whole") return Answer{.body = "no ranges here"};
    if (request.target != "/a?sign=sesame") return Answer{.status = 404};
    return RangeOf(request, "12345");
  });
  const std::string url = server.url();
  const auto found = Find(server, {url + "/a?sign=sesame", url + "/moved", url + "/whole", url + "/none?sign=sesame"});
  EXPECT_EQ((*found[0])[0].path, url + "/a?sign=sesame");
  EXPECT_EQ((*found[0])[0].size, 5u);
  EXPECT_EQ((*found[1])[0].size, 5u);
  EXPECT_THAT(found[2].status().message(), HasSubstr("sends whole files only"));
  EXPECT_THAT(found[3].status().message(),
              AllOf(HasSubstr(url + "/none: the server answered with 404"), Not(HasSubstr("sesame"))));
}

TEST(FindObjects, AsksGoogleWithATokenOfTheMetadataServer) {
  const HttpFaults metadata(
      [](const SeenRequest&) { return Answer{.body = R"({"access_token": "ya29.sesame", "expires_in": 3599})"}; });
  const HttpFaults server([](const SeenRequest& request) {
    if (request.headers.at("authorization") != "Bearer ya29.sesame") return Answer{.status = 401};
    return FakeBucket({"a-1", "a-2"}, 10)(request);
  });
  ObjectStore store({.endpoint = server.url()}, EnvironmentOf({{"GCE_METADATA_HOST", metadata.url().substr(7)}}),
                    QuickPolicy());
  EXPECT_THAT(Names(Find(&store, {"gs://bucket/a-*"})[0]), ElementsAre("gs://bucket/a-1", "gs://bucket/a-2"));
  EXPECT_EQ(metadata.requests().size(), 1u);
}

}  // namespace
}  // namespace headrace::side
