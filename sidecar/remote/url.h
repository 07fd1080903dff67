// Names of objects, and the percent-encoding of URLs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace headrace::side {

// Every byte but A-Z a-z 0-9 - . _ ~ as %XX; '/' too, unless `keep_slashes`.
std::string PercentEncode(std::string_view text, bool keep_slashes = false);
// %XX as the byte that it stands for; anything else as it is.
std::string PercentDecode(std::string_view text);

// "a=1&b=x%20y", by name, as a signature wants it. Names and values are given plain.
std::string QueryOf(std::vector<std::pair<std::string, std::string>> fields);

// "https://a.example:9000/a/b?c" in parts; `path` and `query` stay encoded. REQUIRES: text has "://".
struct UrlParts {
  std::string scheme;
  std::string host;  // with the port, if one is given
  std::string path;  // "/a/b"; "/" at least
  std::string query;
  std::string origin() const { return scheme + "://" + host; }
  std::string host_name() const;  // without the port
};
UrlParts SplitUrl(std::string_view text);

// "s3://bucket/some/key".
struct ObjectName {
  std::string scheme;
  std::string bucket;
  std::string key;
};
// REQUIRES: RemotePathError (common/spec/remote_path.h) has nothing against it.
ObjectName SplitObjectPath(std::string_view path);

// The path as messages show it: a URL's query, which may be a secret, is left out.
std::string ShownPath(const std::string& path);

}  // namespace headrace::side
