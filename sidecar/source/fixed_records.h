// Files whose records all have one length, and so are where arithmetic says: FixedLength and NumPy.
#pragma once

#include <memory>

#include "sidecar/decode/decoder.h"
#include "sidecar/source/stored_block.h"

namespace headrace::side {

// The index of a FixedLength file: between `headerBytes` and `footerBytes`, record after record. Errors: Corrupt if
// that is no whole number of records.
Result<std::unique_ptr<StoredBlock>> IndexFixedLength(SourceContext& context, uint32_t file);
// The index of a .npy file: the rows of its array. Errors: Corrupt if it is none; InvalidArgument if it holds values of
// another type than the feature's.
Result<std::unique_ptr<StoredBlock>> IndexNumPy(SourceContext& context, uint32_t file);

// The features one after another, little-endian, as they lie in a record.
std::unique_ptr<Decoder> MakeFixedDecoder(const InputSpec& spec);

}  // namespace headrace::side
