#include "sidecar/remote/url.h"

#include <gtest/gtest.h>

namespace headrace::side {
namespace {

TEST(Url, EncodesAllButTheUnreserved) {
  EXPECT_EQ(PercentEncode("a-Z_0.~/ +%\xc3\xa9"), "a-Z_0.~%2F%20%2B%25%C3%A9");
  EXPECT_EQ(PercentEncode("a/b c", /*keep_slashes=*/true), "a/b%20c");
}

TEST(Url, DecodesWhatIsEncoded) {
  EXPECT_EQ(PercentDecode("a%2Fb%20c%c3%A9"), "a/b c\xc3\xa9");
  EXPECT_EQ(PercentDecode("100%"), "100%");
  EXPECT_EQ(PercentDecode("%2"), "%2");
  EXPECT_EQ(PercentDecode("%zz%41"), "%zzA");
}

TEST(Url, SortsAQuery) { EXPECT_EQ(QueryOf({{"prefix", "a b"}, {"list-type", "2"}}), "list-type=2&prefix=a%20b"); }

TEST(Url, Splits) {
  const UrlParts parts = SplitUrl("https://host.example:9000/a/b%20c?d=e?f");
  EXPECT_EQ(parts.scheme, "https");
  EXPECT_EQ(parts.host, "host.example:9000");
  EXPECT_EQ(parts.host_name(), "host.example");
  EXPECT_EQ(parts.path, "/a/b%20c");
  EXPECT_EQ(parts.query, "d=e?f");
  EXPECT_EQ(parts.origin(), "https://host.example:9000");
  EXPECT_EQ(SplitUrl("http://[::1]:80/x").host_name(), "[::1]");
  EXPECT_EQ(SplitUrl("http://[::1]").host_name(), "[::1]");
  EXPECT_EQ(SplitUrl("http://a.example?q").path, "/");
  EXPECT_EQ(SplitUrl("http://a.example?q").query, "q");
}

TEST(Url, SplitsObjectPaths) {
  const ObjectName name = SplitObjectPath("s3://bucket/some/key");
  EXPECT_EQ(name.scheme, "s3");
  EXPECT_EQ(name.bucket, "bucket");
  EXPECT_EQ(name.key, "some/key");
}

TEST(Url, ShowsNoQuery) {
  EXPECT_EQ(ShownPath("https://a.example/a?signature=sesame"), "https://a.example/a");
  EXPECT_EQ(ShownPath("s3://bucket/a?b"), "s3://bucket/a?b");  // a glob
}

}  // namespace
}  // namespace headrace::side
