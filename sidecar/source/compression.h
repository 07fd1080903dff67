// Compressed files, decompressed.
#pragma once

#include <memory>

#include "sidecar/source/raw_stream.h"

namespace headrace::side {

// The content of `file`: decompressed on a thread of its own if it is compressed, or `file` itself. kAuto looks at the
// first bytes, of which this reads a few. Errors: those of the file; Corrupt if it is not compressed by what was asked
// for, which says what it looks like.
Result<std::unique_ptr<ByteStream>> Decompress(std::unique_ptr<RawStream> file, Compression compression);

}  // namespace headrace::side
