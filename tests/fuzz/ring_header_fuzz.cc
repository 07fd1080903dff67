// Any bytes as a ring: attach, start an iteration, read what there is. Nothing may be touched outside the bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "common/ring/geometry.h"
#include "common/ring/reader.h"
#include "common/ring/writer.h"
#include "tests/fuzz/target.h"

using namespace headrace::ring;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Its own mapping, so that one byte too far is a fault.
  if (size == 0 || size > 1 << 20) return 0;
  const size_t mapped = (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  auto* base = static_cast<uint8_t*>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED) return 0;
  std::memcpy(base, data, size);
  if (auto reader = RingReader::Attach(base, size); reader.ok()) {
    uint64_t epoch = (*reader)->StartIteration();
    SlotView view;
    volatile uint8_t sink = 0;
    for (int i = 0; i < 8; ++i) {
      auto outcome = (*reader)->Next(epoch, 0, &view);
      if (!outcome.ok() || *outcome != RingReader::Outcome::kBatch) break;
      for (const ComponentExtent& extent : view.extents) {
        if (extent.bytes > 0) sink = sink + view.data[extent.offset] + view.data[extent.offset + extent.bytes - 1];
        if (extent.splits_offset == 0) continue;
        const uint64_t end = extent.splits_offset + NumSplits(extent).value() * sizeof(int64_t);
        sink = sink + view.data[extent.splits_offset] + view.data[end - 1];
      }
      if (i % 2 == 0) (*reader)->Release(view);
    }
  }
  munmap(base, mapped);
  return 0;
}

const int headrace::fuzz::kMutations = 40000;

std::vector<std::string> headrace::fuzz::Seeds() {
  const std::string path = "/tmp/headrace-fuzz-" + std::to_string(getpid()) + ".ring";
  RingGeometry geometry;
  geometry.slot_count = 4;
  geometry.slot_bytes = 100;
  geometry.component_count = 2;
  geometry.plan_hash = "0123456789abcdef";
  auto writer = RingWriter::Open(path, geometry);
  if (!writer.ok()) std::abort();
  std::atomic<bool> never{false};
  for (uint64_t step = 0; step < 3; ++step) {
    if (!(*writer)->Reserve(never).ok()) std::abort();
    SlotDescriptor descriptor{};
    descriptor.step = step;
    descriptor.rows = 4;
    const ComponentExtent extents[2] = {{0, 32, 1, {4}}, {64, 32, 2, {3, -1}, 128}};
    (*writer)->Publish(descriptor, extents);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(&(*writer)->header());
  std::string good(reinterpret_cast<const char*>(bytes), (*writer)->header().file_bytes);
  unlink(path.c_str());
  return {std::move(good)};
}
