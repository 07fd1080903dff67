// Leader election on a Lease: of several replicas one leads. A leader that cannot renew stops leading before another
// can start, by the clocks of each; the others look more often than they would renew, and take over within lease +
// look.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

namespace headrace::kube {

class Client;

class LeaderElector {
 public:
  struct Options {
    std::string name_space;
    std::string lease;
    std::string identity;  // unique among the replicas
    std::chrono::milliseconds duration{15000};
    std::chrono::milliseconds renew_deadline{10000};
    std::chrono::milliseconds retry{2000};  // between two renewals
    std::chrono::milliseconds look{300};    // between two looks at another's lease: what it gave back is not left lying
    std::function<void()> on_lead = {};     // on the elector's thread: leads from now on
    std::function<void()> on_lose = {};     // leads no more; the process is expected to end
    // Asked to stop while leading: the lease is given back when this returns.
    std::function<void()> on_stop = {};
  };
  // `client` (not owned) must outlive the elector; its calls must give up well within duration - renew_deadline.
  LeaderElector(Client* client, Options options);
  // Stops; gives the lease back if it leads, so that another may start at once.
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void Run(std::stop_token stop);
  // Takes or renews the lease. True if it is ours now.
  bool TryHold();
  void Release();
  nlohmann::json LeaseOf(const nlohmann::json& current, bool release) const;

  Client* const client_;
  const Options options_;
  // The elector's thread alone.
  std::string observed_record_;  // holder and renewal as last read; a change restarts the clock
  SteadyTime observed_at_{};

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace headrace::kube
