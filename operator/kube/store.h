// The informer's cache of one resource: "namespace/name" -> object, as JSON.
//
// Objects are kept as MessagePack, a tenth of what they take as a tree, and read as trees of the reader's own; a
// cluster has many of them, and a reader needs few at a time. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace headrace::kube {

using Object = std::shared_ptr<const nlohmann::json>;

// "namespace/name" of an object ("/name" for one without a namespace).
std::string KeyOf(const nlohmann::json& object);

class Store {
 public:
  // The value under which Indexed finds an object; empty: under none.
  using Index = std::function<std::string(const nlohmann::json& object)>;
  explicit Store(Index index = {});

  // Null if there is none.
  Object Get(const std::string& key) const;
  // The objects with this value of the index, in the order of their keys; what else is stored costs nothing.
  std::vector<Object> Indexed(const std::string& value) const;
  std::vector<std::string> Keys() const;
  size_t Size() const;
  // The version (kube::VersionOf) of what Get would give; 0 if that is null.
  uint64_t VersionAt(const std::string& key) const;
  // As Get, but waits up to `timeout` for the object to appear.
  Object WaitFor(const std::string& key, std::chrono::milliseconds timeout) const;

  // For the informer and for tests. Put returns what it replaced, Delete what it removed; null if nothing.
  Object Put(const Object& object);
  Object Delete(const std::string& key);

 private:
  struct Kept {
    uint64_t version;
    std::string packed;
  };

  // REQUIRES mutex_.
  void Unlist(const std::string& key, const nlohmann::json& object);

  const Index index_;
  mutable std::mutex mutex_;
  mutable std::condition_variable appeared_;
  std::map<std::string, Kept> objects_;                    // guarded by mutex_
  std::map<std::string, std::set<std::string>> by_value_;  // of the index -> keys; guarded by mutex_
};

}  // namespace headrace::kube
