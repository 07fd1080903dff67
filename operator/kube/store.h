// The informer's cache of one resource: "namespace/name" -> object, as JSON.
//
// Thread-safe. Objects are immutable once stored: readers keep what they got for as long as they like.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::kube {

using Object = std::shared_ptr<const nlohmann::json>;

// "namespace/name" of an object ("/name" for one without a namespace).
std::string KeyOf(const nlohmann::json& object);

class Store {
 public:
  // Null if there is none.
  Object Get(const std::string& key) const;
  // All objects of one namespace, in the order of their names.
  std::vector<Object> List(std::string_view name_space) const;
  std::vector<std::string> Keys() const;
  size_t Size() const;
  // As Get, but waits up to `timeout` for the object to appear.
  Object WaitFor(const std::string& key, std::chrono::milliseconds timeout) const;

  // For the informer and for tests. Put returns what it replaced, Delete what it removed; null if nothing.
  Object Put(Object object);
  Object Delete(const std::string& key);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable appeared_;
  std::map<std::string, Object, std::less<>> objects_;  // guarded by mutex_
};

}  // namespace headrace::kube
