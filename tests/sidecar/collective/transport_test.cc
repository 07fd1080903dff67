// Who is let in over TCP.
#include "sidecar/collective/transport.h"

#include <gmock/gmock.h>

#include <fstream>

#include "common/net/certificates.h"
#include "common/spec/names.h"
#include "tests/sidecar/collective/agreements.h"

namespace headrace::side {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TlsTest : public AgreementTest {
 protected:
  static constexpr int64_t kRefusedAfterMs = 1000;

  // Keys for one loader, signed by `authority`, trusting `bundle`.
  std::string WriteKeys(const std::string& name, const Authority& authority, const std::string& bundle,
                        const std::string& dns_name = names::kPeerTlsName) {
    const auto now = std::chrono::system_clock::now();
    const TlsKeyPair pair = *IssuePeerCertificate(authority, {dns_name}, now - 1h, now + 1h);
    const std::string folder = folder_ + "/" + name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + names::kPeerAuthorityFile) << bundle;
    std::ofstream(folder + "/" + names::kPeerCertificateFile) << pair.certificate_pem;
    std::ofstream(folder + "/" + names::kPeerKeyFile) << pair.private_key_pem;
    return folder;
  }
  static Authority NewAuthority() {
    const auto now = std::chrono::system_clock::now();
    return *MakeAuthority("headrace-peers", now - 1h, now + 1h);
  }

  // Two workers, each with keys of its own. Those that are to meet have the time that they need.
  void Connect(const std::string& first_keys, const std::string& second_keys, int64_t timeout_ms = 20000) {
    AgreementOptions options = Options(0, 2);
    options.coordinator = "127.0.0.1:1";
    options.listen = "127.0.0.1:0";
    options.tls_dir = first_keys;
    options.start_timeout_ms = options.peer_timeout_ms = timeout_ms;
    first_ = Start(options);
    options.topology.worker_index = 1;
    options.coordinator = "127.0.0.1:" + std::to_string(first_->port());
    options.tls_dir = second_keys;
    second_ = Start(options);
  }
  void ExpectRefused() {
    ASSERT_TRUE(Eventually([&] { return !second_->failure().ok() && !first_->failure().ok(); }));
    EXPECT_THAT(second_->failure().message(), HasSubstr("cannot be joined"));
    EXPECT_THAT(first_->failure().message(), HasSubstr("worker 1 has not connected"));
  }

  std::unique_ptr<Agreement> first_;
  std::unique_ptr<Agreement> second_;
};

TEST_F(TlsTest, FiveWorkersOverTls) {
  const Authority authority = NewAuthority();
  AgreementOptions first = Options(0, 5);
  first.coordinator = "127.0.0.1:1";  // the others' affair; we listen elsewhere
  first.listen = "127.0.0.1:0";
  first.tls_dir = WriteKeys("0", authority, authority.certificate_pem);
  std::vector<std::unique_ptr<Agreement>> workers;
  workers.push_back(Start(first));
  std::vector<Agreement*> all = {workers[0].get()};
  for (int64_t w = 1; w < 5; ++w) {
    AgreementOptions options = Options(w, 5);
    options.coordinator = "localhost:" + std::to_string(workers[0]->port());
    options.tls_dir = WriteKeys(std::to_string(w), authority, authority.certificate_pem);
    workers.push_back(Start(options));
    all.push_back(workers.back().get());
  }
  ExpectSameEnds(all, 50, 3);
}

TEST_F(TlsTest, RotatedKeysGoTogetherThroughTheBundle) {
  const Authority before = NewAuthority();
  const Authority now = NewAuthority();
  const std::string bundle = now.certificate_pem + before.certificate_pem;
  Connect(WriteKeys("0", before, bundle), WriteKeys("1", now, bundle));
  ExpectSameEnds({first_.get(), second_.get()}, 5, 1);
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  const Authority one = NewAuthority();
  const Authority two = NewAuthority();
  Connect(WriteKeys("0", one, one.certificate_pem), WriteKeys("1", two, one.certificate_pem + two.certificate_pem),
          kRefusedAfterMs);
  ExpectRefused();
}

TEST_F(TlsTest, ACoordinatorOfAnotherAuthorityIsRefused) {
  const Authority one = NewAuthority();
  const Authority two = NewAuthority();
  Connect(WriteKeys("0", one, one.certificate_pem + two.certificate_pem), WriteKeys("1", two, two.certificate_pem),
          kRefusedAfterMs);
  ExpectRefused();
}

TEST_F(TlsTest, ACertificateForAnotherNameIsRefused) {
  const Authority authority = NewAuthority();
  Connect(WriteKeys("0", authority, authority.certificate_pem),
          WriteKeys("1", authority, authority.certificate_pem, "webhook.headrace.dev"), kRefusedAfterMs);
  ExpectRefused();
}

TEST_F(TlsTest, KeysAreReadAtEachConnection) {
  const Authority authority = NewAuthority();
  const std::string first = WriteKeys("0", authority, authority.certificate_pem);
  Connect(first, folder_ + "/1");
  WriteKeys("1", authority, authority.certificate_pem);  // mounted a little late
  ExpectSameEnds({first_.get(), second_.get()}, 2, 1);
}

}  // namespace
}  // namespace headrace::side
