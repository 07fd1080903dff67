// Records by themselves, for the tests of formats and decoders.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "sidecar/source/source.h"

namespace headrace::side {

// One record of these fields, 48 bytes into the file "a.tfrecord" (whatever the format). `pool` must outlive it.
inline Record RecordOf(BytesBlockPool* pool, const std::vector<std::string>& fields) {
  static const std::string path = "a.tfrecord";
  size_t size = 0;
  for (const std::string& field : fields) size += field.size();
  BytesBlock* const block = pool->Get(size);
  block->origin = {&path, 48};
  block->origin.fields = fields.size();
  size_t at = 0;
  for (const std::string& field : fields) {
    if (!field.empty()) std::memcpy(block->data() + at, field.data(), field.size());
    block->Add(at, field.size());
    at += field.size();
  }
  Record record;
  record.block = BlockRef(block);
  return record;
}

struct FileRecords {
  std::vector<std::string> records;  // of each, the first field
  Status status;                     // why there are no more
};

// Reads a file to its end, `block` records at a time; `check`, if any, decodes each of them without components.
inline FileRecords ReadFile(FileFormat format, const std::string& path, Compression compression = Compression::kAuto,
                            size_t block = 7, Decoder* check = nullptr) {
  SourceContext context;
  context.files = FileTable({path});
  context.compression = compression;
  FileRecords all;
  auto stream = OpenRecords(FormatOf(format), context, 0);
  all.status = stream.status();
  std::vector<Record> records(block);
  while (all.status.ok()) {
    const auto read = (*stream)->Read(records);
    all.status = read.status();
    if (!read.ok() || *read == 0) break;
    for (size_t i = 0; i < *read; ++i) {
      if (check != nullptr) all.status = check->Decode({&records[i], 1}, {});
      if (!all.status.ok()) break;
      const auto bytes = records[i].bytes();
      all.records.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return all;
}

}  // namespace headrace::side
