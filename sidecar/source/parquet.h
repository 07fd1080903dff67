// Parquet files. Compiled into libheadrace_arrow.so only.
#pragma once

#include <memory>
#include <string>

#include "sidecar/source/columns_file.h"

namespace headrace::side {

// See ColumnsReaders::parquet.
Result<std::unique_ptr<ColumnsFile>> OpenParquet(std::unique_ptr<StoredFile> file, const std::string* path);

}  // namespace headrace::side
