// The bytes of one file in order, as they are stored.
#pragma once

#include <memory>
#include <string>

#include "sidecar/source/byte_stream.h"
#include "sidecar/source/object_cache.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

class RawStream : public ByteStream {
 public:
  bool plain() const override { return true; }
  // Back to the file's first byte. Costs nothing after a first short Read.
  virtual void Rewind() = 0;
  virtual const std::string& path() const = 0;
};

// A file of a mounted volume, which the kernel reads ahead, some megabytes.
std::unique_ptr<RawStream> MakePlainStream(std::unique_ptr<StoredFile> file);
// A remote one: read_ahead.h. What it reads goes to `keeper` (may be null), as long as it reads in order. REQUIRES:
// file->remote().
std::unique_ptr<RawStream> MakeReadAhead(std::unique_ptr<StoredFile> file,
                                         std::unique_ptr<ObjectCache::Writer> keeper = nullptr);

}  // namespace headrace::side
