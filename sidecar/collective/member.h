// Every worker but 0: keeps a link to worker 0, says where it is, hears what it waits for.
#pragma once

#include <optional>

#include "sidecar/collective/role.h"

namespace headrace::side {

class Member : public Role {
 public:
  Member(const AgreementOptions& options, Local* local, Rounds* rounds, Transport* transport);

  void OnOpen(LinkId link) override;
  void OnMessage(LinkId link, const wire::Message& message) override;
  void OnSent(LinkId link) override;
  void OnClosed(LinkId link, const Status& why) override;
  void OnTick() override;
  void OnWake() override;

 private:
  enum class Phase {
    kApart,       // until the next attempt
    kConnecting,  // an attempt is under way
    kGreeting,    // hello was said
    kJoined,
  };

  void Hear(const wire::News& news);
  // The link is no more, and why. The next attempt follows soon.
  void Part(std::string problem);
  void GiveUp();
  void Report();
  // What of the exchange worker 0 has not been told.
  std::string NewOfExchange();

  Phase phase_ = Phase::kApart;
  LinkId link_ = 0;
  Moment heard_;
  Moment next_attempt_;
  std::chrono::milliseconds pause_;  // between attempts
  Moment until_;                     // of our patience while not joined
  bool gave_up_ = false;             // said once for each parting

  std::string host_;     // worker 0's
  std::string problem_;  // why we are not joined, as far as we know
  bool was_joined_ = false;
  bool complete_ = false;
  bool other_left_ = false;  // worker 0 said goodbye
  uint64_t watched_until_ = 0;
  std::optional<Moment> leave_by_;

  // What worker 0 has been told over this link.
  std::optional<wire::Report> report_;
  bool told_failure_ = false;
  std::optional<wire::Ready> told_ready_;
  bool told_over_ = false;
  Moment told_;
};

}  // namespace headrace::side
