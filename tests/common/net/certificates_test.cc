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
