// Makes and reads the X.509 certificates that our own servers need: EC P-256, SHA-256. Thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/http_server.h"

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
// Of the first certificate in the PEM. Errors: InvalidArgument.
Result<CertificateInfo> ReadCertificate(const std::string& certificate_pem);

// Whether `pair` is a certificate with its own key, signed by `authority_pem`.
bool Verifies(const TlsKeyPair& pair, const std::string& authority_pem);

}  // namespace headrace
