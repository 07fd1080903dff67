// One object of a store, and reads of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "common/base/status.h"
#include "sidecar/remote/service.h"

namespace headrace::side {

// What tells versions of an object apart: its ETag, else the date of its last change; "" if the server gives neither.
std::string VersionOf(const Reply& reply);

// "bytes 3-9/100", of a reply 206.
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t size = 0;  // of the whole
};
std::optional<ContentRange> ParseContentRange(const std::string& text);

// An object as it was when it was found. Any thread.
class Object {
 public:
  // `version` is as VersionOf has it; "": that of the first reply. `bytes_read` counts what comes of
  // it, what is read twice included. All but the version outlive the object.
  Object(Service* service, Transfers* transfers, const std::string& path, uint64_t size, std::string version,
         std::atomic<uint64_t>* bytes_read);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

 private:
  friend class ObjectRead;
  // The header by which the server refuses another version; "" if there is none.
  std::string Condition() const;
  // Whether the reply is of the same version as those before.
  bool IsSame(const Reply& reply);

  Service& service_;
  Transfers& transfers_;
  const std::string path_;
  const std::string url_;
  const uint64_t size_;
  std::atomic<uint64_t>& bytes_read_;
  mutable std::mutex mutex_;
  std::string version_;  // guarded by mutex_
};

// One range of an object, on its way into memory of the caller's. One thread.
class ObjectRead final : private Call {
 public:
  // Asks for [offset, offset + out.size()), which must lie in the object, and returns; may block for credentials.
  ObjectRead(Object* object, uint64_t offset, std::span<uint8_t> out);
  // Stops what is not finished; `out` is not written to any more.
  ~ObjectRead() override;

  // Returns when `out` is full. Errors name the path and the offset: NotFound, Unavailable, Conflict if the object has
  // changed, Cancelled.
  Status Finish();

 private:
  Request Prepare() override;
  std::optional<std::span<uint8_t>> Body(const Reply& reply) override;
  Fate Judge(Reply& reply) override;

  Object& object_;
  const uint64_t offset_;
  const std::span<uint8_t> out_;
  Status status_;  // of the start
  // Written by the transfers' thread until the call is done.
  size_t read_ = 0;         // bytes that are in out_
  std::string refused_;     // why the reply at hand is not taken; "": it is
  bool changed_ = false;    // the object is another one
  bool no_ranges_ = false;  // the server sends whole files only
  std::shared_ptr<const Credentials> used_;
};

}  // namespace headrace::side
