// Agreement between the loaders of a run: how many steps an epoch has when workers have unequal data.
//
// An epoch has as many steps as the worker with the most; workers that end earlier deliver batches without rows until
// then. Each loader announces what it has produced, at no cost while nobody asks; a loader whose own data has ended
// asks whether any other still has some, while it prefetches, so ahead of the trainers.
//
// All loaders meet at worker 0's. A loader that is killed and comes back within the peer timeout reconnects and says
// where it is, the coordinator included; nothing is lost. One that does not come back ends the run for all: failure()
// names it, within 10 s of its death with the default timeouts. What this protocol is not for: data, and taking part
// without a Topology of at least two workers.
//
// A loader that ends in an orderly way says goodbye. It is missed only in epochs that it had neither ended nor left:
// once the peer timeout has passed without its return, AnyHasStep is Unavailable there, while failure() stays ok. At
// the end of training that is what loaders get that prefetch an epoch nobody will read; it is an error only where a
// trainer wants that epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/spec/plan.h"
#include "sidecar/collective/rounds.h"

namespace headrace::side {

struct AgreementOptions {
  Topology topology;  // num_workers > 1
  std::string run_id;
  std::string plan_hash;
  // Where worker 0 is found: "host:port", over mutual TLS, or "unix:/path" where all loaders are of one machine and
  // user.
  std::string coordinator;
  // Where worker 0 listens; empty: at the coordinator's port on all addresses, or at its path. Port 0: see port().
  std::string listen;
  std::string tls_dir;                // ca.crt, tls.crt, tls.key; read anew at each connection
  std::string host_name;              // for messages; empty: this host's, which is the pod's name
  int64_t peer_timeout_ms = 5000;     // for a lost peer to come back
  int64_t start_timeout_ms = 600000;  // for all workers to be there: pods are scheduled and pull images
};

class Agreement {
 public:
  // Does not wait for the others. Errors: InvalidArgument for options that cannot be; Unavailable if worker 0 cannot
  // listen. Everything later is told by failure(): also a refusal, since what refuses may be the last pod of an earlier
  // run, which goes away.
  static Result<std::unique_ptr<Agreement>> Start(AgreementOptions options);
  // Says goodbye, which takes at most a second, and joins the network's thread.
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  // This worker has produced `steps` steps of `epoch`, and has no more data of its own in it if `ended`. Only ever
  // adds: lower numbers are no news. A later epoch ends the ones before it at what was announced. Never blocks. By one
  // thread at a time; the rest of this class by any.
  void Announce(uint64_t epoch, int64_t steps, bool ended);

  // Whether any worker has data for step `step` (from 0) of `epoch`. Blocks until that is known. REQUIRES: this worker
  // has announced that it ended in `epoch`, or none will ever know. `give_up` is asked at least every 50 ms.
  // Errors: Cancelled if it gives up; what failure() says; Unavailable if a worker that is needed has left for good.
  Result<bool> AnyHasStep(uint64_t epoch, int64_t step, const std::function<bool()>& give_up);

  // This worker cannot go on: all workers fail with `why` (not ok), which need not name this one.
  void Fail(const Status& why);

  // Not ok once the run cannot go on. One atomic load while it can.
  Status failure() const;

  // Over the same connections, when to move what in an exchange of batches.
  Rounds& rounds();

  uint16_t port() const;  // of worker 0

 private:
  struct State;
  explicit Agreement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace::side
