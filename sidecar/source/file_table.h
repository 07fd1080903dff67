// The files that a source's paths name, found once at start.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/input_spec.h"

namespace headrace::side {

struct FileTable {
  std::vector<std::string> paths;  // in the order of spec.source.files.paths, each glob's matches in lexical order
};

// Expands the globs; relative ones against `data_dir`. Errors: NotFound naming the field, the path and what lies there
// instead, if one matches nothing or a directory cannot be read.
Result<FileTable> ListFiles(const FilesSource& source, const std::string& data_dir);

}  // namespace headrace::side
