// Records events.k8s.io/v1 Events about objects. Never blocks and never fails its caller: a full queue drops.
//
// The same event (object, type, reason, action, note) seen again within six minutes becomes one Event with a series
// count rather than a new object.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <unordered_map>

namespace headrace::kube {

class Client;

// "2026-01-02T03:04:05.678901Z": how Events and Leases write a time.
std::string MicroTime(std::chrono::system_clock::time_point time);

enum class EventType { kNormal, kWarning };

class EventRecorder {
 public:
  virtual ~EventRecorder() = default;
  // `reason` is UpperCamelCase, one per category; `action` says what the operator was doing ("Compile"); `note` is for
  // the user, cut at 1 KiB.
  virtual void Record(const nlohmann::json& regarding, EventType type, const std::string& reason,
                      const std::string& action, const std::string& note) = 0;
};

// Sends from one thread of its own. Thread-safe.
class ApiEventRecorder : public EventRecorder {
 public:
  struct Options {
    std::string reporting_controller = "headrace.dev/operator";
    std::string reporting_instance = {};  // the operator's pod
    size_t queue_limit = 1000;
    size_t series_limit = 4096;  // of events remembered, to be counted when they come again; the oldest go first
    std::function<void()> on_drop = {};  // may be null
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  };
  // `client` (not owned) must outlive the recorder.
  ApiEventRecorder(Client* client, Options options);
  // Sends what is queued for at most a moment, then stops.
  ~ApiEventRecorder() override;

  void Record(const nlohmann::json& regarding, EventType type, const std::string& reason, const std::string& action,
              const std::string& note) override;

 private:
  struct Occurrence;
  struct Series;
  void Run();
  void Send(const Occurrence& occurrence);
  // Whether the event was counted in a series that goes on.
  bool Continue(const std::string& identity, const Occurrence& occurrence, const std::string& time);
  void Remember(Series series);
  void ForgetOldest();

  Client* const client_;
  const Options options_;
  // The sending thread's alone.
  std::list<Series> series_;  // in the order in which they were last added to
  std::unordered_map<std::string, std::list<Series>::iterator> by_identity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Occurrence>> queue_;  // guarded by mutex_
  bool stopping_ = false;                          // guarded by mutex_
  std::thread sender_;
};

}  // namespace headrace::kube
