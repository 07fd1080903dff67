#include "common/net/certificates.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstring>
#include <memory>

namespace headrace {
namespace {

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* object) const { Free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using X509Owner = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO, BIO_free_all>>;
using Context = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using Pkcs8 = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Freer<PKCS8_PRIV_KEY_INFO, PKCS8_PRIV_KEY_INFO_free>>;
using Number = std::unique_ptr<BIGNUM, Freer<BIGNUM, BN_clear_free>>;
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

X509Owner ParseCertificate(const std::string& pem) {
  return X509Owner(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
}

// OpenSSL 3.0 takes a fifth of a millisecond to choose an encoder or decoder for a key, and four of these made the half
// of a new input's reconciliation. So keys of our own kind, P-256, are put together here. What PKCS #8 holds of them is
// (RFC 5915, without parameters):
//   30 6b  02 01 01  04 20 NUMBER  a1 44 03 42 00 POINT
constexpr unsigned char kBeforeNumber[] = {0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20};
constexpr unsigned char kBeforePoint[] = {0xa1, 0x44, 0x03, 0x42, 0x00};
constexpr size_t kNumberBytes = 32, kPointBytes = 65;
constexpr size_t kNumberAt = sizeof kBeforeNumber;
constexpr size_t kPointAt = kNumberAt + kNumberBytes + sizeof kBeforePoint;
constexpr size_t kKeyBytes = kPointAt + kPointBytes;

// The public key, uncompressed; empty if it is of another kind.
std::string PointOf(const EVP_PKEY* key) {
  unsigned char point[kPointBytes];
  size_t size = 0;
  const int got = EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &size);
  return got == 1 && size == kPointBytes ? std::string(reinterpret_cast<char*>(point), size) : std::string();
}

bool SetPublicKey(X509* certificate, const EVP_PKEY* key) {
  const std::string point = PointOf(key);
  auto* bits = static_cast<unsigned char*>(OPENSSL_memdup(point.data(), point.size()));
  if (point.empty() || bits == nullptr) return false;
  if (X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(certificate), OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
                             OBJ_nid2obj(NID_X9_62_prime256v1), bits, kPointBytes) == 1) {
    return true;  // `bits` are the certificate's
  }
  OPENSSL_free(bits);
  return false;
}

// Null if it is of another kind.
Key P256Of(const PKCS8_PRIV_KEY_INFO* info) {
  const ASN1_OBJECT* kind = nullptr;
  const unsigned char* bytes = nullptr;
  int size = 0, type = 0;
  const X509_ALGOR* algorithm = nullptr;
  const void* curve = nullptr;
  if (PKCS8_pkey_get0(&kind, &bytes, &size, &algorithm, info) != 1) return nullptr;
  X509_ALGOR_get0(nullptr, &type, &curve, algorithm);
  if (OBJ_obj2nid(kind) != NID_X9_62_id_ecPublicKey || type != V_ASN1_OBJECT ||
      OBJ_obj2nid(static_cast<const ASN1_OBJECT*>(curve)) != NID_X9_62_prime256v1 || size != int{kKeyBytes} ||
      std::memcmp(bytes, kBeforeNumber, sizeof kBeforeNumber) != 0 ||
      std::memcmp(bytes + kNumberAt + kNumberBytes, kBeforePoint, sizeof kBeforePoint) != 0) {
    return nullptr;
  }
  const Number number(BN_bin2bn(bytes + kNumberAt, kNumberBytes, nullptr));
  unsigned char native[kNumberBytes];
  unsigned char point[kPointBytes];
  std::memcpy(point, bytes + kPointAt, kPointBytes);
  char group[] = SN_X9_62_prime256v1;
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
                             OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point),
                             OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, native, sizeof native),
                             OSSL_PARAM_construct_end()};
  const Context context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (number && context && BN_bn2nativepad(number.get(), native, sizeof native) == int{sizeof native} &&
      EVP_PKEY_fromdata_init(context.get()) == 1) {
    EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters);
  }
  OPENSSL_cleanse(native, sizeof native);
  return Key(key);
}

Key ParseKey(const std::string& pem) {
  const Pkcs8 info(PEM_read_bio_PKCS8_PRIV_KEY_INFO(Reader(pem).get(), nullptr, nullptr, nullptr));
  if (Key key = info ? P256Of(info.get()) : nullptr) return key;
  ERR_clear_error();
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
X509Owner Draft(EVP_PKEY* key, const std::string& common_name, CertificateTime not_before, CertificateTime not_after) {
  X509Owner certificate(X509_new());
  unsigned char serial[16];
  if (!certificate || RAND_bytes(serial, sizeof serial) != 1) return nullptr;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, and of constant length
  std::unique_ptr<BIGNUM, Freer<BIGNUM, BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const auto* name = reinterpret_cast<const unsigned char*>(common_name.c_str());
  const bool good = number && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) &&
                    SetTime(X509_getm_notBefore(certificate.get()), not_before) &&
                    SetTime(X509_getm_notAfter(certificate.get()), not_after) && SetPublicKey(certificate.get(), key) &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1;
  return good ? std::move(certificate) : nullptr;
}

std::string PemOf(X509* certificate) {
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return Text(out.get());
}

