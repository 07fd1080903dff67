#include "sidecar/remote/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/http_faults.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/remote/stores.h"

namespace headrace::side {
namespace {

using fakes::Answer;
using fakes::HttpFaults;
using fakes::SeenRequest;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Result<Credentials> Aws(std::map<std::string, std::string> variables) {
  Transfers transfers(QuickPolicy());
  const Environment environment = EnvironmentOf(std::move(variables));
  const std::string region = "eu-west-1";
  return AwsCredentials(environment, region, &transfers)();
}

Result<Credentials> Google(std::map<std::string, std::string> variables) {
  Transfers transfers(QuickPolicy());
  const Environment environment = EnvironmentOf(std::move(variables));
  return GoogleCredentials(environment, &transfers)();
}

TEST(AwsCredentials, TakesKeysOfTheEnvironmentFirst) {
  const auto credentials = Aws({{"AWS_ACCESS_KEY_ID", "AKID"},
                                {"AWS_SECRET_ACCESS_KEY", "sesame"},
                                {"AWS_SESSION_TOKEN", "token"},
                                {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/"}});
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ(credentials->aws->access_key, "AKID");
  EXPECT_EQ(credentials->aws->secret_key, "sesame");
  EXPECT_EQ(credentials->aws->session_token, "token");
  EXPECT_FALSE(credentials->expires);
}

TEST(AwsCredentials, AreNoneWhereNothingNamesAny) {
  const auto credentials = Aws({});
  ASSERT_TRUE(credentials.ok());
  EXPECT_FALSE(credentials->aws);
  EXPECT_EQ(credentials->source, "");
}

TEST(AwsCredentials, HalfAKeyIsAnError) {
  EXPECT_THAT(Aws({{"AWS_ACCESS_KEY_ID", "AKID"}}).status().message(), HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
}

// The reply as AWS documents it for AssumeRoleWithWebIdentity.
constexpr char kAssumed[] = R"(<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>amzn1.account.AF6RHO7KZU5XRVQJGXK6HB56KR2A</SubjectFromWebIdentityToken>
    <Credentials>
      <SessionToken>AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE</SessionToken>
      <SecretAccessKey>wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY</SecretAccessKey>
      <Expiration>2014-10-24T23:00:23Z</Expiration>
      <AccessKeyId>ASgeIAIOSFODNN7EXAMPLE</AccessKeyId>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>)";

TEST(AwsCredentials, ExchangesThePodsTokenForARole) {
  const Folder folder;
  const std::string token = folder.Write("token", "header.payload+/=.signature\n");
  const HttpFaults sts([&](const SeenRequest&) { return Answer{.body = kAssumed}; });
  const auto credentials = Aws({{"AWS_WEB_IDENTITY_TOKEN_FILE", token},
                                {"AWS_ROLE_ARN", "arn:aws:iam::1:role/read"},
                                {"AWS_ENDPOINT_URL_STS", sts.url()}});
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ(credentials->aws->access_key, "ASgeIAIOSFODNN7EXAMPLE");
  EXPECT_EQ(credentials->aws->secret_key, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY");
  EXPECT_EQ(credentials->aws->session_token, "AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*credentials->expires),
            1414191623);  // date -d 2014-10-24T23:00:23Z +%s
  const auto requests = sts.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].target, "/");  // no token where a log would hold it
  EXPECT_EQ(requests[0].body,
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fread&RoleSessionName=headrace&"
            "Version=2011-06-15&WebIdentityToken=header.payload%2B%2F%3D.signature");
}

TEST(AwsCredentials, ARefusedRoleIsAnErrorWithoutTheToken) {
  const Folder folder;
  const HttpFaults sts([&](const SeenRequest&) {
    return Answer{.status = 403,
                  .body =
                      "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized.</Message></Error>"
                      "</ErrorResponse>"};
  });
  const Status status = Aws({{"AWS_WEB_IDENTITY_TOKEN_FILE", folder.Write("token", "sesame")},
                             {"AWS_ROLE_ARN", "arn:aws:iam::1:role/read"},
                             {"AWS_ENDPOINT_URL_STS", sts.url()}})
                            .status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("arn:aws:iam::1:role/read cannot be assumed"),
                                      HasSubstr("AccessDenied: Not authorized."), Not(HasSubstr("sesame"))));
}

TEST(AwsCredentials, AsksThePodIdentityAgent) {
  const Folder folder;
  const HttpFaults agent([&](const SeenRequest&) {
    return Answer{.body = R"({"AccessKeyId": "ASIA", "SecretAccessKey": "sesame", "Token": "tok",
                             "AccountId": "1", "Expiration": "2014-10-24T23:00:23.000Z"})"};
  });
  const auto credentials = Aws({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.url() + "/v1/credentials"},
                                {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder.Write("token", "pod-token\n")}});
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ(credentials->aws->access_key, "ASIA");
  EXPECT_EQ(credentials->aws->session_token, "tok");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*credentials->expires), 1414191623);
  EXPECT_EQ(agent.requests()[0].headers.at("authorization"), "pod-token");
}

