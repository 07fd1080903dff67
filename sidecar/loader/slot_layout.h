// How a batch lies in a slot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ring/layout.h"
#include "common/spec/gpu_images.h"
#include "sidecar/core/record.h"

namespace headrace::side {

// Component after component, each aligned to ring::kTensorAlign: those of fixed length, and the row splits of the
// others; after all of them, the values of those of variable length.
class SlotLayout {
 public:
  // `images`: the components that a GPU makes of what lies in the slot. They lie here as they are decoded, with the
  // dimensions of what they become.
  SlotLayout(const InputSpec& spec, std::span<const GpuImages> images, const Topology& topology);

  // Fills one extent for each component and returns the bytes used. Values of variable length are not laid out yet.
  uint64_t Extents(int64_t rows, int64_t row_records, std::vector<ring::ComponentExtent>* extents) const;
  // Lays the values of variable length out: copies them to the slot, and writes row splits. `rows` has one entry a
  // component; those of fixed length are not looked at. Errors: InvalidArgument if they take more than
  // spec.delivery.maxBatchBytes.
  Status Gather(std::span<const std::vector<BytesRef>> rows, uint8_t* slot,
                std::vector<ring::ComponentExtent>* extents) const;

  // Leaves records out of a batch that is laid out: those behind move up. `left_out` is sorted; the rows of those of
  // variable length are empty. REQUIRES: one batch dimension.
  void LeaveOut(std::span<const size_t> left_out, uint8_t* slot, std::vector<ring::ComponentExtent>* extents) const;

  size_t components() const { return components_.size(); }
  bool is_variable(size_t component) const { return components_[component].variable; }
  bool has_variable() const { return has_variable_; }
  // Of one record; REQUIRES: !is_variable(component).
  uint64_t record_bytes(size_t component) const { return components_[component].record_bytes; }
  uint64_t all_record_bytes() const { return all_record_bytes_; }  // of those of fixed length
  uint64_t max_bytes() const { return max_bytes_; }                // of the largest batch that the plan allows
  uint64_t max_device_bytes() const { return max_device_bytes_; }  // of it in a GPU's slot, if there are images; else 0

 private:
  struct Component {
    std::vector<int64_t> shape;  // with the batch dimensions
    bool variable = false;
    bool ragged = false;
    // Of one record, or of variable length: of what row splits count (a byte of a string, an inner row).
    uint64_t record_bytes = 0;
  };

  std::vector<Component> components_;
  int batch_dims_ = 0;
  bool has_variable_ = false;
  uint64_t all_record_bytes_ = 0;
  uint64_t variable_bytes_ = 0;
  uint64_t max_bytes_ = 0;
  uint64_t max_device_bytes_ = 0;
};

}  // namespace headrace::side
