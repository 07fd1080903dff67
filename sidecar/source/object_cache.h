// Objects that were read before, kept on a volume: of one pod, or shared by those of a node.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "common/base/status.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// Which bytes: an object's path, size and version as its store names it.
struct ObjectKey {
  std::string path;
  uint64_t size = 0;
  std::string version;
};

// Any thread, and any number of processes with the same folder at a time. What goes wrong with it costs reads of the
// store and nothing else.
class ObjectCache {
 public:
  // An object on its way into the cache; unless it is committed, nothing of it stays.
  class Writer {
   public:
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    uint64_t size() const { return written_; }
    // The next bytes. false: they cannot be kept, and the writer is of no use any more.
    bool Append(std::span<const uint8_t> bytes);
    // REQUIRES: all bytes were appended.
    void Commit();

   private:
    friend class ObjectCache;
    Writer(ObjectCache* cache, ObjectKey key, int fd, std::string draft)
        : cache_(*cache), key_(std::move(key)), fd_(fd), draft_(std::move(draft)) {}

    ObjectCache& cache_;
    const ObjectKey key_;
    const int fd_;
    const std::string draft_;
    uint64_t written_ = 0;
    bool done_ = false;
  };

  // Keeps up to `most_bytes` in `folder`, which is made. Errors: Unavailable if nothing can be kept there.
  static Result<std::unique_ptr<ObjectCache>> Open(const std::string& folder, uint64_t most_bytes);

  // The object as it was kept; nullptr if it is not there. `bytes_read` outlives the file.
  std::unique_ptr<StoredFile> Find(const ObjectKey& key, std::atomic<uint64_t>* bytes_read);
  // Begins to keep an object, for which those that were not used the longest make room. nullptr: it is too large, or
  // somebody else is about to keep it. The cache outlives the writer.
  std::unique_ptr<Writer> Begin(const ObjectKey& key);

 private:
  ObjectCache(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  std::string PathOf(const ObjectKey& key) const;
  // Removes what is in the way of `bytes` more, and drafts that nobody writes any more.
  bool MakeRoom(uint64_t bytes);

  const std::string folder_;
  const uint64_t most_bytes_;
  std::mutex mutex_;
};

}  // namespace headrace::side
