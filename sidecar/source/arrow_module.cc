#include "sidecar/source/arrow_module.h"

#include <arrow/config.h>

const char* headrace_arrow_version() { return arrow::GetBuildInfo().version_string.c_str(); }
