// A Kubernetes API server as a value: objects, resource versions, list pages, watches, apply, conflicts, expiry. It is
// an HttpTransport itself, so tests need no socket; FakeApiServer (api_server.h) puts it behind one.
//
// Thread-safe. What it leaves out: schemas, field ownership (apply merges), garbage collection.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "operator/kube/transport.h"

namespace headrace::kube {

class FakeApi : public HttpTransport {
 public:
  // The test's own hand on the objects. Put creates or replaces; both make watch events.
  nlohmann::json Put(const Resource& resource, nlohmann::json object);
  void Remove(const Resource& resource, const std::string& name_space, const std::string& name);
  // Null if absent.
  nlohmann::json Find(const Resource& resource, const std::string& name_space, const std::string& name) const;
  size_t Count(const Resource& resource) const;

  // Whether lists can be had as a stream (sendInitialEvents), as they can unless told otherwise.
  void StreamLists(bool can);

  // Forgets the history up to now: older watches and continue tokens get 410.
  void Compact();
  // Ends the open watches cleanly, as the server's timeout does.
  void EndWatches();
  // Sends every open watch a bookmark with the current version, or any line as it is, and waits until they have it.
  void Bookmark();
  void SendLine(const std::string& line);

  // The next `times` calls whose "METHOD target" contains `match` get `reply` instead of being executed; a reply of
  // status 0 means no reply at all.
  void FailNext(const std::string& match, HttpReply reply, int times = 1);
  void ClearFailures();
  // "METHOD target" of every call so far.
  std::vector<std::string> Calls() const;
  size_t CountCalls(const std::string& match) const;
  size_t open_watches() const;
  // Waits until `done` holds, which is asked again after each call and each watch that begins. False after 10 s.
  bool WaitUntil(const std::function<bool()>& done) const;

  Result<HttpReply> Send(const HttpCall& call) override;
  Result<HttpReply> Stream(const HttpCall& call, std::chrono::milliseconds idle_timeout, std::stop_token stop,
                           const std::function<Status(std::string_view)>& on_bytes) override;

 private:
  struct Target {
    std::string collection;  // "group/version/plural"
    std::string name_space, name, subresource;
    std::map<std::string, std::string> query;
  };
  struct Event {
    int64_t version;
    std::string collection;
    std::string type;
    nlohmann::json before, object;
  };
  struct Failure {
    std::string match;
    HttpReply reply;
    int times;
  };
  using Objects = std::map<std::string, nlohmann::json>;

  static Target Parse(const std::string& target);
  // All REQUIRE mutex_.
  HttpReply Execute(const HttpCall& call, const Target& target);
  HttpReply List(const Target& target);
  HttpReply Patch(const HttpCall& call, const Target& target, nlohmann::json body);
  nlohmann::json Store(const std::string& collection, nlohmann::json object);
  void Erase(const std::string& collection, const std::string& key);
  std::optional<HttpReply> Note(const HttpCall& call);

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::map<std::string, Objects> collections_;
  std::vector<Event> events_;
  int64_t version_ = 100;
  int64_t compacted_ = 0;
  bool streams_lists_ = true;
  int64_t next_uid_ = 1;
  int64_t watch_generation_ = 0;
  size_t open_watches_ = 0;
  size_t lines_delivered_ = 0, watches_ended_ = 0;
  std::vector<std::string> lines_;  // sent as they are to the watches open at the time
  std::vector<std::string> calls_;
  std::vector<Failure> failures_;
};

// {"kind": "Status", "code": status, "message": message} with that HTTP status.
HttpReply StatusReply(int status, const std::string& message);
// The watch event by which the server says, inside the stream, that the history is gone.
std::string ExpiredLine();

}  // namespace headrace::kube
