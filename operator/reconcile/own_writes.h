// Read-your-own-writes: what this replica wrote for an input and its caches have yet to show. Reconciling on caches
// that are behind would write twice and tell users what was.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/kube/store.h"

namespace headrace::op {

// Thread-safe.
class OwnWrites {
 public:
  using Time = std::chrono::system_clock::time_point;
  // A write that no cache has shown by then was undone by somebody, or the watch is broken: neither stops reconciling.
  static constexpr std::chrono::seconds kPatience{5};

  // `written` is what the API server answered; `cache` (not owned) will hold the object.
  void Note(const std::string& input_key, const kube::Store* cache, const nlohmann::json& written, Time now);
  // Whether the caches show all that was noted for the input. The event that brings the rest brings the key back.
  bool Shown(const std::string& input_key, Time now);

 private:
  struct Write {
    const kube::Store* cache;
    std::string object_key;
    uint64_t version;
    Time when;
  };
  std::mutex mutex_;
  std::map<std::string, std::vector<Write>> writes_;  // by input; guarded by mutex_
};

}  // namespace headrace::op
