#include "sidecar/remote/sign_v4.h"

#include <gtest/gtest.h>

namespace headrace::side {
namespace {

// The examples of the Amazon S3 API reference, "Signature Calculations for the Authorization Header".
const AwsKeys kKeys = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr std::time_t kTime = 1369353600;  // 20130524T000000Z

std::string AuthorizationOf(Request request, const AwsKeys& keys = kKeys) {
  SignV4(keys, "us-east-1", "s3", kTime, &request);
  return request.headers.back();
}

TEST(SignV4, SignsGetObjectAsTheReferenceDoes) {
  EXPECT_EQ(
      AuthorizationOf({.url = "https://examplebucket.s3.amazonaws.com/test.txt", .headers = {"Range: bytes=0-9"}}),
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
      "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SignV4, SignsListObjectsAsTheReferenceDoes) {
  EXPECT_EQ(AuthorizationOf({.url = "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"}),
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
            "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SignV4, SignsTheSessionTokenToo) {
  Request request{.url = "https://examplebucket.s3.amazonaws.com/test.txt"};
  SignV4({"AKID", "secret", "the-token"}, "us-east-1", "s3", kTime, &request);
  EXPECT_EQ(request.headers[2], "x-amz-security-token: the-token");
  EXPECT_NE(request.headers[3].find("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::side
