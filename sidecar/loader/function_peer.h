// The loader's end of its conversation with the process of the user's dataset function: see
// common/ring/function_wire.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/ring/function_wire.h"

namespace headrace::side {

// Used by one thread. Waits for as long as the function computes, but no longer than until `stop` becomes true
// (Cancelled).
class FunctionPeer {
 public:
  // Listens in `run_dir` and waits up to timeout_ms for the function's process. Errors: Unavailable if none comes.
  static Result<std::unique_ptr<FunctionPeer>> Accept(const std::string& run_dir, int64_t timeout_ms,
                                                      const std::atomic<bool>* stop);
  ~FunctionPeer();
  FunctionPeer(const FunctionPeer&) = delete;
  FunctionPeer& operator=(const FunctionPeer&) = delete;

  // Sends `request` and waits for its answer. Errors: the function's own; Unavailable if its process has gone;
  // Internal if it answers something else.
  template <typename Answer>
  Result<Answer> Ask(const ring::FunctionRequest& request) {
    ASSIGN_OR_RETURN(ring::FunctionAnswer answer, AskAny(request));
    if (auto* wanted = std::get_if<Answer>(&answer)) return std::move(*wanted);
    return Internal("it answered out of turn");
  }
  Result<ring::FunctionAnswer> AskAny(const ring::FunctionRequest& request);
  // Lends it a replica's ring.
  Status LendRing(int64_t replica, int fd);

 private:
  FunctionPeer(std::string path, int listener, const std::atomic<bool>* stop)
      : path_(std::move(path)), listener_(listener), stop_(*stop) {}

  const std::string path_;
  const int listener_;
  const std::atomic<bool>& stop_;
  int fd_ = -1;
};

}  // namespace headrace::side
