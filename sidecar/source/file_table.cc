#include "sidecar/source/file_table.h"

#include <glob.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

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

std::shared_ptr<ObjectCache> OpenCache(const ObjectStoreOptions& options) {
  if (!options.cache_bytes) return nullptr;
  const char* const folder = std::getenv(names::kEnvCacheDir);
  auto cache =
      ObjectCache::Open(folder != nullptr ? folder : names::kCacheDir, static_cast<uint64_t>(*options.cache_bytes));
  if (cache.ok()) return std::move(*cache);
  log::Warning("objects are read without the cache of spec.source.files.objectStore.cache",
               {{"reason", cache.status().message()}});
  return nullptr;
}

std::string FieldOf(size_t path) { return "spec.source.files.paths[" + std::to_string(path) + "]"; }

}  // namespace

struct FileTable::Listed {
  struct Found {
    std::string path;
    std::optional<Remote> remote;
  };
  // One of spec.source.files.paths.
  struct Path {
    std::vector<std::string> of_volume;
    std::optional<size_t> of_store;  // by the listing's number
  };

  ~Listed() {
    if (!lister_.joinable()) return;
    {
      const std::lock_guard lock(mutex);
      if (!whole) store->Stop();
    }
    lister_.join();
  }

  void Start() {
    if (listing == nullptr) return AddAll();
    listing->SetHurry(false);
    lister_ = std::thread([this] { AddAll(); });
  }

  // Waits until there are more files than `file`, or no more.
  Result<bool> Has(size_t file) {
    std::unique_lock lock(mutex);
    if (file >= known.size() && !whole) {
      listing->SetHurry(true);
      added.wait(lock, [&] { return file < known.size() || whole; });
      listing->SetHurry(false);
    }
    if (file < known.size()) return true;
    RETURN_IF_ERROR(error);
    return false;
  }
  const Found& Get(size_t file) const {
    const std::lock_guard lock(mutex);
    return known[file];  // which stays where it is
  }
  void Add(Found found) {
    const std::lock_guard lock(mutex);
    known.push_back(std::move(found));
    added.notify_all();
  }

  std::shared_ptr<ObjectStore> store;
  std::shared_ptr<ObjectCache> cache;
  std::unique_ptr<ObjectListing> listing;  // of the store
  std::vector<Path> paths;
  mutable std::mutex mutex;
  std::condition_variable added;
  // Guarded by the mutex.
  std::deque<Found> known;
  bool whole = false;  // there will be no more, because of `error` if that is not ok
  Status error;

 private:
  void AddAll() {
    Status status;
    for (size_t i = 0; i < paths.size() && status.ok(); ++i) {
      for (std::string& name : paths[i].of_volume) Add({std::move(name), {}});
      if (paths[i].of_store) status = AddObjects(*paths[i].of_store).WithContext(FieldOf(i));
    }
    const std::lock_guard lock(mutex);
    error = std::move(status);
    whole = true;
    added.notify_all();
  }
  Status AddObjects(size_t path) {
    while (true) {
      ASSIGN_OR_RETURN(std::vector<FoundObject> objects, listing->Next(path));
      if (objects.empty()) return {};
      for (FoundObject& object : objects) {
        std::string shown = ShownPath(object.path);
        Remote remote{object.size, std::move(object.version), object.path.substr(shown.size())};
        Add({std::move(shown), std::move(remote)});
      }
    }
  }

  std::thread lister_;  // of what lies in stores
};

FileTable::FileTable(std::vector<std::string> volume_paths) : listed_(std::make_shared<Listed>()) {
  for (std::string& path : volume_paths) listed_->Add({std::move(path), {}});
  listed_->whole = true;
}

Result<bool> FileTable::Has(size_t file) const { return listed_->Has(file); }

const std::string& FileTable::path(size_t file) const { return listed_->Get(file).path; }

const FileTable::Remote* FileTable::remote(size_t file) const {
  const auto& remote = listed_->Get(file).remote;
  return remote ? &*remote : nullptr;
}

const std::shared_ptr<ObjectStore>& FileTable::store() const { return listed_->store; }
const std::shared_ptr<ObjectCache>& FileTable::cache() const { return listed_->cache; }

void FileTable::Stop() const {
  if (store() != nullptr) store()->Stop();
}

Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir) {
  FileTable table;
  FileTable::Listed& listed = *table.listed_;
  std::vector<std::string> remote;
  std::copy_if(source.paths.begin(), source.paths.end(), std::back_inserter(remote), IsRemotePath);
  if (!remote.empty()) {
    listed.store = std::make_shared<ObjectStore>(source.object_store);
    listed.listing = listed.store->List(remote);
    listed.cache = OpenCache(source.object_store);
  }
  size_t next = 0;  // of the listing
  for (size_t i = 0; i < source.paths.size(); ++i) {
    FileTable::Listed::Path& path = listed.paths.emplace_back();
    if (IsRemotePath(source.paths[i])) {
      path.of_store = next++;
      RETURN_IF_ERROR(listed.listing->AwaitFirst(*path.of_store), FieldOf(i));
    } else {
      auto found = ListVolume(source.paths[i], data_dir);
      RETURN_IF_ERROR(found, FieldOf(i));
      path.of_volume = std::move(*found);
    }
  }
  listed.whole = false;
  listed.Start();
  return table;
}

}  // namespace headrace::side
