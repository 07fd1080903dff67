// One tensor of a batch: what the loader wrote of it, held against what the element spec says of it.
#pragma once

#include <array>

#include "client/connection.h"
#include "common/ring/layout.h"

namespace headrace::client {

// Of each dimension, in values; row-major. Of a ragged tensor 0, then those of its values: a tensor of the shape
// [number of values, shape[2], ...].
using Strides = std::array<int64_t, ring::kMaxDims>;

// Works out the strides. Looks at no memory of the slot. False: the shape is not the component's, or its bytes are not
// what the shape takes. REQUIRES: the extent is of a SlotView.
[[gnu::hot]] bool MeasureTensor(const Component& component, const ring::ComponentExtent& extent, Strides* strides);

// The row splits of a component of variable length; null for others.
const int64_t* RowSplits(const ring::ComponentExtent& extent, const uint8_t* slot);
// The last of the row splits.
int64_t NumSplitValues(const ring::ComponentExtent& extent, const uint8_t* slot);
// Whether the row splits rise from 0 to the number of values; looks at all of them. Errors: Corrupt. REQUIRES:
// MeasureTensor said OK, and there are row splits.
Status CheckRowSplits(const Component& component, const ring::ComponentExtent& extent, const Strides& strides,
                      const uint8_t* slot);

}  // namespace headrace::client
