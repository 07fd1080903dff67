// The XML that S3 and its kin answer with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace headrace::side {

struct ListedObject {
  std::string key;
  uint64_t size = 0;
  std::string version;  // its ETag; "" if none is listed
};

// A reply to ListObjectsV2.
struct ListPage {
  std::vector<ListedObject> objects;
  std::vector<std::string> prefixes;  // with their last '/'
  bool truncated = false;
  std::string next_token;  // where truncated
};
// Corrupt if it is not such a reply.
Result<ListPage> ParseListPage(const std::string& xml);

// An error reply; empty where the text is none.
struct StoreError {
  std::string code;     // "NoSuchKey"
  std::string message;  // the server's words
  std::string region;   // where the bucket is, if it says so
};
StoreError ParseStoreError(const std::string& xml);

// The text of the first element of that name, at whatever depth; "" if there is none.
std::string XmlText(const std::string& xml, const char* name);

}  // namespace headrace::side
