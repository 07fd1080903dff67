#include "sidecar/transform/decoded_records.h"

#include <algorithm>

#include "common/spec/components.h"

namespace headrace::side {
namespace {

constexpr size_t kBlockBytes = 256 << 10;
constexpr size_t kMaxBlockRecords = 256;

}  // namespace

DecodedRecords::DecodedRecords(const LookSite& site)
    : take_error_(site.take_error),
      components_(RecordComponents(site.spec, site.stages, nullptr)),
      decoder_(MakePipelineDecoder(site.spec, site.stages, site.source_decoder())) {
  size_t record_bytes = 1;
  for (const TensorSpec& component : components_) {
    row_bytes_.push_back(RowBytes(component));
    record_bytes += row_bytes_.back();
  }
  most_ = std::clamp<size_t>(kBlockBytes / record_bytes, 1, kMaxBlockRecords);
  for (const size_t bytes : row_bytes_) columns_.emplace_back(bytes * most_);
  for (std::vector<uint8_t>& column : columns_) outs_.push_back(column.data());
}

}  // namespace headrace::side
