// Where each record of a file begins: found while the file is read once, and kept beside it by `headrace index`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// Does not change once it is made; used by any thread.
class RecordIndex {
 public:
  // `offsets`: of each record's first byte, rising, and last of the byte after the last record. REQUIRES: not empty.
  explicit RecordIndex(std::vector<uint64_t> offsets) : offsets_(std::move(offsets)) {}

  int64_t records() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  // REQUIRES: record <= records(); that one is the end of the last.
  uint64_t begin(int64_t record) const { return offsets_[static_cast<size_t>(record)]; }

 private:
  std::vector<uint64_t> offsets_;
};

// Where the index of a file of a mounted volume is kept: DIR/.headrace/NAME.index, where no glob for data finds it.
std::string RecordIndexPath(const std::string& path);
// What was kept beside `file`; nullptr if nothing was, or the file is another one since: its size and its first and
// last bytes tell. Errors: Corrupt if an index of this very file makes no sense.
Result<std::unique_ptr<RecordIndex>> LoadRecordIndex(StoredFile& file);
// Keeps `index` beside `file`, whole or not at all. Errors: of writing there.
Status SaveRecordIndex(const RecordIndex& index, StoredFile& file);

}  // namespace headrace::side
