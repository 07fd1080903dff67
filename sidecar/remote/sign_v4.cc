// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
#include "sidecar/remote/sign_v4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "sidecar/remote/url.h"

namespace headrace::side {
namespace {

std::string Hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string Sha256(const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string Hmac(const std::string& key, const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

std::string Time(const char* format, std::time_t now) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &utc)};
}

}  // namespace

void SignV4(const AwsKeys& keys, const std::string& region, const std::string& service, std::time_t now,
            Request* request) {
  const UrlParts url = SplitUrl(request->url);
  const std::string date = Time("%Y%m%d", now);
  const std::string time = Time("%Y%m%dT%H%M%SZ", now);
  const std::string payload = Hex(Sha256(request->body));
  request->headers.push_back("x-amz-date: " + time);
  request->headers.push_back("x-amz-content-sha256: " + payload);
  if (!keys.session_token.empty()) request->headers.push_back("x-amz-security-token: " + keys.session_token);

  std::map<std::string, std::string> headers = {{"host", url.host}};
  for (const std::string& header : request->headers) {
    const size_t colon = header.find(": ");
    std::string name = header.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    headers[name] = header.substr(colon + 2);
  }
  std::string signed_names;
  std::string canonical = request->method + "\n" + url.path + "\n" + url.query + "\n";
  for (const auto& [name, value] : headers) {
    signed_names += (signed_names.empty() ? "" : ";") + name;
    canonical += name + ":" + value + "\n";
  }
  canonical += "\n" + signed_names + "\n" + payload;

  const std::string scope = date + "/" + region + "/" + service + "/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + Hex(Sha256(canonical));
  const std::string key = Hmac(Hmac(Hmac(Hmac("AWS4" + keys.secret_key, date), region), service), "aws4_request");
  request->headers.push_back("Authorization: AWS4-HMAC-SHA256 Credential=" + keys.access_key + "/" + scope +
                             ", SignedHeaders=" + signed_names + ", Signature=" + Hex(Hmac(key, to_sign)));
}

}  // namespace headrace::side