TEST(AwsCredentials, GivesItsTokenToNoStranger) {
  const Status status = Aws({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://a.example/credentials"}}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("neither https nor an address of this node"));
}

TEST(GoogleCredentials, TakesTheServiceAccountsToken) {
  const HttpFaults metadata([&](const SeenRequest&) {
    return Answer{.body = R"({"access_token": "ya29.sesame", "expires_in": 3599, "token_type": "Bearer"})"};
  });
  const auto before = std::chrono::system_clock::now();
  const auto credentials = Google({{"GCE_METADATA_HOST", metadata.url().substr(7)}});
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ(credentials->bearer, "ya29.sesame");
  EXPECT_GE(*credentials->expires, before + std::chrono::seconds(3599));
  const auto requests = metadata.requests();
  EXPECT_EQ(requests[0].target, "/computeMetadata/v1/instance/service-accounts/default/token");
  EXPECT_EQ(requests[0].headers.at("metadata-flavor"), "Google");
}

TEST(GoogleCredentials, HmacKeysComeFirst) {
  const auto credentials = Google({{"AWS_ACCESS_KEY_ID", "GOOG1E"}, {"AWS_SECRET_ACCESS_KEY", "sesame"}});
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(credentials->aws->access_key, "GOOG1E");
}

TEST(GoogleCredentials, AreNoneForAnAccountWithoutAny) {
  const HttpFaults metadata([&](const SeenRequest&) { return Answer{.status = 404}; });
  const auto credentials = Google({{"GCE_METADATA_HOST", metadata.url().substr(7)}});
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(credentials->bearer, "");
}

// Credentials by number, which are good for the given times, and errors after those.
struct Source {
  std::vector<std::chrono::minutes> lifetimes;
  size_t asked = 0;
  Result<Credentials> operator()() {
    if (asked == lifetimes.size()) return Unavailable("no more");
    Credentials credentials;
    credentials.expires = std::chrono::system_clock::now() + lifetimes[asked];
    credentials.bearer = std::to_string(++asked);
    return credentials;
  }
};

TEST(CredentialCache, AsksAgainBeforeTheyExpire) {
  using std::chrono::minutes;
  Source source{{minutes(4), minutes(60)}};
  CredentialCache cache(std::ref(source));
  EXPECT_EQ(cache.current(), nullptr);
  ASSERT_TRUE(cache.Renew().ok());
  EXPECT_EQ(cache.current()->bearer, "1");
  ASSERT_TRUE(cache.Renew().ok());  // four minutes are few
  EXPECT_EQ(cache.current()->bearer, "2");
  ASSERT_TRUE(cache.Renew().ok());
  EXPECT_EQ(source.asked, 2u);
}

TEST(CredentialCache, AFailureIsNoneWhileTheOldOnesAreGood) {
  using std::chrono::minutes;
  Source source{{minutes(4)}};
  CredentialCache cache(std::ref(source));
  ASSERT_TRUE(cache.Renew().ok());
  EXPECT_TRUE(cache.Renew().ok());
  EXPECT_EQ(cache.current()->bearer, "1");
  Source expired{{minutes(-1)}};
  CredentialCache over(std::ref(expired));
  ASSERT_TRUE(over.Renew().ok());
  EXPECT_EQ(over.Renew().message(), "no more");
}

TEST(CredentialCache, ReplacesOnlyThoseThatWereRefused) {
  using std::chrono::minutes;
  Source source{{minutes(60), minutes(60), minutes(60)}};
  CredentialCache cache(std::ref(source));
  ASSERT_TRUE(cache.Renew().ok());
  const auto first = cache.current();
  ASSERT_TRUE(cache.Replace(first).ok());
  ASSERT_TRUE(cache.Replace(first).ok());  // by another reader, a little later
  EXPECT_EQ(cache.current()->bearer, "2");
}

}  // namespace
}  // namespace headrace::side
