#include "operator/kube/webhook_certificates.h"

#include <gtest/gtest.h>

#include "common/net/base64.h"
#include "common/net/certificates.h"
#include "operator/kube/object.h"
#include "tests/fakes/api.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class WebhookCertificatesTest : public ::testing::Test {
 protected:
  WebhookCertificatesTest() {
    options_.name_space = "headrace";
    options_.secret = "certificate";
    options_.configuration = "headrace-webhook";
    options_.dns_names = {"headrace-webhook.headrace.svc"};
    options_.authority_lifetime = 1200h;
    options_.serving_lifetime = 90h;
    options_.now = [this] { return now_; };
    api_.Put(kMutatingWebhooks,
             {{"metadata", {{"name", "headrace-webhook"}}},
              {"webhooks", json::array({{{"name", "inject.headrace.dev"},
                                         {"clientConfig", {{"service", {{"name", "headrace-webhook"}}}}}}})}});
  }
  std::string Bundle() const {
    const json configuration = api_.Find(kMutatingWebhooks, "", "headrace-webhook");
    return DecodeBase64(StringAt(configuration["webhooks"][0], {"clientConfig", "caBundle"})).value_or("");
  }
  std::string Secret(const char* key) const {
    return DecodeBase64(StringAt(api_.Find(kSecrets, "headrace", "certificate"), {"data", key})).value_or("");
  }

  FakeApi api_;
  Client client_{&api_, {}};
  WebhookCertificates::Options options_;
  std::chrono::system_clock::time_point now_ = std::chrono::system_clock::from_time_t(1'800'000'000);
};

TEST_F(WebhookCertificatesTest, MakesASecretAndSetsTheBundle) {
  WebhookCertificates certificates(&client_, options_);
  EXPECT_EQ(certificates.pair(), nullptr);
  EXPECT_FALSE(certificates.ready());
  ASSERT_TRUE(certificates.Ensure().ok());
  ASSERT_NE(certificates.pair(), nullptr);
  EXPECT_TRUE(certificates.ready());
  EXPECT_TRUE(Verifies(*certificates.pair(), Bundle()));
  EXPECT_EQ(ReadCertificate(certificates.pair()->certificate_pem)->dns_names, options_.dns_names);
  EXPECT_EQ(Secret("tls.crt"), certificates.pair()->certificate_pem);
  const json webhook = api_.Find(kMutatingWebhooks, "", "headrace-webhook")["webhooks"][0];
  EXPECT_EQ(webhook["name"], "inject.headrace.dev");
  EXPECT_EQ(webhook["clientConfig"]["service"]["name"], "headrace-webhook");
}

TEST_F(WebhookCertificatesTest, WritesNothingWhenAllIsWell) {
  WebhookCertificates certificates(&client_, options_);
  ASSERT_TRUE(certificates.Ensure().ok());
  const auto before = certificates.pair();
  const size_t writes = api_.CountCalls("P");
  ASSERT_TRUE(certificates.Ensure().ok());
  EXPECT_EQ(api_.CountCalls("P"), writes);
  EXPECT_EQ(certificates.pair(), before);
}

TEST_F(WebhookCertificatesTest, ReplicasAgreeThroughTheSecret) {
  WebhookCertificates one(&client_, options_), two(&client_, options_);
  ASSERT_TRUE(one.Ensure().ok());
  ASSERT_TRUE(two.Ensure().ok());
  EXPECT_EQ(one.pair()->certificate_pem, two.pair()->certificate_pem);
  // Both find the Secret missing, one writes first.
  api_.Remove(kSecrets, "headrace", "certificate");
  api_.FailNext("GET /api/v1/namespaces/headrace/secrets", StatusReply(404, "not found"));
  WebhookCertificates three(&client_, options_);
  ASSERT_TRUE(one.Ensure().ok());
  api_.FailNext("GET /api/v1/namespaces/headrace/secrets", StatusReply(404, "not found"));
  ASSERT_TRUE(three.Ensure().ok());
  EXPECT_EQ(one.pair()->certificate_pem, three.pair()->certificate_pem);
}

