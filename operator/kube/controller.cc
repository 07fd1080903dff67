#include "operator/kube/controller.h"

#include "common/base/log.h"
#include "operator/kube/work_queue.h"

namespace headrace::kube {

Controller::Controller(Options options, WorkQueue* queue, std::function<Outcome(const std::string& key)> reconcile)
    : options_(std::move(options)), queue_(queue), reconcile_(std::move(reconcile)) {
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { Work(); });
}

Controller::~Controller() { Stop(); }

void Controller::Stop() {
  queue_->ShutDown();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Controller::Work() {
  while (const auto key = queue_->Get()) {
    if (options_.probe.on_active) options_.probe.on_active(+1);
    Process(*key);
    queue_->Done(*key);
    if (options_.probe.on_active) options_.probe.on_active(-1);
  }
}

void Controller::Process(const std::string& key) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  std::string result;
  try {
    outcome = reconcile_(key);
  } catch (const std::exception& error) {
    result = "panic";
    outcome.status = Internal(std::string("exception in reconcile: ") + error.what());
  } catch (...) {
    result = "panic";
    outcome.status = Internal("exception in reconcile");
  }
  const bool panic = !result.empty();
  if (outcome.status.ok()) {
    queue_->Forget(key);
    result = outcome.put_off ? "requeue" : outcome.requeue_after ? "requeue_after" : "success";
    if (outcome.put_off) queue_->Add(key, Priority::kPutOff);
    if (outcome.requeue_after) queue_->AddAfter(key, *outcome.requeue_after);
  } else {
    const bool again = panic || Retryable(outcome.status.code());
    if (!panic) result = again ? "error" : "terminal_error";
    log::Error("reconcile failed", {{"controller", options_.name},
                                    {"key", key},
                                    {"result", result},
                                    {"failures", std::to_string(queue_->Failures(key))},
                                    {"error", outcome.status.ToString()}});
    if (again) {
      queue_->AddRateLimited(key);
    } else {
      queue_->Forget(key);
    }
  }
  if (options_.probe.on_reconcile) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    options_.probe.on_reconcile(result, took.count());
  }
}

}  // namespace headrace::kube
