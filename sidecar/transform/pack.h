// Sequence packing: rows of one length, of the sequences of consecutive records.
#pragma once

#include <string>

#include "common/spec/input_spec.h"
#include "sidecar/core/dataset.h"
#include "sidecar/transform/decoded_records.h"

namespace headrace::side {

// Records that are rows of PackedBlocks. `field` is the transformation's, for messages. Records that cannot be decoded,
// or not be packed, are in no row if they may be left out.
DatasetPtr<Record> MakePack(DatasetPtr<Record> input, const Pack& pack, LookSite site, std::string field);

}  // namespace headrace::side
