// Arrow's IPC format. Compiled into libheadrace_arrow.so only.
#pragma once

#include <memory>
#include <string>

#include "sidecar/source/columns_file.h"

namespace headrace::side {

// See ColumnsReaders::arrow_file and arrow_stream.
Result<std::unique_ptr<ColumnsFile>> OpenArrowFile(std::unique_ptr<StoredFile> file, std::unique_ptr<ByteStream> ahead,
                                                   const std::string* path);
Result<std::unique_ptr<ColumnsFile>> OpenArrowStream(std::unique_ptr<ByteStream> bytes, const std::string* path);

}  // namespace headrace::side
