#include "sidecar/source/file_table.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

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

}  // namespace

Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir) {
  FileTable table;
  for (size_t i = 0; i < source.paths.size(); ++i) {
    const std::string field = "spec.source.files.paths[" + std::to_string(i) + "]: ";
    const std::string& path = source.paths[i];
    const std::string pattern = path[0] == '/' ? path : (fs::path(data_dir) / path).string();
    glob_t matches{};
    // GLOB_ERR: a folder that cannot be read must not look like one without files.
    const int rc = glob(pattern.c_str(), GLOB_ERR, nullptr, &matches);
    size_t found = 0;
    for (size_t m = 0; rc == 0 && m < matches.gl_pathc; ++m) {
      if (fs::is_directory(matches.gl_pathv[m])) continue;
      table.paths.emplace_back(matches.gl_pathv[m]);
      ++found;
    }
    globfree(&matches);
    if (rc == GLOB_ABORTED) {
      return Unavailable(field + "\"" + pattern + "\" cannot be listed; check the volume's mount and permissions");
    }
    if (found == 0) return NotFound(field + "\"" + pattern + "\" matches no file; " + WhatIsThere(pattern));
  }
  return table;
}

}  // namespace headrace::side
