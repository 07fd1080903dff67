#include "sidecar/loader/slot_layout.h"

#include <algorithm>
#include <cstring>

#include "common/ring/geometry.h"
#include "common/spec/components.h"
#include "common/spec/variable.h"
#include "sidecar/device/device_layout.h"
#include "sidecar/loader/feed.h"

namespace headrace::side {

SlotLayout::SlotLayout(const InputSpec& spec, std::span<const GpuImages> images, const Topology& topology) {
  int64_t rows = 1;         // of the largest batch: the last batch's size ...
  int64_t row_records = 1;  // ... and that of the one before it
  for (const Transformation& transformation : spec.pipeline) {
    if (const auto* batch = std::get_if<headrace::Batch>(&transformation)) {
      row_records = rows;
      rows = batch->size;
    }
  }
  const int64_t replicas = topology.replicas_in_sync();
  rows = (rows + replicas - 1) / replicas;
  const ElementShape element = PipelineElement(spec);
  std::vector<TensorSpec> records = RecordComponents(spec, spec.pipeline.size(), nullptr);
  for (const GpuImages& made : images) records[made.component] = made.decoded;
  batch_dims_ = element.batch_dims;
  for (size_t c = 0; c < records.size(); ++c) {
    Component& component =
        components_.emplace_back(Component{element.components[c].shape, IsVariable(records[c]), records[c].ragged, 1});
    if (records[c].dtype != DType::kString) component.record_bytes = DTypeSize(records[c].dtype);
    for (const int64_t dim : records[c].shape) {
      if (dim != kUnknownDim) component.record_bytes *= static_cast<uint64_t>(dim);
    }
    has_variable_ = has_variable_ || component.variable;
    if (!component.variable) all_record_bytes_ += component.record_bytes;
  }
  variable_bytes_ = VariableBytes(spec, rows * row_records);
  std::vector<ring::ComponentExtent> extents;
  const uint64_t variable =
      variable_bytes_ + (has_variable_ ? (components_.size() + 1) * ring::kTensorAlign : uint64_t{0});
  max_bytes_ = Extents(rows, row_records, &extents) + variable;
  if (!images.empty()) max_device_bytes_ = device::PlaceInDeviceSlot(images, extents) + variable;
}

uint64_t SlotLayout::Extents(int64_t rows, int64_t row_records, std::vector<ring::ComponentExtent>* extents) const {
  extents->clear();
  uint64_t end = 0;
  for (const Component& component : components_) {
    const uint64_t records = static_cast<uint64_t>(rows) * static_cast<uint64_t>(row_records);
    ring::ComponentExtent& extent =
        extents->emplace_back(ring::ComponentExtent{AlignTensor(end), 0, component.shape.size(), {}});
    std::copy(component.shape.begin(), component.shape.end(), extent.dims);
    if (batch_dims_ > 0) extent.dims[0] = rows;
    if (batch_dims_ > 1) extent.dims[1] = row_records;
    if (!component.variable) {
      extent.bytes = component.record_bytes * records;
      end = extent.offset + extent.bytes;
    } else if (component.ragged && batch_dims_ == 0) {
      end = extent.offset;  // one record by itself is a tensor of the length that it has
    } else {
      // Never at the slot's first byte: that would say that there are none.
      extent.splits_offset = std::max<uint64_t>(extent.offset, ring::kTensorAlign);
      end = extent.splits_offset + (records + 1) * sizeof(int64_t);
    }
  }
  return end;
}

Status SlotLayout::Gather(std::span<const std::vector<BytesRef>> rows, uint8_t* slot,
                          std::vector<ring::ComponentExtent>* extents) const {
  uint64_t needed = 0;
  uint64_t end = 0;
  for (size_t c = 0; c < components_.size(); ++c) {
    const ring::ComponentExtent& extent = (*extents)[c];
    end = std::max(end, extent.offset + extent.bytes);
    if (!components_[c].variable) continue;
    if (extent.splits_offset != 0) end = extent.splits_offset + (rows[c].size() + 1) * sizeof(int64_t);
    for (const BytesRef& row : rows[c]) needed += row.size;
  }
  if (needed > variable_bytes_) return OutgrewVariableBytes(needed, variable_bytes_);
  for (size_t c = 0; c < components_.size(); ++c) {
    if (!components_[c].variable) continue;
    ring::ComponentExtent& extent = (*extents)[c];
    extent.offset = AlignTensor(end);
    uint8_t* const values = slot + extent.offset;
    auto* splits = extent.splits_offset == 0 ? nullptr : reinterpret_cast<int64_t*>(slot + extent.splits_offset);
    uint64_t at = 0;
    if (splits != nullptr) *splits++ = 0;
    for (const BytesRef& row : rows[c]) {
      if (row.size > 0) std::memcpy(values + at, row.data, row.size);
      at += row.size;
      if (splits != nullptr) *splits++ = static_cast<int64_t>(at / components_[c].record_bytes);
    }
    extent.bytes = at;
    if (splits == nullptr) extent.dims[0] = static_cast<int64_t>(at / components_[c].record_bytes);
    end = extent.offset + at;
  }
  return {};
}

void SlotLayout::LeaveOut(std::span<const size_t> left_out, uint8_t* slot,
                          std::vector<ring::ComponentExtent>* extents) const {
  // Moves all of `count` items of so many bytes that stay to the front.
  const auto close_up = [&](uint8_t* items, uint64_t bytes, size_t count) {
    size_t to = left_out[0];
    for (size_t i = 0; i < left_out.size(); ++i) {
      const size_t from = left_out[i] + 1;
      const size_t end = i + 1 < left_out.size() ? left_out[i + 1] : count;
      std::memmove(items + to * bytes, items + from * bytes, (end - from) * bytes);
      to += end - from;
    }
  };
  for (size_t c = 0; c < components_.size(); ++c) {
    ring::ComponentExtent& extent = (*extents)[c];
    const auto rows = static_cast<size_t>(extent.dims[0]);
    extent.dims[0] -= static_cast<int64_t>(left_out.size());
    if (components_[c].variable) {
      // An empty row begins and ends at the same value: its split goes, the last one stays.
      close_up(slot + extent.splits_offset, sizeof(int64_t), rows + 1);
    } else {
      close_up(slot + extent.offset, components_[c].record_bytes, rows);
      extent.bytes -= left_out.size() * components_[c].record_bytes;
    }
  }
}

}  // namespace headrace::side
