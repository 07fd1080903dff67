// What libheadrace_arrow.so exports. Seen by those who open it and by the module's own files.
#pragma once

extern "C" {

// "26.0.1"; lives as long as the process.
__attribute__((visibility("default"))) const char* headrace_arrow_version();
}
