// Which objects paths and globs name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "sidecar/remote/service.h"

namespace headrace::side {

struct FoundObject {
  std::string path;  // "s3://bucket/key", or the URL
  uint64_t size = 0;
  std::string version;  // as Object wants it
};

// What a path of spec.source.files.paths names, and the service that it is asked from.
struct WantedPath {
  std::string path;
  Service* service = nullptr;
};

// For each path, the objects that it names, in lexical order: itself, or what matches it as glob(3) has it (*, ? and
// [...], none of which matches a '/'). Names, sizes and versions come from listings, of folders and of ranges of keys
// at the same time; a path without a glob costs one request. All paths at once; blocks. Errors, each its path's own:
// NotFound if nothing matches, with what is there instead; Unavailable; InvalidArgument.
std::vector<Result<std::vector<FoundObject>>> FindObjects(const std::vector<WantedPath>& paths, Transfers* transfers);

}  // namespace headrace::side
