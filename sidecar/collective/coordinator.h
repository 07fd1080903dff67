// Worker 0: keeps the ledger, and tells each other worker what it waits for.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sidecar/collective/role.h"

namespace headrace::side {

class Coordinator : public Role {
 public:
  Coordinator(const AgreementOptions& options, Local* local, Rounds* rounds, Transport* transport);

  void OnOpen(LinkId link) override;
  void OnMessage(LinkId link, const wire::Message& message) override;
  void OnSent(LinkId link) override;
  void OnClosed(LinkId link, const Status& why) override;
  void OnTick() override;
  void OnWake() override;

 private:
  enum class Presence {
    kExpected,  // has never been here
    kHere,
    kAway,  // lost; may come back
    kLeft,  // said goodbye; may come back
    kGone,  // said goodbye, and did not come back in time
  };
  struct Peer {
    int64_t worker = 0;
    Presence presence = Presence::kExpected;
    Moment until;  // of our patience with one that is not here
    LinkId link = 0;
    Moment heard;
    std::string host;
    std::string problem;  // why it is not here, as far as we know
    uint64_t waits_until = 0;
    // What it has been told over this link.
    std::optional<wire::News> news;
    std::map<uint64_t, wire::Known> known;
    bool knows_failure = false;
    std::optional<wire::Go> go;
    bool knows_over = false;
    Moment told;
  };

  void Greet(LinkId link, const wire::Hello& hello);
  std::string ReasonToRefuse(const wire::Hello& hello) const;
  void Hear(Peer& peer, const wire::Message& message);
  void Depart(Peer& peer, Presence presence, std::string problem);
  void Await(Peer& peer, Moment now);
  void Settle();
  void Tell(Peer& peer);
  // What of the exchange the peer has not been told.
  std::string NewOfExchange(Peer& peer) const;
  wire::News CurrentNews() const;
  Peer* PeerOf(LinkId link);

  Ledger ledger_;
  std::vector<Peer> peers_;  // workers 1 ...
  std::map<LinkId, Peer*> peer_of_link_;
  std::map<LinkId, Moment> strangers_;  // links that have not said hello, or are being refused
  uint64_t watched_until_ = 0;
  bool complete_ = false;
  std::string last_refusal_;  // logged once, not at each of its attempts
  std::optional<Moment> leave_by_;
};

}  // namespace headrace::side
