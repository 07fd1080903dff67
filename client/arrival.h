// A batch as a connection hands it to the trainer's thread.
#pragma once

#include <vector>

#include "client/device_buffers.h"
#include "common/ring/reader.h"

namespace headrace::client {

// Whether a component of a batch goes to the GPU where there is one. What has rows of different length stays in the
// ring: its row splits are for the CPU, and strings are, too.
inline bool GoesToDevice(const ring::ComponentExtent& extent) { return extent.splits_offset == 0; }

struct Arrival {
  ring::SlotView view;
  // Where the components that go to a GPU lie, at the places they had in the slot. Null: all lie in the slot.
  DeviceBuffers::Buffer* buffer = nullptr;
  bool has_slot = true;  // false: the slot has gone back, nothing of the batch lies there
  // What view.extents shows of a batch with a buffer: the reader's own go back with the slot.
  std::vector<ring::ComponentExtent> extents;
};

}  // namespace headrace::client
