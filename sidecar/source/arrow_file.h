// A stored file as Arrow's readers want it. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/io/interfaces.h>

#include <memory>

#include "common/base/status.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// Reads `file`, each ReadAt as one read of storage; those may come from any thread.
std::shared_ptr<arrow::io::RandomAccessFile> MakeArrowFile(std::unique_ptr<StoredFile> file);

// What an Arrow reader reports, as ours: an error of the file itself comes back as it was, with path and offset;
// anything else is Corrupt, as is a file that is not what its format demands. REQUIRES: !status.ok().
Status FromArrow(const arrow::Status& status);

}  // namespace headrace::side
