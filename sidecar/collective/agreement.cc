#include "sidecar/collective/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sidecar/collective/coordinator.h"
#include "sidecar/collective/local.h"
#include "sidecar/collective/member.h"
#include "sidecar/collective/transport.h"

namespace headrace::side {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

bool IsUnix(const std::string& address) { return address.rfind("unix:", 0) == 0; }

Status Check(const AgreementOptions& options) {
  const Topology& topology = options.topology;
  if (topology.num_workers < 2 || topology.worker_index < 0 || topology.worker_index >= topology.num_workers) {
    return InvalidArgument("worker " + std::to_string(topology.worker_index) + " of " +
                           std::to_string(topology.num_workers) + ": an agreement is between at least two workers");
  }
  if (options.peer_timeout_ms < 1 || options.start_timeout_ms < 1) {
    return InvalidArgument("the timeouts of an agreement are at least 1 ms");
  }
  if (!IsUnix(options.coordinator) && options.tls_dir.empty()) {
    return InvalidArgument("loaders meet at " + options.coordinator + " over TCP, but there is no folder of " +
                           "certificates (ca.crt, tls.crt, tls.key): loaders speak to others through TLS alone");
  }
  return {};
}

TransportOptions TransportOf(const AgreementOptions& options) {
  const Patience patience(options);
  TransportOptions transport;
  transport.tls_dir = options.tls_dir;
  transport.tick = patience.tick;
  transport.open_timeout = std::max(patience.silence, std::chrono::milliseconds(100));
  if (options.topology.worker_index > 0) {
    transport.connect = options.coordinator;
    return transport;
  }
  // Twice: each may come back before we know that it was away.
  transport.max_links = static_cast<size_t>(options.topology.num_workers) * 2 + 16;
  transport.listen = options.listen;
  if (transport.listen.empty()) {
    const size_t colon = options.coordinator.rfind(':');
    transport.listen = IsUnix(options.coordinator) || colon == std::string::npos ? options.coordinator
                                                                                 : options.coordinator.substr(colon);
  }
  return transport;
}

}  // namespace

std::string PeerName(int64_t worker, const std::string& host) {
  return "worker " + std::to_string(worker) + (host.empty() ? "" : " (host " + host + ")");
}

std::string Seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

// The transport goes first: its thread calls the role.
struct Agreement::State {
  AgreementOptions options;
  Local local;
  std::unique_ptr<Rounds> rounds;
  std::unique_ptr<Role> role;
  std::unique_ptr<Transport> transport;
};

Agreement::Agreement(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Agreement>> Agreement::Start(AgreementOptions options) {
  RETURN_IF_ERROR(Check(options));
  if (options.host_name.empty()) options.host_name = HostName();
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  ASSIGN_OR_RETURN(state->transport, Transport::Create(TransportOf(state->options)));
  Transport* const transport = state->transport.get();
  state->rounds = std::make_unique<Rounds>(state->options.topology.num_workers, [transport] { transport->Wake(); });
  if (state->options.topology.worker_index == 0) {
    state->role = std::make_unique<Coordinator>(state->options, &state->local, state->rounds.get(), transport);
  } else {
    state->role = std::make_unique<Member>(state->options, &state->local, state->rounds.get(), transport);
  }
  state->transport->Start(state->role.get());
  return std::unique_ptr<Agreement>(new Agreement(std::move(state)));
}

Agreement::~Agreement() {
  state_->role->Leave();
  state_->transport->Wake();
  state_->transport->Join();
}

void Agreement::Announce(uint64_t epoch, int64_t steps, bool ended) {
  if (state_->local.Announce(epoch, steps, ended)) state_->transport->Wake();
}

Result<bool> Agreement::AnyHasStep(uint64_t epoch, int64_t step, const std::function<bool()>& give_up) {
  return state_->local.AnyHasStep(epoch, step, give_up, [this] { state_->transport->Wake(); });
}

void Agreement::Fail(const Status& why) {
  const int64_t worker = state_->options.topology.worker_index;
  state_->local.Fail(why.WithContext(PeerName(worker, state_->options.host_name)));
  state_->role->SetOwnFailure();
  state_->transport->Wake();
}

Status Agreement::failure() const { return state_->local.failure(); }

Rounds& Agreement::rounds() { return *state_->rounds; }

uint16_t Agreement::port() const { return state_->transport->port(); }

}  // namespace headrace::side