// Empty if it cannot be written.
std::string PemOf(const EVP_PKEY* key) {
  BIGNUM* read = nullptr;
  EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &read);
  const Number number(read);
  const std::string point = PointOf(key);
  const Pkcs8 info(PKCS8_PRIV_KEY_INFO_new());
  auto* bytes = static_cast<unsigned char*>(OPENSSL_malloc(kKeyBytes));
  if (!number || point.empty() || !info || bytes == nullptr) return {};
  std::memcpy(bytes, kBeforeNumber, sizeof kBeforeNumber);
  BN_bn2binpad(number.get(), bytes + kNumberAt, kNumberBytes);
  std::memcpy(bytes + kNumberAt + kNumberBytes, kBeforePoint, sizeof kBeforePoint);
  std::memcpy(bytes + kPointAt, point.data(), kPointBytes);
  PKCS8_pkey_set0(info.get(), OBJ_nid2obj(NID_X9_62_id_ecPublicKey), 0, V_ASN1_OBJECT,
                  OBJ_nid2obj(NID_X9_62_prime256v1), bytes, kKeyBytes);  // which clears and frees them
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8_PRIV_KEY_INFO(out.get(), info.get());
  return Text(out.get());
}

Result<TlsKeyPair> Issue(const Authority& authority, const std::vector<std::string>& dns_names, const char* usage,
                         CertificateTime not_before, CertificateTime not_after) {
  const X509Owner issuer = ParseCertificate(authority.certificate_pem);
  const Key issuer_key = ParseKey(authority.private_key_pem);
  if (!issuer || !issuer_key || X509_check_private_key(issuer.get(), issuer_key.get()) != 1)
    return OpensslError(Code::kInvalidArgument, "reading the certificate authority");
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError(Code::kInternal, "making a key");
  std::string names;
  for (const std::string& name : dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  // A common name has at most 64 characters, and nobody reads it where there are DNS names.
  const X509Owner certificate = Draft(key.get(), dns_names.front().substr(0, 64), not_before, not_after);
  X509* raw = certificate.get();
  if (!raw || X509_set_issuer_name(raw, X509_get_subject_name(issuer.get())) != 1 ||
      !Extend(raw, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !Extend(raw, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !Extend(raw, issuer.get(), NID_ext_key_usage, usage) ||
      !Extend(raw, issuer.get(), NID_authority_key_identifier, "keyid") ||
      !Extend(raw, issuer.get(), NID_subject_alt_name, names) || X509_sign(raw, issuer_key.get(), EVP_sha256()) == 0)
    return OpensslError(Code::kInternal, "making a certificate for " + names);
  TlsKeyPair pair{PemOf(raw), PemOf(key.get())};
  if (pair.private_key_pem.empty()) return OpensslError(Code::kInternal, "writing a key for " + names);
  return pair;
}

}  // namespace

Result<Authority> MakeAuthority(const std::string& common_name, CertificateTime not_before, CertificateTime not_after) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError(Code::kInternal, "making a key");
  const X509Owner certificate = Draft(key.get(), common_name, not_before, not_after);
  X509* raw = certificate.get();
  if (!raw || X509_set_issuer_name(raw, X509_get_subject_name(raw)) != 1 ||
      !Extend(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !Extend(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !Extend(raw, raw, NID_subject_key_identifier, "hash") || X509_sign(raw, key.get(), EVP_sha256()) == 0)
    return OpensslError(Code::kInternal, "making the authority " + common_name);
  Authority authority{PemOf(raw), PemOf(key.get())};
  if (authority.private_key_pem.empty()) return OpensslError(Code::kInternal, "writing the key of " + common_name);
  return authority;
}

Result<TlsKeyPair> IssueServingCertificate(const Authority& authority, const std::vector<std::string>& dns_names,
                                           CertificateTime not_before, CertificateTime not_after) {
  return Issue(authority, dns_names, "serverAuth", not_before, not_after);
}

Result<TlsKeyPair> IssuePeerCertificate(const Authority& authority, const std::vector<std::string>& dns_names,
                                        CertificateTime not_before, CertificateTime not_after) {
  return Issue(authority, dns_names, "serverAuth,clientAuth", not_before, not_after);
}

Result<Certificate> Certificate::Read(const std::string& pem) {
  X509Owner read = ParseCertificate(pem);
  if (!read) return OpensslError(Code::kInvalidArgument, "reading a certificate");
  return Certificate(std::shared_ptr<const X509>(std::move(read)));
}

CertificateInfo Certificate::Info() const {
  CertificateInfo info;
  info.not_before = TimeOf(X509_get0_notBefore(x509_.get()));
  info.not_after = TimeOf(X509_get0_notAfter(x509_.get()));
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x509_.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    info.dns_names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                                static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  return info;
}

bool Certificate::HasKey(const std::string& private_key_pem) const {
  const Key key = ParseKey(private_key_pem);
  const bool has = key && X509_check_private_key(x509_.get(), key.get()) == 1;
  ERR_clear_error();
  return has;
}

bool Certificate::IsSignedBy(const Certificate& authority) const {
  // Verifying changes nothing but what OpenSSL remembers of the certificate, under a lock of its own.
  const bool is = X509_verify(const_cast<X509*>(x509_.get()), X509_get0_pubkey(authority.x509_.get())) == 1;
  ERR_clear_error();
  return is;
}

Result<CertificateInfo> ReadCertificate(const std::string& certificate_pem) {
  ASSIGN_OR_RETURN(const Certificate certificate, Certificate::Read(certificate_pem));
  return certificate.Info();
}

bool Verifies(const TlsKeyPair& pair, const std::string& authority_pem) {
  const Result<Certificate> certificate = Certificate::Read(pair.certificate_pem);
  const Result<Certificate> authority = Certificate::Read(authority_pem);
  return certificate.ok() && authority.ok() && certificate->HasKey(pair.private_key_pem) &&
         certificate->IsSignedBy(*authority);
}

}  // namespace headrace
