// Any bytes as a ring: attach, start an iteration, read what there is. Nothing may be touched outside the bytes.
//
// Built with libFuzzer where the compiler has it (clang++ -fsanitize=fuzzer); elsewhere with a main() that mutates a
// good ring with a fixed seed, which ctest runs.
#include <sys/mman.h>

#include <cstring>

#include "common/ring/geometry.h"
#include "common/ring/reader.h"

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

#ifndef HEADRACE_LIBFUZZER
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "common/ring/writer.h"

int main() {
  const std::string path = "/tmp/headrace-fuzz-" + std::to_string(getpid()) + ".ring";
  RingGeometry geometry;
  geometry.slot_count = 4;
  geometry.slot_bytes = 100;
  geometry.component_count = 2;
  geometry.plan_hash = "0123456789abcdef";
  auto writer = RingWriter::Open(path, geometry);
  if (!writer.ok()) {
    std::fprintf(stderr, "%s\n", writer.status().ToString().c_str());
    return 1;
  }
  std::atomic<bool> never{false};
  for (uint64_t step = 0; step < 3; ++step) {
    if (!(*writer)->Reserve(never).ok()) return 1;
    SlotDescriptor descriptor{};
    descriptor.step = step;
    descriptor.rows = 4;
    const ComponentExtent extents[2] = {{0, 32, 1, {4}}, {64, 32, 2, {3, -1}, 128}};
    (*writer)->Publish(descriptor, extents);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(&(*writer)->header());
  const std::vector<uint8_t> good(bytes, bytes + (*writer)->header().file_bytes);
  unlink(path.c_str());

  std::mt19937_64 random(42);
  const uint64_t interesting[] = {0, 1, 2, 63, 64, 4095, 4096, 1u << 31, ~uint64_t{0}, uint64_t{1} << 63};
  for (int run = 0; run < 20000; ++run) {
    std::vector<uint8_t> mutated = good;
    for (uint64_t change = random() % 4; change > 0; --change) {
      // Words of the header and of the descriptors.
      size_t word = random() % 2 == 0 ? random() % 48 : kPageBytes / 8 + random() % 168;
      uint64_t value = random() % 2 == 0 ? interesting[random() % std::size(interesting)] : random();
      std::memcpy(&mutated[word * 8], &value, 8);
    }
    if (random() % 16 == 0) mutated.resize(random() % good.size());
    LLVMFuzzerTestOneInput(mutated.data(), mutated.size());
  }
  return 0;
}
#endif
