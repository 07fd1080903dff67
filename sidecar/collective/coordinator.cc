#include "sidecar/collective/coordinator.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"

namespace headrace::side {
namespace {

using Clock = std::chrono::steady_clock;

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

Coordinator::Coordinator(const AgreementOptions& options, Local* local, Rounds* rounds, Transport* transport)
    : Role(options, local, rounds, transport),
      ledger_(options.topology.num_workers),
      peers_(static_cast<size_t>(options.topology.num_workers - 1)) {
  const Moment until = Clock::now() + patience.start;
  for (size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].worker = static_cast<int64_t>(i) + 1;
    peers_[i].until = until;
  }
}

void Coordinator::OnOpen(LinkId link) { strangers_[link] = Clock::now(); }

void Coordinator::OnMessage(LinkId link, const wire::Message& message) {
  if (Peer* const peer = PeerOf(link)) {
    peer->heard = Clock::now();
    return Hear(*peer, message);
  }
  const auto* const hello = std::get_if<wire::Hello>(&message);
  if (hello != nullptr && transport.ready(link)) return Greet(link, *hello);
  strangers_.erase(link);
  transport.Close(link);
}

void Coordinator::Greet(LinkId link, const wire::Hello& hello) {
  const std::string reason = ReasonToRefuse(hello);
  if (!reason.empty()) {
    if (reason != last_refusal_) log::Warning("a loader was refused", {{"reason", reason}});
    last_refusal_ = reason;
    if (hello.worker > 0 && hello.worker < options.topology.num_workers) {
      peers_[static_cast<size_t>(hello.worker - 1)].problem = "it was refused: " + reason;
    }
    transport.Send(link, wire::Encode(wire::Refusal{reason}));
    return;
  }
  strangers_.erase(link);
  Peer& peer = peers_[static_cast<size_t>(hello.worker - 1)];
  if (peer.presence == Presence::kHere) {  // came back before we knew that it was away
    peer_of_link_.erase(peer.link);
    transport.Close(peer.link);
    rounds.Lose(peer.worker, Unavailable(PeerName(peer.worker, peer.host) + " was away: it has come back"));
  }
  const Moment now = Clock::now();
  if (hello.was_complete && !complete_) {  // it is we who came back: the others are on their way, or lost
    for (Peer& other : peers_) {
      if (other.presence == Presence::kExpected) other.until = std::min(other.until, now + patience.back);
    }
  }
  peer.presence = Presence::kHere;
  peer.link = link;
  peer.heard = peer.told = now;
  peer.host = hello.host;
  peer.waits_until = 0;
  peer.news.reset();
  peer.known.clear();
  peer.knows_failure = peer.knows_over = false;
  peer.go.reset();
  peer_of_link_[link] = &peer;
  transport.Send(link, wire::Encode(wire::Welcome{options.host_name}));
  complete_ = complete_ || std::none_of(peers_.begin(), peers_.end(),
                                        [](const Peer& other) { return other.presence == Presence::kExpected; });
  transport.Wake();
}

std::string Coordinator::ReasonToRefuse(const wire::Hello& hello) const {
  if (hello.version != wire::kVersion) {
    return "a loader speaks version " + std::to_string(hello.version) + ", worker 0's (host " + options.host_name +
           ") version " + std::to_string(wire::kVersion) + ": all loaders of a run must be of one image";
  }
  const std::string they = PeerName(hello.worker, hello.host);
  const std::string we = PeerName(0, options.host_name);
  const std::string remedy = "; loaders of one run must agree. If pods of an earlier run are still ending, wait";
  if (hello.run_id != options.run_id) {
    return they + " is of run " + Quoted(hello.run_id) + ", " + we + " of run " + Quoted(options.run_id) + remedy;
  }
  if (hello.plan_hash != options.plan_hash) {
    return they + " has plan " + Quoted(hello.plan_hash) + ", " + we + " plan " + Quoted(options.plan_hash) + remedy;
  }
  const int64_t workers = options.topology.num_workers;
  if (hello.num_workers != workers) {
    return they + " is one of " + std::to_string(hello.num_workers) + " workers, " + we + " of " +
           std::to_string(workers) + remedy;
  }
  if (hello.worker < 1 || hello.worker >= workers) {
    return they + ": the workers beside worker 0 are 1 to " + std::to_string(workers - 1);
  }
  return "";
}

void Coordinator::Hear(Peer& peer, const wire::Message& message) {
  if (const auto* final = std::get_if<wire::Final>(&message)) {
    ledger_.AddFinal(final->epoch, final->steps);
  } else if (const auto* report = std::get_if<wire::Report>(&message)) {
    ledger_.Report(peer.worker, report->epoch, report->steps, report->ended);
    peer.waits_until = report->waits_until;
    if (report->leaving) {
      transport.Close(peer.link);
      Depart(peer, Presence::kLeft, "its loader was stopped");
    }
  } else if (const auto* failure = std::get_if<wire::Failure>(&message)) {
    local.Fail(ParseStatus(failure->status));
  } else if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    rounds.Hear(peer.worker, *ready);
  } else if (const auto* over = std::get_if<wire::Over>(&message)) {
    rounds.End(ParseStatus(over->status));
  } else {
    transport.Close(peer.link);
    Depart(peer, Presence::kAway, "it broke the protocol");
  }
  transport.Wake();
}

