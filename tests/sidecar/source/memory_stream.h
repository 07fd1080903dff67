// Bytes in memory as a file, for tests of what reads files.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "sidecar/source/raw_stream.h"

namespace headrace::side {

class MemoryStream : public RawStream {
 public:
  MemoryStream(std::string path, std::string bytes) : path_(std::move(path)), bytes_(std::move(bytes)) {}

  Result<size_t> Read(uint8_t* out, size_t n) override {
    const size_t read = std::min(n, bytes_.size() - at_);
    if (read > 0) std::memcpy(out, bytes_.data() + at_, read);
    at_ += read;
    return read;
  }
  void Rewind() override { at_ = 0; }
  std::optional<uint64_t> size() const override { return bytes_.size(); }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const std::string bytes_;
  size_t at_ = 0;
};

}  // namespace headrace::side
