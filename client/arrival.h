// A batch as a connection hands it to the trainer's thread.
#pragma once

#include <atomic>
#include <memory>
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
  bool has_slot = true;  // false: nothing of the batch lies in the slot, which goes back without it
  // Of a batch with both: the trainer, until it frees the batch, and the copy, until it is done. The last to let go
  // gives the slot back.
  std::shared_ptr<std::atomic<int>> slot_holders = nullptr;
  // What view.extents shows of a batch with a buffer: the reader's own go back with the slot.
  std::vector<ring::ComponentExtent> extents;
};

// Whether the caller, who lets go of the slot, is to give it back.
inline bool IsLastHolder(const std::shared_ptr<std::atomic<int>>& slot_holders) {
  return slot_holders == nullptr || slot_holders->fetch_sub(1) == 1;
}

}  // namespace headrace::client