void Coordinator::Depart(Peer& peer, Presence presence, std::string problem) {
  peer_of_link_.erase(peer.link);
  peer.presence = presence;
  peer.until = Clock::now() + patience.back;
  peer.problem = std::move(problem);
  rounds.Lose(peer.worker, {presence == Presence::kLeft ? Code::kCancelled : Code::kUnavailable,
                            PeerName(peer.worker, peer.host) + " is away: " + peer.problem});
  if (presence == Presence::kAway && !leaving()) {
    log::Warning("a worker's loader is away", {{"worker", PeerName(peer.worker, peer.host)}, {"why", peer.problem}});
  }
}

void Coordinator::OnSent(LinkId link) {
  if (Peer* const peer = PeerOf(link)) return Tell(*peer);
  // A refusal: all has been said.
  strangers_.erase(link);
  transport.Close(link);
}

void Coordinator::OnClosed(LinkId link, const Status& why) {
  strangers_.erase(link);
  if (Peer* const peer = PeerOf(link)) Depart(*peer, Presence::kAway, why.message());
  if (leaving() && peer_of_link_.empty()) transport.Finish();
}

void Coordinator::OnTick() {
  const Moment now = Clock::now();
  if (leave_by_ && now > *leave_by_) return transport.Finish();
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const bool silent = now - stranger->second > patience.silence;
    if (silent) transport.Close(stranger->first);
    stranger = silent ? strangers_.erase(stranger) : std::next(stranger);
  }
  for (Peer& peer : peers_) Await(peer, now);
  Settle();
}

void Coordinator::Await(Peer& peer, Moment now) {
  const std::string name = PeerName(peer.worker, peer.host);
  const std::string problem = peer.problem.empty() ? "" : " (" + peer.problem + ")";
  switch (peer.presence) {
    case Presence::kHere:
      if (now - peer.heard <= patience.silence) return;
      transport.Close(peer.link);
      return Depart(peer, Presence::kAway, "no word came from it for " + Seconds(patience.silence));
    case Presence::kExpected:
      if (now <= peer.until) return;
      return local.Fail(Unavailable(name + " has not connected to worker 0 in time" + problem +
                                    ": is its pod running, and can it reach " + options.coordinator + "?"));
    case Presence::kAway:
      if (now <= peer.until) return;
      return local.Fail(Unavailable(name + " was lost: " + peer.problem + ", and it has not come back for " +
                                    Seconds(patience.back) + ": see its pod's events and its loader's log"));
    case Presence::kLeft:
      if (now > peer.until) peer.presence = Presence::kGone;
      return;
    case Presence::kGone: return;
  }
}

