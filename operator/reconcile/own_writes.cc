#include "operator/reconcile/own_writes.h"

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace headrace::op {

void OwnWrites::Note(const std::string& input_key, const kube::Store* cache, const nlohmann::json& written, Time now) {
  const uint64_t version = kube::VersionOf(written);
  if (version == 0) return;
  const std::lock_guard lock(mutex_);
  writes_[input_key].push_back({cache, kube::KeyOf(written), version, now});
}

bool OwnWrites::Shown(const std::string& input_key, Time now) {
  const std::lock_guard lock(mutex_);
  const auto writes = writes_.find(input_key);
  if (writes == writes_.end()) return true;
  std::erase_if(writes->second, [&](const Write& write) {
    return now - write.when > kPatience || write.cache->VersionAt(write.object_key) >= write.version;
  });
  if (!writes->second.empty()) return false;
  writes_.erase(writes);
  return true;
}

}  // namespace headrace::op
