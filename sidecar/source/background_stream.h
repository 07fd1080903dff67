// A stream whose reading costs time, such as decompression, read while its reader does something else.
#pragma once

#include <memory>

#include "sidecar/source/byte_stream.h"

namespace headrace::side {

// Reads `stream` on a thread of its own, at most kBackgroundBytes ahead. The thread ends with the returned stream,
// whose destructor waits for the read that is under way.
std::unique_ptr<ByteStream> ReadInBackground(std::unique_ptr<ByteStream> stream);
inline constexpr size_t kBackgroundBytes = 768 << 10;

}  // namespace headrace::side
