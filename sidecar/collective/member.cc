#include "sidecar/collective/member.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"

namespace headrace::side {
namespace {

using Clock = std::chrono::steady_clock;

// With thousands of loaders waiting for worker 0's pod, an attempt a second each is what a name server can bear.
constexpr std::chrono::milliseconds kLongestPause{1000};

}  // namespace

Member::Member(const AgreementOptions& options, Local* local, Rounds* rounds, Transport* transport)
    : Role(options, local, rounds, transport), pause_(patience.tick), until_(Clock::now() + patience.start) {}

void Member::OnOpen(LinkId link) {
  if (link != link_) return;
  phase_ = Phase::kGreeting;
  heard_ = Clock::now();
  wire::Hello hello;
  hello.num_workers = options.topology.num_workers;
  hello.worker = options.topology.worker_index;
  hello.was_complete = complete_;
  hello.run_id = options.run_id;
  hello.plan_hash = options.plan_hash;
  hello.host = options.host_name;
  transport.Send(link, wire::Encode(hello));
}

void Member::OnMessage(LinkId link, const wire::Message& message) {
  if (link != link_) return;
  heard_ = Clock::now();
  if (const auto* welcome = std::get_if<wire::Welcome>(&message); welcome != nullptr && phase_ == Phase::kGreeting) {
    phase_ = Phase::kJoined;
    pause_ = patience.tick;
    host_ = welcome->host;
    was_joined_ = true;
    gave_up_ = other_left_ = told_failure_ = told_over_ = false;
    problem_.clear();
    report_.reset();
    told_ready_.reset();
    return Report();
  }
  if (const auto* refusal = std::get_if<wire::Refusal>(&message); refusal != nullptr && phase_ == Phase::kGreeting) {
    transport.Close(link);
    return Part(refusal->why);
  }
  if (phase_ == Phase::kJoined) {
    if (const auto* known = std::get_if<wire::Known>(&message)) {
      return local.Learn(known->epoch, {known->steps, known->closed});
    }
    if (const auto* failure = std::get_if<wire::Failure>(&message)) return local.Fail(ParseStatus(failure->status));
    if (const auto* news = std::get_if<wire::News>(&message)) return Hear(*news);
    if (const auto* go = std::get_if<wire::Go>(&message)) return rounds.Hear(*go);
    if (const auto* over = std::get_if<wire::Over>(&message)) {
      told_over_ = true;
      return rounds.End(ParseStatus(over->status));
    }
  }
  transport.Close(link);
  Part("it broke the protocol");
}

void Member::Hear(const wire::News& news) {
  complete_ = complete_ || news.complete;
  watched_until_ = std::max(watched_until_, news.watched_until);
  local.Watch(watched_until_);
  local.Forget(news.floor);
  local.Block(news.stuck_from, news.why);
  if (!news.leaving) return Report();
  other_left_ = true;
  transport.Close(link_);
  Part("its loader was stopped");
}

void Member::Part(std::string problem) {
  const Moment now = Clock::now();
  if (phase_ == Phase::kJoined) {
    until_ = now + patience.back;
    rounds.Lose(0, {other_left_ ? Code::kCancelled : Code::kUnavailable, PeerName(0, host_) + " is away: " + problem});
    if (!other_left_ && !leaving()) {
      log::Warning("worker 0's loader is away", {{"worker", PeerName(0, host_)}, {"why", problem}});
    }
  } else if (problem != problem_) {
    log::Info("waiting for worker 0's loader", {{"at", options.coordinator}, {"last attempt", problem}});
  }
  phase_ = Phase::kApart;
  problem_ = std::move(problem);
  next_attempt_ = now + pause_;
  pause_ = std::min(pause_ * 2, std::max(patience.tick, std::min(kLongestPause, patience.heartbeat)));
  if (leaving()) transport.Finish();
}

void Member::OnSent(LinkId link) {
  if (link == link_ && phase_ == Phase::kJoined) Report();
}

void Member::OnClosed(LinkId link, const Status& why) {
  if (link == link_ && phase_ != Phase::kApart) Part(why.message());
}

void Member::OnTick() {
  const Moment now = Clock::now();
  if (leave_by_ && now > *leave_by_) return transport.Finish();
  switch (phase_) {
    case Phase::kApart:
      if (now >= next_attempt_) {
        phase_ = Phase::kConnecting;
        link_ = transport.Connect();
      }
      break;
    case Phase::kConnecting: break;
    case Phase::kGreeting:
    case Phase::kJoined:
      if (now - heard_ > patience.silence) {
        transport.Close(link_);
        Part("no word came from it for " + Seconds(patience.silence));
      } else if (phase_ == Phase::kJoined) {
        Report();
      }
      break;
  }
  if (phase_ != Phase::kJoined && now > until_ && !gave_up_) GiveUp();
}

void Member::GiveUp() {
  gave_up_ = true;
  const std::string name = PeerName(0, host_) + ", where all loaders of the run meet,";
  if (other_left_) {
    // Missed only by who still needs it: see Agreement.
    return local.Block(0, name + " has left: " + problem_ + ", and has not come back for " + Seconds(patience.back));
  }
  if (was_joined_) {
    return local.Fail(Unavailable(name + " was lost: " + problem_ + ", and it has not come back for " +
                                  Seconds(patience.back) + ": see its pod's events and its loader's log"));
  }
  local.Fail(Unavailable(name + " cannot be joined at " + options.coordinator + ": " +
                         (problem_.empty() ? "no answer" : problem_)));
}

void Member::OnWake() {
  if (phase_ == Phase::kJoined) Report();
  if (!leaving()) return;
  if (phase_ != Phase::kJoined) return transport.Finish();
  if (!leave_by_) leave_by_ = Clock::now() + patience.farewell;
}

// Says what is new, if it is time to: at once where somebody waits for it, else with the next heartbeat.
void Member::Report() {
  if (!transport.ready(link_)) return;  // OnSent comes back here
  const Local::Position position = local.position();
  wire::Report report;
  report.epoch = position.epoch;
  report.steps = position.steps;
  report.ended = position.ended;
  report.waits_until = position.waits_until;
  report.leaving = leaving();
  const Moment now = Clock::now();
  const bool urgent = !report_ || report.leaving != report_->leaving || report.waits_until != report_->waits_until ||
                      (report_->epoch < watched_until_ && report != *report_);
  const bool failure = own_failure() && !told_failure_;
  const std::string exchange = NewOfExchange();
  if (!urgent && !failure && exchange.empty() && now - told_ < patience.heartbeat) return;
  std::string bytes;
  if (failure) bytes += wire::Encode(wire::Failure{local.failure().ToString()});
  const uint64_t told_until = report_ ? report_->epoch : 0;
  for (auto final = position.finals.lower_bound(told_until); final != position.finals.end(); ++final) {
    bytes += wire::Encode(wire::Final{final->first, final->second});
  }
  bytes += exchange + wire::Encode(report);
  report_ = report;
  told_failure_ = told_failure_ || failure;
  told_ = now;
  transport.Send(link_, std::move(bytes));
}

std::string Member::NewOfExchange() {
  if (const Status why = rounds.why_ended(); !why.ok()) {
    return std::exchange(told_over_, true) ? "" : wire::Encode(wire::Over{why.ToString()});
  }
  std::optional<wire::Ready> ready = rounds.ready();
  if (ready == told_ready_) return "";
  told_ready_ = std::move(ready);
  return wire::Encode(*told_ready_);
}

}  // namespace headrace::side
