// The files that a source's paths name, found once.
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

// The files of object stores are listed on a thread of the table's own while the first are read: at once, so that
// workers which start at the same time find the same. Any thread. Copies are the same table.
class FileTable {
 public:
  // What is known of a file that is not on a mounted volume.
  struct Remote {
    uint64_t size = 0;
    std::string version;
    std::string query;  // of a URL: '?' and what follows, which may be a secret and is left out of the path
  };

  explicit FileTable(std::vector<std::string> volume_paths = {});

  // Whether there is a file of this index: they are in the order of spec.source.files.paths, each glob's matches in
  // lexical order. Waits until it is known. Errors: Unavailable if what is left of a bucket cannot be listed.
  Result<bool> Has(size_t file) const;
  // REQUIRES, here and below: there is such a file.
  const std::string& path(size_t file) const;
  const Remote* remote(size_t file) const;  // null: it is on a mounted volume

  bool any_remote() const { return store() != nullptr; }
  const std::shared_ptr<ObjectStore>& store() const;  // that the remote ones are read from; also by their open files
  const std::shared_ptr<ObjectCache>& cache() const;  // where they are kept, if they are; also by their open files

  // Ends all reads of remote files, those to come included, with Cancelled. Any thread.
  void Stop() const;

 private:
  friend Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir);
  struct Listed;
  std::shared_ptr<Listed> listed_;
};

// Expands the globs; relative ones against `data_dir`. Of object stores, each path is known to name something when this
// returns, and is listed on. Errors: NotFound naming the field, the path and what lies there instead, if one
// matches nothing; Unavailable if a directory or bucket cannot be read.
Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir);

}  // namespace headrace::side