void Coordinator::OnWake() {
  Settle();
  if (!leaving()) return;
  if (peer_of_link_.empty()) return transport.Finish();
  if (!leave_by_) leave_by_ = Clock::now() + patience.farewell;
}

wire::News Coordinator::CurrentNews() const {
  wire::News news;
  news.complete = complete_;
  news.leaving = leaving();
  news.watched_until = watched_until_;
  news.floor = ledger_.floor();
  for (const Peer& peer : peers_) {
    if (peer.presence != Presence::kGone) continue;
    const uint64_t open = ledger_.FirstOpenOf(peer.worker);
    if (open >= news.stuck_from) continue;
    news.stuck_from = open;
    news.why = PeerName(peer.worker, peer.host) + " left before the end of epoch " + std::to_string(open) +
               ": its loader was stopped, and has not come back for " + Seconds(patience.back);
  }
  return news;
}

// Brings the ledger, this worker and the others up to date.
void Coordinator::Settle() {
  const Local::Position own = local.position();
  for (const auto& [epoch, steps] : own.finals) ledger_.AddFinal(epoch, steps);
  ledger_.Report(0, own.epoch, own.steps, own.ended);
  watched_until_ = std::max(watched_until_, own.waits_until);
  for (const Peer& peer : peers_) watched_until_ = std::max(watched_until_, peer.waits_until);
  const wire::News news = CurrentNews();
  local.Watch(watched_until_);
  local.Forget(news.floor);
  if (own.waits_until > 0) local.Learn(own.waits_until - 1, ledger_.Of(own.waits_until - 1));
  local.Block(news.stuck_from, news.why);
  for (Peer& peer : peers_) {
    if (peer.presence == Presence::kHere) Tell(peer);
  }
}

void Coordinator::Tell(Peer& peer) {
  if (!transport.ready(peer.link)) return;  // OnSent comes back here
  std::string bytes;
  const Status failure = local.failure();
  if (!failure.ok() && !peer.knows_failure) bytes += wire::Encode(wire::Failure{failure.ToString()});
  bytes += NewOfExchange(peer);
  const wire::News news = CurrentNews();
  // What it waits for; an end as soon as it is known, so that nobody depends on us for it; all, before we leave.
  std::vector<uint64_t> epochs;
  if (peer.waits_until > 0) epochs.push_back(peer.waits_until - 1);
  if (ledger_.Of(news.floor).closed) epochs.push_back(news.floor);
  if (news.leaving) epochs = ledger_.Epochs();
  peer.known.erase(peer.known.begin(), peer.known.lower_bound(news.floor));
  for (const uint64_t epoch : epochs) {
    const EpochKnowledge knowledge = ledger_.Of(epoch);
    const wire::Known known{epoch, knowledge.steps, knowledge.closed};
    const auto [told, fresh] = peer.known.try_emplace(epoch, known);
    if (!fresh && told->second == known) continue;
    told->second = known;
    bytes += wire::Encode(known);
  }
  const Moment now = Clock::now();
  if (peer.news != news || now - peer.told >= patience.heartbeat) bytes += wire::Encode(news);
  if (bytes.empty()) return;
  peer.news = news;
  peer.told = now;
  peer.knows_failure = !failure.ok();
  transport.Send(peer.link, std::move(bytes));
}

std::string Coordinator::NewOfExchange(Peer& peer) const {
  if (const Status why = rounds.why_ended(); !why.ok()) {
    return std::exchange(peer.knows_over, true) ? "" : wire::Encode(wire::Over{why.ToString()});
  }
  std::optional<wire::Go> go = rounds.GoOf(peer.worker);
  if (go == peer.go) return "";
  peer.go = std::move(go);
  return wire::Encode(*peer.go);
}

Coordinator::Peer* Coordinator::PeerOf(LinkId link) {
  const auto found = peer_of_link_.find(link);
  return found == peer_of_link_.end() ? nullptr : found->second;
}

}  // namespace headrace::side
