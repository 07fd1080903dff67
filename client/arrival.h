// A batch as a connection hands it to the trainer's thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "client/device_buffers.h"
#include "client/device_slots.h"
#include "common/ring/reader.h"

namespace headrace::client {

struct Arrival {
  ring::SlotView view;
  // Where the components that go to a GPU lie, at the places that view.extents names: in a buffer that we copied them
  // to, or in a slot that the loader filled. Both null: all lie in the ring.
  DeviceBuffers::Buffer* buffer = nullptr;
  std::shared_ptr<DeviceSlots> device_slots = nullptr;
  bool has_slot = true;  // false: nothing of the batch lies in the slot, which goes back without it
  // Of a batch with both: the trainer, until it frees the batch, and the copy, until it is done. The last to let go
  // gives the slot back.
  std::shared_ptr<std::atomic<int>> slot_holders = nullptr;
  // What view.extents shows of a batch with a buffer, since the reader's own go back with the slot, and of one in a
  // loader's slot that is laid out otherwise than the ring's.
  std::vector<ring::ComponentExtent> extents = {};

  // 0: all lie in the ring.
  gpu::DevicePtr device_memory() const {
    if (buffer != nullptr) return buffer->memory;
    return device_slots == nullptr ? 0 : device_slots->address(view.slot);
  }
};

// Whether the caller, who lets go of the slot, is to give it back.
inline bool IsLastHolder(const std::shared_ptr<std::atomic<int>>& slot_holders) {
  return slot_holders == nullptr || slot_holders->fetch_sub(1) == 1;
}

}  // namespace headrace::client
