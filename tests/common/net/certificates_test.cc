#include "common/net/certificates.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace headrace {
namespace {

using namespace std::chrono_literals;

const CertificateTime kStart = std::chrono::system_clock::from_time_t(1'800'000'000);

TEST(CertificatesTest, IssuesWhatReadsBack) {
  const Result<Authority> authority = MakeAuthority("headrace", kStart, kStart + 1000h);
  ASSERT_TRUE(authority.ok()) << authority.status().ToString();
  const std::vector<std::string> names = {
      "webhook.headrace-system.svc",
      "webhook.a-namespace-with-a-name-that-is-as-long-as-kubernetes-allows-xx.svc.cluster.local"};
  const Result<TlsKeyPair> pair = IssueServingCertificate(*authority, names, kStart, kStart + 10h);
  ASSERT_TRUE(pair.ok()) << pair.status().ToString();
  const Result<CertificateInfo> info = ReadCertificate(pair->certificate_pem);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->dns_names, names);
  EXPECT_EQ(info->not_before, kStart);
  EXPECT_EQ(info->not_after, kStart + 10h);
  EXPECT_EQ(ReadCertificate(authority->certificate_pem)->not_after, kStart + 1000h);
  EXPECT_TRUE(Verifies(*pair, authority->certificate_pem));
}

TEST(CertificatesTest, OnlyAPeersCertificateServesAClient) {
  const auto now = std::chrono::system_clock::now();
  const Authority authority = *MakeAuthority("headrace", now - 1h, now + 1h);
  const std::string base = ::testing::TempDir() + "headrace-certificates-test-peer";
  std::ofstream(base + "-ca.pem") << authority.certificate_pem;
  const auto verify = [&](const TlsKeyPair& pair, const std::string& purpose) {
    std::ofstream(base + "-leaf.pem") << pair.certificate_pem;
    const std::string command = "openssl verify -x509_strict -purpose " + purpose + " -verify_hostname a.b -CAfile " +
                                base + "-ca.pem " + base + "-leaf.pem > /dev/null 2>&1";
    return std::system(command.c_str()) == 0;
  };
  const TlsKeyPair peer = *IssuePeerCertificate(authority, {"a.b"}, now - 1h, now + 1h);
  EXPECT_TRUE(verify(peer, "sslserver"));
  EXPECT_TRUE(verify(peer, "sslclient"));
  const TlsKeyPair server = *IssueServingCertificate(authority, {"a.b"}, now - 1h, now + 1h);
  EXPECT_TRUE(verify(server, "sslserver"));
  EXPECT_FALSE(verify(server, "sslclient"));
  std::remove((base + "-ca.pem").c_str());
  std::remove((base + "-leaf.pem").c_str());
}

TEST(CertificatesTest, NothingElseVerifies) {
  const Authority one = *MakeAuthority("headrace", kStart, kStart + 1h);
  const Authority two = *MakeAuthority("headrace", kStart, kStart + 1h);
  const TlsKeyPair a = *IssueServingCertificate(one, {"a"}, kStart, kStart + 1h);
  const TlsKeyPair b = *IssueServingCertificate(one, {"a"}, kStart, kStart + 1h);
  EXPECT_FALSE(Verifies(a, two.certificate_pem)) << "same name, another key";
  EXPECT_FALSE(Verifies({a.certificate_pem, b.private_key_pem}, one.certificate_pem)) << "another's key";
  EXPECT_FALSE(Verifies({"", ""}, one.certificate_pem));
  EXPECT_FALSE(Verifies(a, "no pem"));
}

TEST(CertificatesTest, AKeyIsItsOwnCertificatesAlone) {
  const Authority one = *MakeAuthority("headrace", kStart, kStart + 1h);
  const Authority two = *MakeAuthority("headrace", kStart, kStart + 1h);
  const Certificate certificate = *Certificate::Read(one.certificate_pem);
  EXPECT_TRUE(certificate.HasKey(one.private_key_pem));
  EXPECT_FALSE(certificate.HasKey(two.private_key_pem));
  EXPECT_FALSE(certificate.HasKey(""));
  EXPECT_TRUE(certificate.IsSignedBy(certificate));
  EXPECT_FALSE(certificate.IsSignedBy(*Certificate::Read(two.certificate_pem)));
}

class KeyFileTest : public ::testing::Test {
 protected:
  ~KeyFileTest() override {
    for (const std::string& path : {base_ + "-a", base_ + "-b"}) std::remove(path.c_str());
  }
  // Runs openssl; @a and @b stand for two files.
  void Openssl(std::string command) {
    for (size_t at = 0; (at = command.find('@', at)) != std::string::npos; at += base_.size()) {
      command.replace(at, 1, base_ + "-");
    }
    ASSERT_EQ(std::system(("openssl " + command + " > /dev/null 2>&1").c_str()), 0) << command;
  }
  std::string Text(const char* which) const {
    std::ifstream in(base_ + "-" + which);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::string base_ = ::testing::TempDir() + "headrace-certificates-test-key";
};

TEST_F(KeyFileTest, KeysAreWrittenAsOpensslWritesThem) {
  for (int i = 0; i < 20; ++i) {  // numbers and points begin with whatever byte they do
    const Authority authority = *MakeAuthority("headrace", kStart, kStart + 1h);
    std::ofstream(base_ + "-a") << authority.private_key_pem;
    Openssl("pkey -in @a -check -noout");
    Openssl("pkey -in @a -out @b");
    EXPECT_EQ(authority.private_key_pem, Text("b"));
    std::ofstream(base_ + "-a") << authority.certificate_pem;
    Openssl("x509 -in @a -out @b");
    EXPECT_EQ(authority.certificate_pem, Text("b"));
  }
}

TEST_F(KeyFileTest, KeysOfOtherKindsAreRead) {
  for (const char* kind : {"rsa:2048", "ec -pkeyopt ec_paramgen_curve:P-384", "ed25519"}) {
    Openssl(std::string("req -x509 -nodes -subj /CN=other -days 2 -keyout @a -out @b -newkey ") + kind);
    EXPECT_TRUE(Certificate::Read(Text("b"))->HasKey(Text("a"))) << kind;
    const auto now = std::chrono::system_clock::now();
    const Result<TlsKeyPair> pair = IssueServingCertificate({Text("b"), Text("a")}, {"a"}, now, now + 1h);
    if (std::string(kind) == "ed25519") continue;  // which signs no digests
    ASSERT_TRUE(pair.ok()) << kind << pair.status().ToString();
    EXPECT_TRUE(Verifies(*pair, Text("b"))) << kind;
  }
}

TEST(CertificatesTest, UnreadablePemIsAnError) {
  EXPECT_EQ(ReadCertificate("nonsense").status().code(), Code::kInvalidArgument);
  const Authority one = *MakeAuthority("one", kStart, kStart + 1h);
  const Authority two = *MakeAuthority("two", kStart, kStart + 1h);
  EXPECT_EQ(
      IssueServingCertificate({one.certificate_pem, two.private_key_pem}, {"a"}, kStart, kStart + 1h).status().code(),
      Code::kInvalidArgument);
}

// The openssl command, another reader of the same rules, accepts the chain for a server of that name.
TEST(CertificatesTest, OpensslVerifiesTheChain) {
  const auto now = std::chrono::system_clock::now();
  const Authority authority = *MakeAuthority("headrace", now - 1h, now + 1h);
  const TlsKeyPair pair = *IssueServingCertificate(authority, {"webhook.ns.svc"}, now - 1h, now + 1h);
  const std::string base = ::testing::TempDir() + "headrace-certificates-test";
  std::ofstream(base + "-ca.pem") << authority.certificate_pem;
  std::ofstream(base + "-leaf.pem") << pair.certificate_pem;
  const auto verify = [&](const std::string& host) {
    const std::string command = "openssl verify -x509_strict -purpose sslserver -verify_hostname " + host +
                                " -CAfile " + base + "-ca.pem " + base + "-leaf.pem > /dev/null 2>&1";
    return std::system(command.c_str()) == 0;
  };
  EXPECT_TRUE(verify("webhook.ns.svc"));
  EXPECT_FALSE(verify("other.ns.svc"));
  std::remove((base + "-ca.pem").c_str());
  std::remove((base + "-leaf.pem").c_str());
}

}  // namespace
}  // namespace headrace
