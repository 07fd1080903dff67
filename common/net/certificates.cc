#include "common/net/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace headrace {
namespace {

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* object) const { Free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO, BIO_free_all>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES, GENERAL_NAMES_free>>;

// What OpenSSL complains about; empties its queue.
Status OpensslError(Code code, const std::string& what) {
  char text[256] = "no detail";
  if (const unsigned long error = ERR_get_error()) ERR_error_string_n(error, text, sizeof text);
  ERR_clear_error();
  return {code, what + ": " + text};
}

Bio Reader(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Certificate ParseCertificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
}

Key ParseKey(const std::string& pem) {
  return Key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, nullptr, nullptr));
}

bool SetTime(ASN1_TIME* field, CertificateTime time) {
  return ASN1_TIME_set(field, std::chrono::system_clock::to_time_t(time)) != nullptr;
}

CertificateTime TimeOf(const ASN1_TIME* field) {
  std::tm utc{};
  ASN1_TIME_to_tm(field, &utc);
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

bool Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION, X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A certificate with everything but issuer, extensions and signature.
Certificate Draft(EVP_PKEY* key, const std::string& common_name, CertificateTime not_before,
                  CertificateTime not_after) {
  Certificate certificate(X509_new());
  unsigned char serial[16];
  if (!certificate || RAND_bytes(serial, sizeof serial) != 1) return nullptr;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, and of constant length
  std::unique_ptr<BIGNUM, Freer<BIGNUM, BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const auto* name = reinterpret_cast<const unsigned char*>(common_name.c_str());
  const bool good = number && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) &&
                    SetTime(X509_getm_notBefore(certificate.get()), not_before) &&
                    SetTime(X509_getm_notAfter(certificate.get()), not_after) &&
                    X509_set_pubkey(certificate.get(), key) == 1 &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1;
  return good ? std::move(certificate) : nullptr;
}

std::string PemOf(X509* certificate) {
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return Text(out.get());
}

std::string PemOf(EVP_PKEY* key) {
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return Text(out.get());
}

Result<TlsKeyPair> Issue(const Authority& authority, const std::vector<std::string>& dns_names, const char* usage,
                         CertificateTime not_before, CertificateTime not_after) {
  const Certificate issuer = ParseCertificate(authority.certificate_pem);
  const Key issuer_key = ParseKey(authority.private_key_pem);
  if (!issuer || !issuer_key || X509_check_private_key(issuer.get(), issuer_key.get()) != 1)
    return OpensslError(Code::kInvalidArgument, "reading the certificate authority");
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError(Code::kInternal, "making a key");
  std::string names;
  for (const std::string& name : dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  // A common name has at most 64 characters, and nobody reads it where there are DNS names.
  const Certificate certificate = Draft(key.get(), dns_names.front().substr(0, 64), not_before, not_after);
  X509* raw = certificate.get();
  if (!raw || X509_set_issuer_name(raw, X509_get_subject_name(issuer.get())) != 1 ||
      !Extend(raw, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !Extend(raw, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !Extend(raw, issuer.get(), NID_ext_key_usage, usage) ||
      !Extend(raw, issuer.get(), NID_authority_key_identifier, "keyid") ||
      !Extend(raw, issuer.get(), NID_subject_alt_name, names) || X509_sign(raw, issuer_key.get(), EVP_sha256()) == 0)
    return OpensslError(Code::kInternal, "making a certificate for " + names);
  return TlsKeyPair{PemOf(raw), PemOf(key.get())};
}

}  // namespace

Result<Authority> MakeAuthority(const std::string& common_name, CertificateTime not_before, CertificateTime not_after) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError(Code::kInternal, "making a key");
  const Certificate certificate = Draft(key.get(), common_name, not_before, not_after);
  X509* raw = certificate.get();
  if (!raw || X509_set_issuer_name(raw, X509_get_subject_name(raw)) != 1 ||
      !Extend(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !Extend(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !Extend(raw, raw, NID_subject_key_identifier, "hash") || X509_sign(raw, key.get(), EVP_sha256()) == 0)
    return OpensslError(Code::kInternal, "making the authority " + common_name);
  return Authority{PemOf(raw), PemOf(key.get())};
}

Result<TlsKeyPair> IssueServingCertificate(const Authority& authority, const std::vector<std::string>& dns_names,
                                           CertificateTime not_before, CertificateTime not_after) {
  return Issue(authority, dns_names, "serverAuth", not_before, not_after);
}

Result<TlsKeyPair> IssuePeerCertificate(const Authority& authority, const std::vector<std::string>& dns_names,
                                        CertificateTime not_before, CertificateTime not_after) {
  return Issue(authority, dns_names, "serverAuth,clientAuth", not_before, not_after);
}

Result<CertificateInfo> ReadCertificate(const std::string& certificate_pem) {
  const Certificate certificate = ParseCertificate(certificate_pem);
  if (!certificate) return OpensslError(Code::kInvalidArgument, "reading a certificate");
  CertificateInfo info;
  info.not_before = TimeOf(X509_get0_notBefore(certificate.get()));
  info.not_after = TimeOf(X509_get0_notAfter(certificate.get()));
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    info.dns_names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                                static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  return info;
}

bool Verifies(const TlsKeyPair& pair, const std::string& authority_pem) {
  const Certificate certificate = ParseCertificate(pair.certificate_pem);
  const Certificate authority = ParseCertificate(authority_pem);
  const Key key = ParseKey(pair.private_key_pem);
  const bool good = certificate && authority && key && X509_check_private_key(certificate.get(), key.get()) == 1 &&
                    X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace headrace
