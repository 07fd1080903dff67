// What worker 0 and what the others do with their links. Pure but for the clock: links are the Transport's.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

#include "sidecar/collective/agreement.h"
#include "sidecar/collective/local.h"
#include "sidecar/collective/rounds.h"
#include "sidecar/collective/transport.h"

namespace headrace::side {

using Moment = std::chrono::steady_clock::time_point;

// How long what may take, from the options.
struct Patience {
  explicit Patience(const AgreementOptions& options)
      : start(options.start_timeout_ms),
        back(options.peer_timeout_ms),
        silence(options.peer_timeout_ms * 3 / 5),
        heartbeat(options.peer_timeout_ms / 5),
        tick(std::clamp<int64_t>(options.peer_timeout_ms / 20, 1, 100)) {}
  std::chrono::milliseconds start;      // until all are there
  std::chrono::milliseconds back;       // until a lost peer is lost for good
  std::chrono::milliseconds silence;    // without a word, after which a link counts as dead
  std::chrono::milliseconds heartbeat;  // between words where there is nothing to say
  std::chrono::milliseconds tick;
  std::chrono::milliseconds farewell{500};
};

class Role : public Transport::Events {
 public:
  using LinkId = Transport::LinkId;

  Role(const AgreementOptions& options, Local* local, Rounds* rounds, Transport* transport)
      : options(options), patience(options), local(*local), rounds(*rounds), transport(*transport) {}

  // Any thread; Transport::Wake() makes them heard.
  void Leave() { leaving_ = true; }
  void SetOwnFailure() { own_failure_ = true; }

 protected:
  bool leaving() const { return leaving_; }
  bool own_failure() const { return own_failure_; }

  const AgreementOptions options;
  const Patience patience;
  Local& local;
  Rounds& rounds;
  Transport& transport;

 private:
  std::atomic<bool> leaving_ = false;
  std::atomic<bool> own_failure_ = false;  // local's failure came from this worker
};

// "worker 2 (host trainer-2)"
std::string PeerName(int64_t worker, const std::string& host);
// "5.0 s"
std::string Seconds(std::chrono::milliseconds time);

}  // namespace headrace::side