TEST_F(WebhookCertificatesTest, RenewsTheServingCertificateAtTwoThirdsOfItsLife) {
  WebhookCertificates certificates(&client_, options_);
  ASSERT_TRUE(certificates.Ensure().ok());
  const auto first = certificates.pair();
  const std::string bundle = Bundle();
  now_ += 58h;  // valid since an hour ago, for 90 hours: due at 59
  ASSERT_TRUE(certificates.Ensure().ok());
  EXPECT_EQ(certificates.pair(), first);
  now_ += 1h;
  ASSERT_TRUE(certificates.Ensure().ok());
  EXPECT_NE(certificates.pair()->certificate_pem, first->certificate_pem);
  EXPECT_EQ(Bundle(), bundle) << "the authority is the same";
  EXPECT_TRUE(Verifies(*certificates.pair(), Bundle()));
}

TEST_F(WebhookCertificatesTest, WhileTheAuthorityRotatesBothAreTrusted) {
  WebhookCertificates one(&client_, options_), two(&client_, options_);
  ASSERT_TRUE(one.Ensure().ok());
  ASSERT_TRUE(two.Ensure().ok());
  const std::string old = Secret("ca.crt");
  now_ += 800h;
  ASSERT_TRUE(one.Ensure().ok());
  EXPECT_NE(Secret("ca.crt"), old);
  EXPECT_EQ(Bundle(), Secret("ca.crt") + old) << "two still serves the old certificate";
  EXPECT_TRUE(Verifies(*one.pair(), Secret("ca.crt")));
  EXPECT_TRUE(Verifies(*two.pair(), old));
}

TEST_F(WebhookCertificatesTest, ABundleThatSomebodyResetIsSetAgain) {
  WebhookCertificates certificates(&client_, options_);
  ASSERT_TRUE(certificates.Ensure().ok());
  const std::string bundle = Bundle();
  json configuration = api_.Find(kMutatingWebhooks, "", "headrace-webhook");
  configuration["webhooks"][0]["clientConfig"].erase("caBundle");
  api_.Put(kMutatingWebhooks, configuration);
  ASSERT_TRUE(certificates.Ensure().ok());
  EXPECT_EQ(Bundle(), bundle);
}

TEST_F(WebhookCertificatesTest, AnUnreadableSecretIsRepaired) {
  api_.Put(kSecrets, {{"metadata", {{"namespace", "headrace"}, {"name", "certificate"}, {"labels", {{"app", "x"}}}}},
                      {"data", {{"tls.crt", "!!!"}, {"ca.crt", EncodeBase64("no pem")}}}});
  WebhookCertificates certificates(&client_, options_);
  ASSERT_TRUE(certificates.Ensure().ok());
  EXPECT_TRUE(Verifies(*certificates.pair(), Bundle()));
  EXPECT_EQ(LabelOf(api_.Find(kSecrets, "headrace", "certificate"), "app"), "x");
}

TEST_F(WebhookCertificatesTest, ChangedNamesAreANewCertificate) {
  WebhookCertificates one(&client_, options_);
  ASSERT_TRUE(one.Ensure().ok());
  options_.dns_names = {"other.headrace.svc"};
  WebhookCertificates two(&client_, options_);
  ASSERT_TRUE(two.Ensure().ok());
  EXPECT_EQ(ReadCertificate(two.pair()->certificate_pem)->dns_names, options_.dns_names);
}

TEST_F(WebhookCertificatesTest, WithoutAConfigurationItServesButIsNotReady) {
  api_.Remove(kMutatingWebhooks, "", "headrace-webhook");
  WebhookCertificates certificates(&client_, options_);
  const Status status = certificates.Ensure();
  EXPECT_EQ(status.code(), Code::kNotFound) << status.ToString();
  EXPECT_NE(certificates.pair(), nullptr);
  EXPECT_FALSE(certificates.ready());
}

}  // namespace
}  // namespace headrace::kube
