// Files of text, whose records are lines. A line ends with LF or CRLF, the last one also with the file. A byte order
// mark at the file's begin is no part of it.
#pragma once

#include <memory>
#include <string_view>

#include "sidecar/source/block_reader.h"

namespace headrace::side {

enum class BlankLines {
  kAreRecords,
  kArePassedOver,
  kArePassedOverIfEmpty,  // those of spaces and tabs are records
};

std::unique_ptr<Framer> MakeLineFramer(BlankLines blank);

// For framers of their own. All of them look at block->data()[at, size), of which the first byte begins a line.

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// Longer lines are refused: more likely, the file is of another kind.
inline constexpr size_t kMaxLineBytes = size_t{1} << 30;

// Adds the lines that end before `size`, and, if `last`, what is left. `*lines` is raised by the number of line ends
// passed. Returns as of Framer, with `consumed` an offset in the block.
Framer::Outcome FrameLines(BytesBlock* block, size_t at, size_t size, bool last, BlankLines blank, uint64_t* lines);
// [begin, end) without its carriage return, if it has one.
inline size_t LineSize(const uint8_t* data, size_t begin, size_t end) {
  return end - begin - (end > begin && data[end - 1] == '\r' ? 1 : 0);
}
// How many bytes of byte order mark begin the file.
size_t ByteOrderMark(const uint8_t* data, size_t size);

}  // namespace headrace::side
