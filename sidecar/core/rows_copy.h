// Copies of rows of a table, each of which lies together: a row that a shuffle takes from its block is then one place
// in memory and not one for each column.
#pragma once

#include <memory>
#include <span>

#include "sidecar/core/columns_block.h"

namespace headrace::side {

// A row of a block.
struct RowAt {
  const ColumnsBlock* block = nullptr;
  int64_t row = 0;
};

// Whether rows of both may lie in one block: their columns hold values of the same types, and as many of them.
bool AreAlike(const ColumnsBlock& a, const ColumnsBlock& b);

// Makes `to`, an empty block, hold copies of these rows in their order; all but where they come from. Columns of as
// many values in each row lie side by side, those of varying length one after another. REQUIRES: they are rows of
// blocks that are alike, and there is one at least.
void CopyRows(std::span<const RowAt> rows, ColumnsBlock* to);

// The same rows in a block as CopyRows makes it; the block itself, if it has no columns to be laid side by side.
std::unique_ptr<ColumnsBlock> ByRow(std::unique_ptr<ColumnsBlock> block);

}  // namespace headrace::side
