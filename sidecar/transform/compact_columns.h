// Rows of a table that lay in several blocks, copied to one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sidecar/core/rows_copy.h"

namespace headrace::side {

// Each row says as before where its file has it. The blocks that they were in are not needed any more.
class CompactColumns final : public ColumnsBlock {
 public:
  // REQUIRES: as of CopyRows.
  explicit CompactColumns(std::span<const RowAt> rows);

  Origin OriginOf(int64_t row) const override;

 private:
  using Part = std::pair<const std::string*, std::string>;  // of a file: its path, and which

  std::vector<Part> parts_;
  std::vector<uint32_t> part_of_;  // by row, of parts_ ...
  std::vector<int64_t> row_of_;    // ... and the row in it
};

}  // namespace headrace::side
