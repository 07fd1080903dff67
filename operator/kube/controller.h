// Workers that take keys from a queue and reconcile them; the one place where an outcome becomes queue behaviour.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"

namespace headrace::kube {

class WorkQueue;

// What a reconcile asks for.
//   ok, no requeue_after       done; forget the key's failures
//   ok, requeue_after          look again then; forget the key's failures
//   ok, put_off                look again when no other key waits for more than that; forget the key's failures
//   Retryable(status.code())   look again after the key's backoff
//   any other error            terminal: logged and counted; the next event brings the key back
struct Outcome {
  Status status;
  std::optional<std::chrono::milliseconds> requeue_after = {};
  bool put_off = false;
};

struct ControllerProbe {
  // result: "success", "requeue", "requeue_after", "error", "terminal_error" or "panic".
  std::function<void(const std::string& result, double seconds)> on_reconcile;
  std::function<void(int delta)> on_active;  // +1 as a worker starts a key, -1 as it ends
};

// Runs until destroyed or stopped; Stop lets the keys in progress finish.
class Controller {
 public:
  struct Options {
    std::string name;
    int workers = 4;
    ControllerProbe probe = {};
  };
  // `queue` (not owned) must outlive the controller. `reconcile` is called from several threads, never for one key
  // twice at a time. An exception in it counts as a panic and is retried with backoff.
  Controller(Options options, WorkQueue* queue, std::function<Outcome(const std::string& key)> reconcile);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Shuts the queue down and joins the workers. Idempotent.
  void Stop();

 private:
  void Work();
  void Process(const std::string& key);

  const Options options_;
  WorkQueue* const queue_;
  const std::function<Outcome(const std::string&)> reconcile_;
  std::vector<std::thread> workers_;
};

}  // namespace headrace::kube
