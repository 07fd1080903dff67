// What `headrace index` has a loader do.
#pragma once

#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/spec/input_spec.h"

namespace headrace::side {

struct IndexedFile {
  std::string path;
  int64_t records = 0;
  bool made = false;  // false: it was there
};

// Finds where each record of the input's files lies and keeps that beside them (record_index.h). Calls `done` after
// each file. Errors: InvalidArgument where the source has no such files, or one is compressed; those of the files, and
// of writing beside them.
Status IndexFiles(const InputSpec& spec, const std::string& data_dir,
                  const std::function<void(const IndexedFile&)>& done);

}  // namespace headrace::side
