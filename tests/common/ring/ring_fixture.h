// A directory of its own for each test, and batches that say who they are: every value of a batch is Value(epoch,
// step), so that a lost, repeated or torn batch shows.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/ring/reader.h"
#include "common/ring/writer.h"

namespace headrace::ring {

inline int64_t Value(uint64_t epoch, uint64_t step) { return static_cast<int64_t>(epoch * 1000003 + step); }

class RingTest : public testing::Test {
 protected:
  RingTest() {
    char name[] = "/dev/shm/headrace-ring-XXXXXX";  // as in a pod, in memory
    directory_ = mkdtemp(name);
  }
  ~RingTest() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/replica-0.ring"; }

  RingGeometry Geometry(uint64_t slots, int64_t values = 8) const {
    RingGeometry geometry;
    geometry.slot_count = slots;
    geometry.slot_bytes = static_cast<uint64_t>(values) * sizeof(int64_t);
    geometry.plan_hash = "0123456789abcdef";
    return geometry;
  }

  std::unique_ptr<RingWriter> OpenWriter(uint64_t slots, int64_t values = 8) {
    auto writer = RingWriter::Open(path(), Geometry(slots, values));
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    return writer.ok() ? std::move(*writer) : nullptr;
  }

  static std::unique_ptr<RingReader> OpenReader(const RingWriter& writer) {
    auto reader = RingReader::Attach(writer.fd());
    EXPECT_TRUE(reader.ok()) << reader.status().ToString();
    return reader.ok() ? std::move(*reader) : nullptr;
  }

  // Waits for a slot, fills `values` values and publishes.
  static Status Write(RingWriter& writer, uint64_t epoch, uint64_t step, uint64_t values = 8, uint32_t flags = 0) {
    static const std::atomic<bool> never{false};
    auto slot = writer.Reserve(never, epoch);
    if (!slot.ok()) return slot.status();
    std::fill_n(reinterpret_cast<int64_t*>(*slot), values, Value(epoch, step));
    SlotDescriptor descriptor{};
    descriptor.epoch = epoch;
    descriptor.step = step;
    descriptor.rows = values;
    descriptor.flags = flags;
    const ComponentExtent extent{0, values * sizeof(int64_t), 1, {static_cast<int64_t>(values)}};
    writer.Publish(descriptor, {&extent, 1});
    return {};
  }
  static Status WriteEnd(RingWriter& writer, uint64_t epoch, uint64_t step) {
    static const std::atomic<bool> never{false};
    auto slot = writer.Reserve(never);
    if (!slot.ok()) return slot.status();
    SlotDescriptor descriptor{};
    descriptor.epoch = epoch;
    descriptor.step = step;
    descriptor.flags = kEndOfEpoch;
    writer.Publish(descriptor, {});
    return {};
  }

  // Whether the batch is whole and is the one it says it is.
  static bool Intact(const SlotView& view) {
    const auto* values = reinterpret_cast<const int64_t*>(view.data + view.extents[0].offset);
    return view.extents[0].bytes == view.rows * sizeof(int64_t) &&
           std::all_of(values, values + view.rows,
                       [&](int64_t value) { return value == Value(view.epoch, view.step); });
  }

  std::string directory_;
};

}  // namespace headrace::ring
