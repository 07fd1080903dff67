// TFRecord files.
#pragma once

#include <memory>

#include "sidecar/decode/decoder.h"
#include "sidecar/source/block_reader.h"

namespace headrace::side {

// A record's one field is its data, and the four bytes after it are their checksum.
std::unique_ptr<Framer> MakeTFRecordFramer();
// Decodes as `rest` does, but finds records first whose checksum is wrong.
std::unique_ptr<Decoder> CheckTFRecords(std::unique_ptr<Decoder> rest);

}  // namespace headrace::side
