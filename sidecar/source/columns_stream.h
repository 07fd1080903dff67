// The rows of a file of columns as a stream of records.
#pragma once

#include <memory>
#include <vector>

#include "sidecar/core/dataset.h"
#include "sidecar/source/columns_file.h"

namespace headrace::side {

// Reads `file`, of which columns were chosen; a record's block has those of them at `places`, in that order. A few
// blocks are read ahead by a thread of the stream's own; but a reader that passes over more rows than those hold is not
// expected to want what comes next, and gets block by block until it has read some without. Blocks whose records are
// out are counted among the pool's live bytes. `mixed`: their rows will be taken in any order, and each is laid
// together.
std::unique_ptr<Stream<Record>> MakeColumnsStream(std::unique_ptr<ColumnsFile> file, std::vector<size_t> places,
                                                  BytesBlockPool* pool, bool mixed);

}  // namespace headrace::side
