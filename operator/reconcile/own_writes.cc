#include "operator/reconcile/own_writes.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace headrace::op {
namespace {

// Resource versions of one kind of object are numbers that grow (KEP-5504). 0: it has none.
uint64_t VersionOf(const nlohmann::json& object) {
  const std::string text = kube::ResourceVersionOf(object);
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

void OwnWrites::Note(const std::string& input_key, const kube::Store* cache, const nlohmann::json& written, Time now) {
  const uint64_t version = VersionOf(written);
  if (version == 0) return;
  const std::lock_guard lock(mutex_);
  writes_[input_key].push_back({cache, kube::KeyOf(written), version, now});
}

bool OwnWrites::Shown(const std::string& input_key, Time now) {
  const std::lock_guard lock(mutex_);
  const auto writes = writes_.find(input_key);
  if (writes == writes_.end()) return true;
  std::erase_if(writes->second, [&](const Write& write) {
    const kube::Object cached = write.cache->Get(write.object_key);
    return now - write.when > kPatience || (cached != nullptr && VersionOf(*cached) >= write.version);
  });
  if (!writes->second.empty()) return false;
  writes_.erase(writes);
  return true;
}

}  // namespace headrace::op
