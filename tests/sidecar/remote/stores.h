// What the tests of object stores share.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sidecar/remote/object_store.h"

namespace headrace::side {

inline Environment EnvironmentOf(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  };
}

// As loaders have it, but in milliseconds.
inline RetryPolicy QuickPolicy() {
  using std::chrono::milliseconds;
  return {.max_attempts = 5,
          .first_delay = milliseconds(2),
          .most_delay = milliseconds(20),
          .first_byte = milliseconds(1000),
          .most_first_byte = milliseconds(2000),
          .stalled = milliseconds(500)};
}

// Bytes that tell their place: a reader that mixes up offsets notices.
inline std::string Numbered(size_t size) {
  std::string bytes;
  bytes.reserve(size + 8);
  for (uint64_t i = 0; bytes.size() < size; ++i) {
    const uint64_t mixed = i * 0x9E3779B97F4A7C15;
    bytes.append(reinterpret_cast<const char*>(&mixed), sizeof mixed);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace headrace::side
