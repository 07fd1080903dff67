// A batch in the trainer's hands: the C ABI's headrace_batch.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "client/connection.h"
#include "client/tensor.h"
#include "headrace/client.h"

struct headrace_batch {
  // The connection's spare one, or a new one. Its arrival is empty.
  [[gnu::hot]] static headrace_batch* New(const std::shared_ptr<headrace::client::Connection>& connection);
  // Gives back what has arrived, keeps the object as the connection's spare one, and has the next batch prepared. Any
  // thread.
  static void Free(headrace_batch* batch);
  // The same of a batch that never arrived, of which there is nothing to give back. Any thread.
  static void Drop(headrace_batch* batch);
  static void operator delete(void* memory) { ::operator delete(memory); }

  std::shared_ptr<headrace::client::Connection> connection;  // null in a spare one
  bool measured = false;                                     // Measure was ok; written before the trainer has it
  headrace::client::Arrival arrival = {};
  mutable std::atomic<uint64_t> checked = 0;  // bit i: tensor i's row splits are as they should be
  mutable std::mutex mutex = {};
  mutable std::vector<headrace::gpu::Stream> users = {};  // guarded by mutex; streams that use it, the last one last

  const headrace::ring::SlotView& view() const { return arrival.view; }
  const headrace::ring::ComponentExtent& extent(size_t i) const { return arrival.view.extents[i]; }
  bool on_device(size_t i) const { return arrival.device_memory() != 0 && headrace::ring::GoesToDevice(extent(i)); }
  size_t num_tensors() const { return connection->components().size(); }
  // Of each tensor, behind the object: one allocation for all.
  headrace::client::Strides* strides() { return reinterpret_cast<headrace::client::Strides*>(this + 1); }
  const headrace::client::Strides* strides() const {
    return reinterpret_cast<const headrace::client::Strides*>(this + 1);
  }

  // Checks the shapes that the loader wrote against the tensors' bytes, and works out the strides. Errors: Corrupt.
  [[gnu::hot]] headrace::Status Measure();
  // Checks the row splits of tensor i (if it has any) when it is first asked for. Any thread. Errors: Corrupt.
  headrace::Status CheckRowSplitsOnce(size_t i) const;

 private:
  static void* operator new(size_t bytes, size_t tensors) {
    return ::operator new(bytes + tensors * sizeof(headrace::client::Strides));
  }
  static void Keep(headrace_batch* batch, headrace::client::Connection& connection);
  // "ring: component 'x' of step 3": what an error is about.
  std::string Where(size_t i) const;
};
