// Makes and reads the X.509 certificates that our own servers need: EC P-256, SHA-256. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/net/http_server.h"

struct x509_st;  // OpenSSL's X509

namespace headrace {

using CertificateTime = std::chrono::system_clock::time_point;

// A certificate authority with its key.
struct Authority {
  std::string certificate_pem;
  std::string private_key_pem;
};

// Self-signed, able to sign leaves only.
Result<Authority> MakeAuthority(const std::string& common_name, CertificateTime not_before, CertificateTime not_after);

// A leaf for TLS servers under these DNS names. REQUIRES: at least one name.
// Errors: InvalidArgument if the authority's PEM cannot be read or its key is not the certificate's.
Result<TlsKeyPair> IssueServingCertificate(const Authority& authority, const std::vector<std::string>& dns_names,
                                           CertificateTime not_before, CertificateTime not_after);

// The same for a peer that is client and server by turns.
Result<TlsKeyPair> IssuePeerCertificate(const Authority& authority, const std::vector<std::string>& dns_names,
                                        CertificateTime not_before, CertificateTime not_after);

struct CertificateInfo {
  CertificateTime not_before;
  CertificateTime not_after;
  std::vector<std::string> dns_names;
};
// A certificate, for those who ask several things of it: reading it takes most of the time.
class Certificate {
 public:
  // The first in the PEM. Errors: InvalidArgument.
  static Result<Certificate> Read(const std::string& pem);

  CertificateInfo Info() const;
  bool HasKey(const std::string& private_key_pem) const;
  bool IsSignedBy(const Certificate& authority) const;

 private:
  explicit Certificate(std::shared_ptr<const x509_st> x509) : x509_(std::move(x509)) {}
  std::shared_ptr<const x509_st> x509_;  // shared: it never changes
};

// Of the first certificate in the PEM. Errors: InvalidArgument.
Result<CertificateInfo> ReadCertificate(const std::string& certificate_pem);

// Whether `pair` is a certificate with its own key, signed by `authority_pem`.
bool Verifies(const TlsKeyPair& pair, const std::string& authority_pem);

}  // namespace headrace
