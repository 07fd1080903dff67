#include "sidecar/source/file_table.h"

#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "common/base/log.h"
#include "common/spec/names.h"
#include "common/spec/remote_path.h"
#include "sidecar/remote/object_store.h"
#include "sidecar/remote/url.h"
#include "sidecar/source/object_cache.h"

namespace headrace::side {
namespace {

namespace fs = std::filesystem;

// What a user who mistyped a path needs to see: the nearest folder that exists, and a few of its files.
std::string WhatIsThere(const std::string& pattern) {
  std::error_code error;
  fs::path folder = fs::path(pattern).parent_path();
  while (!folder.empty() && folder != folder.root_path() && !fs::is_directory(folder, error)) {
    folder = folder.parent_path();
  }
  std::vector<std::string> names;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  std::string text = "folder " + folder.string() + " ";
  if (error) return text + "cannot be read: " + error.message();
  if (names.empty()) return text + "is empty";
  text += "holds ";
  for (size_t i = 0; i < names.size() && i < 5; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > 5) text += " and " + std::to_string(names.size() - 5) + " more";
  return text;
}

Result<std::vector<std::string>> ListVolume(const std::string& path, const std::string& data_dir) {
  const std::string pattern = path[0] == '/' ? path : (fs::path(data_dir) / path).string();
  glob_t matches{};
  // GLOB_ERR: a folder that cannot be read must not look like one without files.
  const int rc = glob(pattern.c_str(), GLOB_ERR, nullptr, &matches);
  std::vector<std::string> found;
  for (size_t m = 0; rc == 0 && m < matches.gl_pathc; ++m) {
    if (!fs::is_directory(matches.gl_pathv[m])) found.emplace_back(matches.gl_pathv[m]);
  }
  globfree(&matches);
  if (rc == GLOB_ABORTED) {
    return Unavailable("\"" + pattern + "\" cannot be listed; check the volume's mount and permissions");
  }
  if (found.empty()) return NotFound("\"" + pattern + "\" matches no file; " + WhatIsThere(pattern));
  return found;
}

}  // namespace

void FileTable::Stop() const {
  if (store != nullptr) store->Stop();
}

Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir) {
  FileTable table;
  std::vector<std::string> remote;
  std::copy_if(source.paths.begin(), source.paths.end(), std::back_inserter(remote), IsRemotePath);
  std::vector<Result<std::vector<FoundObject>>> objects;
  if (!remote.empty()) {
    table.store = std::make_shared<ObjectStore>(source.object_store);
    objects = table.store->Find(remote);
    if (source.object_store.cache_bytes) {
      const char* const folder = std::getenv(names::kEnvCacheDir);
      auto cache = ObjectCache::Open(folder != nullptr ? folder : names::kCacheDir,
                                     static_cast<uint64_t>(*source.object_store.cache_bytes));
      if (cache.ok()) {
        table.cache = std::move(*cache);
      } else {
        log::Warning("objects are read without the cache of spec.source.files.objectStore.cache",
                     {{"reason", cache.status().message()}});
      }
    }
  }
  size_t next = 0;  // of `objects`
  for (size_t i = 0; i < source.paths.size(); ++i) {
    const std::string field = "spec.source.files.paths[" + std::to_string(i) + "]";
    if (!IsRemotePath(source.paths[i])) {
      auto found = ListVolume(source.paths[i], data_dir);
      RETURN_IF_ERROR(found, field);
      for (std::string& path : *found) table.paths.push_back(std::move(path));
    } else {
      auto& found = objects[next++];
      RETURN_IF_ERROR(found, field);
      for (FoundObject& object : *found) {
        const std::string shown = ShownPath(object.path);
        table.remote.resize(table.paths.size());
        table.remote.push_back({object.size, std::move(object.version), object.path.substr(shown.size())});
        table.paths.push_back(shown);
      }
    }
  }
  if (!remote.empty()) table.remote.resize(table.paths.size());
  return table;
}

}  // namespace headrace::side
