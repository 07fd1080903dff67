#include "operator/kube/store.h"

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace headrace::kube {

std::string KeyOf(const nlohmann::json& object) { return NamespaceOf(object) + "/" + NameOf(object); }

Object Store::Get(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<Object> Store::List(std::string_view name_space) const {
  const std::string prefix = std::string(name_space) + "/";
  std::vector<Object> found;
  const std::lock_guard lock(mutex_);
  for (auto it = objects_.lower_bound(prefix); it != objects_.end() && it->first.starts_with(prefix); ++it)
    found.push_back(it->second);
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
  std::unique_lock lock(mutex_);
  Object found;
  appeared_.wait_for(lock, timeout, [&] {
    const auto it = objects_.find(key);
    if (it != objects_.end()) found = it->second;
    return found != nullptr;
  });
  return found;
}

Object Store::Put(Object object) {
  std::string key = KeyOf(*object);
  Object replaced;
  {
    const std::lock_guard lock(mutex_);
    Object& slot = objects_[std::move(key)];
    replaced = std::exchange(slot, std::move(object));
  }
  appeared_.notify_all();
  return replaced;
}

Object Store::Delete(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  if (it == objects_.end()) return nullptr;
  Object removed = std::move(it->second);
  objects_.erase(it);
  return removed;
}

}  // namespace headrace::kube
