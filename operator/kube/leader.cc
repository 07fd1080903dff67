#include "operator/kube/leader.h"

#include <nlohmann/json.hpp>

#include "common/base/log.h"
#include "operator/kube/client.h"
#include "operator/kube/events.h"
#include "operator/kube/object.h"

namespace headrace::kube {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

std::string HolderOf(const json& lease) { return StringAt(lease, {"spec", "holderIdentity"}); }

}  // namespace

LeaderElector::LeaderElector(Client* client, Options options) : client_(client), options_(std::move(options)) {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

LeaderElector::~LeaderElector() = default;

void LeaderElector::Run(std::stop_token stop) {
  bool leading = false;
  SteadyTime renewed{};
  const auto left = [&] { return renewed + options_.renew_deadline - steady_clock::now(); };
  while (!stop.stop_requested()) {
    const SteadyTime asked = steady_clock::now();  // before the call: the others count from when the server stored it
    if (TryHold()) {
      renewed = asked;
      if (!std::exchange(leading, true)) {
        log::Info("leading", {{"lease", options_.lease}, {"identity", options_.identity}});
        if (options_.on_lead) options_.on_lead();
      }
    }
    if (leading && left() <= SteadyTime::duration::zero()) {
      log::Error("leadership lost", {{"lease", options_.lease}});
      if (options_.on_lose) options_.on_lose();
      return;
    }
    std::unique_lock lock(mutex_);
    const SteadyTime::duration wait = leading ? std::min<SteadyTime::duration>(options_.retry, left()) : options_.look;
    changed_.wait_for(lock, stop, wait, [] { return false; });
  }
  if (!leading) return;
  if (options_.on_stop) options_.on_stop();
  Release();
}

json LeaderElector::LeaseOf(const json& current, bool release) const {
  const std::string now = MicroTime(std::chrono::system_clock::now());
  const bool ours = HolderOf(current) == options_.identity;
  json lease = {{"apiVersion", kLeases.api_version()},
                {"kind", kLeases.kind},
                {"metadata", {{"namespace", options_.name_space}, {"name", options_.lease}}}};
  json& spec = lease["spec"];
  if (current.is_object()) {
    lease["metadata"]["resourceVersion"] = ResourceVersionOf(current);
    spec = current.value("spec", json::object());
  }
  spec["holderIdentity"] = release ? "" : options_.identity;
  spec["leaseDurationSeconds"] =
      release ? 1 : std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::seconds>(options_.duration).count());
  spec["renewTime"] = now;
  if (!ours && !release) {
    spec["acquireTime"] = now;
    spec["leaseTransitions"] = spec.value("leaseTransitions", -1) + 1;
  }
  return lease;
}

bool LeaderElector::TryHold() {
  const Result<json> current = client_->Get(kLeases, options_.name_space, options_.lease);
  if (!current.ok()) {
    if (current.status().code() != Code::kNotFound) return false;
    return client_->Create(kLeases, LeaseOf(json(), false)).ok();
  }
  const std::string holder = HolderOf(*current);
  // Clocks of different machines are not compared: a lease is over when it did not change for its duration.
  const std::string record = holder + " " + StringAt(*current, {"spec", "renewTime"});
  if (record != observed_record_) {
    observed_record_ = record;
    observed_at_ = steady_clock::now();
  }
  const bool over = holder.empty() || steady_clock::now() - observed_at_ >= options_.duration;
  if (holder != options_.identity && !over) return false;
  // The resource version makes it a race that one replica wins.
  return client_->Replace(kLeases, LeaseOf(*current, false)).ok();
}

void LeaderElector::Release() {
  const Result<json> current = client_->Get(kLeases, options_.name_space, options_.lease);
  if (current.ok() && HolderOf(*current) == options_.identity &&
      client_->Replace(kLeases, LeaseOf(*current, true)).ok())
    log::Info("leadership released", {{"lease", options_.lease}});
}

}  // namespace headrace::kube
