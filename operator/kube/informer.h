// Keeps a Store equal to one resource of the API server by list and watch, and tells handlers what changed.
//
//   Informer pods(&transport, &client, {.resource = kPods, .label_selector = "headrace.dev/input"});
//   pods.AddHandler({.on_put = ..., .on_delete = ...});
//   pods.Start();
//   pods.WaitForSync(30s);
//
// The list comes as a stream where the API server can do that (sendInitialEvents, "WatchList"), which costs it and us
// no large reply; else, or if that fails, in pages. Watches resume from the last resource version, bookmarks included.
// A history that is gone (410, as a status or inside the stream) leads to a new list, which puts, in effect, exactly
// the differences. managedFields are dropped.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "operator/kube/client.h"
#include "operator/kube/store.h"

namespace headrace::kube {

// Called on the informer's thread, after the store changed; must not block.
struct InformerHandler {
  std::function<void(const Object& before, const Object& now)> on_put;  // `before` is null for a new object
  std::function<void(const Object& removed)> on_delete;
};

struct InformerOptions {
  Resource resource = {};
  std::string name_space = {};                     // empty: all
  std::string label_selector = {};                 // empty: all
  std::function<void(nlohmann::json&)> slim = {};  // drops what nobody reads, before storing; may be null
  Store::Index index = {};                         // of the store, over what is left; may be null
  bool stream_lists = true;                        // ask for the list as a stream first
  std::chrono::seconds watch_timeout{290};         // the server ends the watch then
  std::chrono::milliseconds idle_margin{5000};     // ... and this much later it counts as dead
  std::chrono::milliseconds backoff_min{800};
  std::chrono::milliseconds backoff_max{30000};
  // Called after each list ("list", or "watchlist" for a streamed one) and each watch ("watch") with how it ended. May
  // be null.
  std::function<void(const char* verb, const Status&)> on_call = {};
};

class Informer {
 public:
  // `transport` and `client` (not owned) must outlive the informer.
  Informer(HttpTransport* transport, Client* client, InformerOptions options);
  // Stops the watch and joins the thread.
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // REQUIRES: before Start.
  void AddHandler(InformerHandler handler);
  void Start();
  void Stop();

  const Store& store() const { return store_; }
  bool synced() const { return synced_; }
  // Waits until the first list is in the store. False after `timeout`.
  bool WaitForSync(std::chrono::milliseconds timeout) const;

 private:
  void Run(std::stop_token stop);
  Status ListAll();
  // With `list`, the stream begins with a list, after which it is a watch like any other.
  Status Watch(std::stop_token stop, bool list);
  Status OnBytes(std::string_view bytes);
  Status OnLine(std::string_view line);
  void Put(nlohmann::json object);
  void Delete(const std::string& key);
  // The store has the whole list, of which `seen` are the keys: what is not in it is gone.
  void EndList(const std::set<std::string>& seen, const std::string& version);
  // The wait before try number `failures` + 1: doubled each time, plus up to as much again at random.
  std::chrono::milliseconds Backoff(int failures);

  HttpTransport* const transport_;
  Client* const client_;
  const InformerOptions options_;
  std::vector<InformerHandler> handlers_;  // constant after Start
  Store store_;

  // The informer's thread alone.
  std::string resource_version_;  // to watch from; empty: list first
  std::string partial_line_;
  bool progress_ = false;                      // this watch delivered something
  bool listed_ = false;                        // this watch began with a whole list
  bool streams_lists_;                         // the server has not said that it cannot
  std::optional<std::set<std::string>> seen_;  // keys of the list that is being streamed
  std::minstd_rand random_;

  std::atomic<bool> synced_ = false;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace headrace::kube
