#include "sidecar/remote/url.h"

#include <algorithm>
#include <cctype>

namespace headrace::side {
namespace {

constexpr char kHex[] = "0123456789ABCDEF";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string PercentEncode(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~');
    if (plain || (c == '/' && keep_slashes)) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kHex[byte >> 4];
      encoded += kHex[byte & 15];
    }
  }
  return encoded;
}

std::string PercentDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high >= 0 ? HexValue(text[i + 2]) : -1;
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string QueryOf(std::vector<std::pair<std::string, std::string>> fields) {
  std::sort(fields.begin(), fields.end());
  std::string query;
  for (const auto& [name, value] : fields) {
    query += (query.empty() ? "" : "&") + PercentEncode(name) + "=" + PercentEncode(value);
  }
  return query;
}

UrlParts SplitUrl(std::string_view text) {
  UrlParts parts;
  const size_t scheme = text.find("://");
  parts.scheme = text.substr(0, scheme);
  text.remove_prefix(scheme + 3);
  const size_t host = text.find_first_of("/?");
  parts.host = text.substr(0, host);
  text.remove_prefix(std::min(host, text.size()));
  const size_t path = text.find('?');
  parts.path = text.substr(0, path);
  if (parts.path.empty()) parts.path = "/";
  if (path != std::string_view::npos) parts.query = text.substr(path + 1);
  return parts;
}

std::string UrlParts::host_name() const {
  const size_t address_end = host.find(']');  // of an IPv6 address, which holds colons
  return host.substr(0, host.find(':', address_end == std::string::npos ? 0 : address_end));
}

ObjectName SplitObjectPath(std::string_view path) {
  ObjectName name;
  const size_t scheme = path.find("://");
  name.scheme = path.substr(0, scheme);
  path.remove_prefix(scheme + 3);
  const size_t bucket = path.find('/');
  name.bucket = path.substr(0, bucket);
  name.key = path.substr(bucket + 1);
  return name;
}

std::string ShownPath(const std::string& path) {
  return path.rfind("http", 0) == 0 ? path.substr(0, path.find('?')) : path;
}

}  // namespace headrace::side
