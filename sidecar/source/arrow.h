// Apache Arrow, for the formats that it reads. It costs 10 ms and 15 MB at the start of a process that links it, so no
// binary does: the module libheadrace_arrow.so does, and is opened by the first who needs it.
#pragma once

#include <string>

#include "common/base/status.h"
#include "sidecar/source/columns_file.h"

namespace headrace::side {

// The version of the Arrow library that this process can open, "26.0.1". Opens it and keeps it open. Any thread.
// Errors: NotFound if the module or a library that it needs is not there.
Result<std::string> ArrowVersion();

// What reads Parquet and Arrow's IPC format, of the same library. Opens it likewise. Any thread.
Result<const ColumnsReaders*> ArrowReaders();

}  // namespace headrace::side
