// What libheadrace_arrow.so exports. Seen by those who open it and by the module's own files.
#pragma once

#include "sidecar/source/columns_file.h"

extern "C" {

// "26.0.1"; lives as long as the process.
__attribute__((visibility("default"))) const char* headrace_arrow_version();
// Lives as long as the process. Loader and module are always of one build.
__attribute__((visibility("default"))) const headrace::side::ColumnsReaders* headrace_arrow_readers();
}
