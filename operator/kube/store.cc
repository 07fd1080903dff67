#include "operator/kube/store.h"

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace headrace::kube {
namespace {

using nlohmann::json;

std::string Pack(const json& object) {
  const std::vector<uint8_t> bytes = json::to_msgpack(object);
  return {bytes.begin(), bytes.end()};
}

Object Unpack(const std::string& packed) { return std::make_shared<const json>(json::from_msgpack(packed)); }

}  // namespace

std::string KeyOf(const json& object) { return NamespaceOf(object) + "/" + NameOf(object); }

Store::Store(Index index) : index_(std::move(index)) {}

Object Store::Get(const std::string& key) const {
  std::string packed;
  {
    const std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return nullptr;
    packed = it->second.packed;
  }
  return Unpack(packed);  // outside the lock, as it takes longer than all else
}

uint64_t Store::VersionAt(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? 0 : it->second.version;
}

std::vector<Object> Store::Indexed(const std::string& value) const {
  std::vector<std::string> packed;
  {
    const std::lock_guard lock(mutex_);
    const auto keys = by_value_.find(value);
    if (keys == by_value_.end()) return {};
    for (const std::string& key : keys->second) packed.push_back(objects_.at(key).packed);
  }
  std::vector<Object> found;
  found.reserve(packed.size());
  for (const std::string& object : packed) found.push_back(Unpack(object));
  return found;
}

std::vector<std::string> Store::Keys() const {
  std::vector<std::string> keys;
  const std::lock_guard lock(mutex_);
  keys.reserve(objects_.size());
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

size_t Store::Size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

Object Store::WaitFor(const std::string& key, std::chrono::milliseconds timeout) const {
  {
    std::unique_lock lock(mutex_);
    appeared_.wait_for(lock, timeout, [&] { return objects_.contains(key); });
  }
  return Get(key);
}

Object Store::Put(const Object& object) {
  const std::string key = KeyOf(*object);
  Kept kept{VersionOf(*object), Pack(*object)};
  const std::string value = index_ ? index_(*object) : "";
  Object replaced;
  {
    const std::lock_guard lock(mutex_);
    const auto [slot, added] = objects_.try_emplace(key);
    if (!added) {
      replaced = Unpack(slot->second.packed);
      Unlist(key, *replaced);
    }
    slot->second = std::move(kept);
    if (!value.empty()) by_value_[value].insert(key);
  }
  appeared_.notify_all();
  return replaced;
}

Object Store::Delete(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  if (it == objects_.end()) return nullptr;
  Object removed = Unpack(it->second.packed);
  Unlist(key, *removed);
  objects_.erase(it);
  return removed;
}

void Store::Unlist(const std::string& key, const json& object) {
  const auto keys = by_value_.find(index_ ? index_(object) : "");
  if (keys == by_value_.end()) return;
  keys->second.erase(key);
  if (keys->second.empty()) by_value_.erase(keys);
}

}  // namespace headrace::kube
