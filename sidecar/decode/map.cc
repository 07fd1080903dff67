#include "common/spec/map.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/spec/components.h"
#include "common/spec/tensor_fields.h"
#include "sidecar/core/arena.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

// The same values in the same order: what reshape is where the component it came from stays as well.
class CopyOperator : public MapOperator {
 public:
  explicit CopyOperator(const MapSite& site) : row_bytes_(RowBytes(site.input)) {}
  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    std::memcpy(out, in, records.size() * row_bytes_);
    return {};
  }

 private:
  const size_t row_bytes_;
};

// Lets an operation on single values act on rows of any length.
class RowsOperator : public MapOperator {
 public:
  RowsOperator(std::unique_ptr<MapOperator> operation, const MapSite& site)
      : operation_(std::move(operation)),
        in_bytes_(DTypeSize(site.input.dtype)),
        out_bytes_(DTypeSize(site.output.dtype)) {}

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    values_.Reset();
    const auto* from = reinterpret_cast<const BytesRef*>(in);
    auto* to = reinterpret_cast<BytesRef*>(out);
    for (size_t i = 0; i < records.size(); ++i, ++from, ++to) {
      const size_t count = from->size / in_bytes_;
      // Values of a record are aligned to nothing.
      uint8_t* const aligned = values_.Take(from->size);
      if (count > 0) std::memcpy(aligned, from->data, from->size);
      uint8_t* const made = values_.Take(count * out_bytes_);
      static_cast<ValueOperator&>(*operation_).ApplyValues(count, aligned, made);
      *to = {made, count * out_bytes_};
    }
    return {};
  }

 private:
  const std::unique_ptr<MapOperator> operation_;
  const size_t in_bytes_;
  const size_t out_bytes_;
  Arena values_;
};

class MapDecoder : public Decoder {
 public:
  MapDecoder(std::unique_ptr<Decoder> rest, size_t component, bool adds, size_t row_bytes,
             std::unique_ptr<MapOperator> operation)
      : rest_(std::move(rest)),
        component_(component),
        adds_(adds),
        row_bytes_(row_bytes),
        operation_(std::move(operation)) {}

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    inner_.assign(columns.begin(), columns.end());
    uint8_t* const out = adds_ ? columns.back() : columns[component_];
    if (adds_) {
      inner_.pop_back();
    } else {
      scratch_.resize(std::max(scratch_.size(), records.size() * row_bytes_));
      inner_[component_] = scratch_.data();
    }
    RETURN_IF_ERROR(rest_->Decode(records, inner_));
    return operation_->Apply(records, inner_[component_], out);
  }

 private:
  const std::unique_ptr<Decoder> rest_;
  const size_t component_;
  const bool adds_;  // a component after the others; otherwise it replaces
  const size_t row_bytes_;
  const std::unique_ptr<MapOperator> operation_;
  std::vector<uint8_t> scratch_;  // what it replaces
  std::vector<uint8_t*> inner_;
};

}  // namespace

size_t MapSite::values() const { return static_cast<size_t>(NumValues(input.shape)); }

std::string MapSite::Where(const Record& record) const {
  return record.Place() + ": component \"" + input.name + "\": ";
}

std::unique_ptr<MapOperator> MakeMapOperator(const ReshapeOp&, const MapSite& site) {
  return std::make_unique<CopyOperator>(site);
}

std::unique_ptr<Decoder> MakeMapDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components,
                                        const Map& map, const std::string& field, bool read_next) {
  // ParseInputSpec has checked that there is such a component and that the operation takes it.
  const size_t component = *FindComponent(components, map.feature);
  const TensorSpec& input = components[component];
  const MapSite site{field, input, *MappedType(map.operation, input), read_next};
  const bool adds = !map.as.empty();
  if (!adds && std::holds_alternative<ReshapeOp>(map.operation)) return rest;
  auto operation = std::visit([&](const auto& op) { return MakeMapOperator(op, site); }, map.operation);
  // MappedType lets only operations on values act on ragged rows.
  if (input.ragged) operation = std::make_unique<RowsOperator>(std::move(operation), site);
  return std::make_unique<MapDecoder>(std::move(rest), component, adds, RowBytes(input), std::move(operation));
}

std::unique_ptr<Decoder> MakePixelsDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components,
                                           const Map& first, const PixelMaps& maps, std::unique_ptr<MapOperator> run) {
  return std::make_unique<MapDecoder>(std::move(rest), *FindComponent(components, first.feature), !first.as.empty(),
                                      RowBytes(maps.input), std::move(run));
}

}  // namespace headrace::side
