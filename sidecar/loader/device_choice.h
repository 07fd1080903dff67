// What the loader does with GPUs: spec.delivery.memory, held against what the container has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/ring/writer.h"
#include "sidecar/device/device_ring.h"
#include "sidecar/loader/feed.h"
#include "sidecar/loader/pipeline.h"

namespace headrace::side {

// Who does the last maps of images. The GPU where spec.delivery.memory is Device and it can: under Auto some trainer
// may turn out to take host memory, in which there are none of these images then. Opens the CUDA driver only under
// Device.
struct MapsChoice {
  LastMaps who = LastMaps::kOnCpu;
  std::string why_not;  // under Device: not the GPU
};
MapsChoice ChooseLastMaps(const Delivery& delivery);

// The loader's own rings in GPU memory, or why it has none.
struct DeviceChoice {
  device::DeviceRings rings;
  std::string reason;
};

// As spec.delivery has it: Device, and Auto with a claim. Errors are those of a GPU that is there and does not do it.
// `rings` must outlive what is made.
Result<DeviceChoice> ChooseDevice(const Feed& feed, const std::vector<std::unique_ptr<ring::RingWriter>>& rings);

// Where trainers get their batches, for the log: what the plan leaves open, each says when it attaches.
std::string MemoryText(MemoryKind memory, const DeviceChoice& choice);

// Why trainers of host memory cannot be served, naming components; empty: they can.
std::string WhyDeviceOnly(const Feed& feed);

}  // namespace headrace::side
