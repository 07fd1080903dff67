// HTTP requests, many at a time, all on one thread: connections are kept and reused, failed reads tried again
// (retry.h), and each host given as many at a time as it takes (pace.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sidecar/remote/retry.h"

namespace headrace::side {

struct Request {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  // "name: value"
  std::string body;                  // of a POST or PUT
  int redirects = 0;                 // how many are followed; none from https to http
  bool patient = false;              // the server may think for long before it answers
  bool local = false;                // an address of the node or its cloud: no proxy, and no long wait for one that is
                                     // not there
};

// One idempotent request, tried until it is done or the policy gives up. Made, and kept until it is done or Cancel has
// returned, by whoever wants the reply.
class Call {
 public:
  explicit Call(std::string origin) : origin_(std::move(origin)) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The three that follow are called on the transfers' thread, and must not block.
  // The next attempt's request, signed now.
  virtual Request Prepare() = 0;
  // Where the body of this reply goes, of which status and headers are there. An empty span: into reply.text; nothing:
  // the attempt ends here. A body that is longer fails the attempt.
  virtual std::optional<std::span<uint8_t>> Body(const Reply& reply) = 0;
  // What to make of the attempt. May write to reply.error why a reply is not taken.
  virtual Fate Judge(Reply& reply) = 0;

  // The last attempt's. REQUIRES: done.
  const Reply& reply() const { return reply_; }
  Fate fate() const { return fate_; }
  const std::string& origin() const { return origin_; }

 private:
  friend class Transfers;
  const std::string origin_;  // "https://HOST:PORT", whose pace it shares
  Reply reply_;
  Fate fate_ = Fate::kFailed;
  bool done_ = true;  // guarded by the transfers' mutex
};

// Used by any thread but its own.
class Transfers {
 public:
  explicit Transfers(const RetryPolicy& policy = {});
  // REQUIRES: no call is under way.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // REQUIRES: the call is new or done.
  void Start(Call& call);
  // Returns when it is done.
  void Await(const Call& call);
  // Returns when at least one is. REQUIRES: `calls` is not empty.
  void AwaitAny(std::span<Call* const> calls);
  bool IsDone(const Call& call);
  // Ends it, where it is not done: its connection is closed, and what it would write to is not touched any more.
  void Cancel(Call& call);
  // Ends all calls, and those still to come, as failed with `fatal` and the error "stopped".
  void Stop();

 private:
  class Loop;
  const std::unique_ptr<Loop> loop_;
};

}  // namespace headrace::side
