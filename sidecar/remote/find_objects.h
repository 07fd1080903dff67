// Which objects paths and globs name.
#pragma once

#include <cstdint>
#include <memory>
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

// For each path, the objects that it names: itself, or what matches it as glob(3) has it (*, ? and [...], none of which
// matches a '/'). Names, sizes and versions come from listings, of folders and of ranges of keys at the same time; a
// path without a glob costs one request.
//
// Lists as far as objects are asked for, and a little further: the first of a hundred thousand are there after as many
// requests as for a thousand. Used by one thread at a time, which it blocks; but for SetHurry, by any.
class ObjectListing {
 public:
  // REQUIRES: RemotePathError has nothing against the paths. The services and `transfers` outlive it.
  ObjectListing(std::vector<WantedPath> paths, Transfers* transfers);
  // Ends what is under way.
  ~ObjectListing();

  // Waits until the path is known to name something; all paths are asked for at once. Errors, each its path's own, here
  // and of Next: NotFound if nothing matches, with what is there instead; Unavailable; InvalidArgument.
  Status AwaitFirst(size_t path);
  // The path's next objects: in lexical order, each once. Empty: there are no more.
  Result<std::vector<FoundObject>> Next(size_t path);
  // Whether somebody waits for what comes next, as from the beginning. Else there are few requests at a time: those
  // that read objects have the store's time.
  void SetHurry(bool hurry);

 private:
  class Finder;
  const std::unique_ptr<Finder> finder_;
};

}  // namespace headrace::side
