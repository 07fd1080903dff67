// A stored file as Arrow's readers want it. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/io/interfaces.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// Parts of a file that are on their way, or there. Gives up what is not there yet when it goes.
class FetchedRanges {
 public:
  virtual ~FetchedRanges() = default;
};

class ArrowFile : public arrow::io::RandomAccessFile {
 public:
  // Begins to read ranges of a remote file. As long as what is returned lives, reads within one of them are answered
  // from there, without a copy where Arrow asks for a buffer. Of a mounted volume, where the kernel reads ahead, it
  // does nothing. REQUIRES: the ranges lie in the file, and the result does not outlive it.
  virtual std::unique_ptr<FetchedRanges> Fetch(const std::vector<arrow::io::ReadRange>& ranges) = 0;
  // Whether Fetch does something.
  virtual bool fetches() const = 0;
};

// Reads `file`, each ReadAt as one read of storage. ReadAt is for any thread; the rest for one at a time, and not
// during a ReadAt.
std::shared_ptr<ArrowFile> MakeArrowFile(std::unique_ptr<StoredFile> file);

// What an Arrow reader reports, as ours: an error of the file itself comes back as it was, with path and offset;
// anything else is Corrupt, as is a file that is not what its format demands, or Exhausted. `where` begins those:
// "path: ". REQUIRES: !status.ok().
Status FromArrow(const arrow::Status& status, const std::string& where);
// The reverse, for what Arrow's readers are given to read from. REQUIRES: !status.ok().
arrow::Status ToArrow(Status status);

// What `fn` returns; what it throws comes out as a status.
template <typename Fn>
arrow::Status Caught(Fn fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return arrow::Status::OutOfMemory("there is no memory for it");
  } catch (const std::exception& e) {
    return arrow::Status::IOError(e.what());
  }
}

}  // namespace headrace::side
