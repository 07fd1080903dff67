// The files that a source's paths name, found once at start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/input_spec.h"

namespace headrace::side {

class ObjectCache;
class ObjectStore;

struct FileTable {
  // What is known of a file that is not on a mounted volume.
  struct Remote {
    uint64_t size = 0;
    std::string version;
    std::string query;  // of a URL: '?' and what follows, which may be a secret and is left out of the path
  };

  std::vector<std::string> paths;      // in the order of spec.source.files.paths, each glob's matches in lexical order
  std::vector<Remote> remote;          // by the same index; empty if no path is remote
  std::shared_ptr<ObjectStore> store;  // that the remote ones are read from; also by their open files
  std::shared_ptr<ObjectCache> cache;  // where they are kept, if they are; also by their open files

  // Ends all reads of remote files, those to come included, with Cancelled. Any thread.
  void Stop() const;
};

// Expands the globs; relative ones against `data_dir`. Lists object stores, at the same time where there are several
// paths. Errors: NotFound naming the field, the path and what lies there instead, if one matches nothing; Unavailable
// if a directory or bucket cannot be read.
Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir);

}  // namespace headrace::side
