// How much of remote files is read ahead of their readers. The streams themselves: raw_stream.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::side {

// What all open streams of remote files together hold in memory, at most, while there are no more than 256 of them;
// each further one adds 512 KiB. It is shared evenly.
inline constexpr size_t kReadAheadBytes = 128 << 20;
// A file is read in parts, each one request. They grow from the least to the most, so that the first bytes come soon
// and a long file is read in large pieces, of which several are under way at a time.
inline constexpr size_t kLeastPartBytes = 256 << 10;
inline constexpr size_t kMostPartBytes = 8 << 20;

// The part of that memory that each of `streams` open ones may take.
size_t ReadAheadShare(int streams);
// How far ahead of its reader one of `streams` open ones may be, when `consumed` bytes of it have been read in order. A
// reader that takes little gets little read for nothing.
size_t ReadAheadWindow(int streams, uint64_t consumed);

}  // namespace headrace::side
