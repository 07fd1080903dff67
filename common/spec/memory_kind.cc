// The names of the kinds of memory, as both sides of a ring know them.
#include "common/spec/input_spec.h"

namespace headrace {

std::string_view MemoryKindName(MemoryKind memory) {
  switch (memory) {
    case MemoryKind::kAuto: return "Auto";
    case MemoryKind::kHost: return "Host";
    case MemoryKind::kPinned: return "Pinned";
    case MemoryKind::kDevice: return "Device";
  }
  return "Auto";
}

std::optional<MemoryKind> ParseMemoryKind(std::string_view name) {
  for (const MemoryKind memory : {MemoryKind::kAuto, MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kDevice}) {
    if (MemoryKindName(memory) == name) return memory;
  }
  return {};
}

}  // namespace headrace
