// The connections of a server, and who of them goes when they are too many or their requests too large: the one whose
// peer has been awaited longest. Peers that open connections and say nothing so drive out themselves, not those who
// have something to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace headrace {

// Thread-safe.
class Connections {
  struct Entry {
    std::function<void()> send_away;
    uint64_t bytes = 0;
    bool awaited = true;
    bool leaving = false;
  };

 public:
  // A connection's own; valid until it leaves.
  using Place = std::list<Entry>::iterator;

  // `most` connections, and one that knocks, with, together, `most_bytes` of requests. `on_room` is called, on any
  // thread, once there is room after HasRoom said no.
  Connections(size_t most, uint64_t most_bytes, std::function<void()> on_room);

  // A new connection, whose peer is awaited. `send_away`, called on any thread and at most once, ends it soon.
  Place Enter(std::function<void()> send_away);
  void Leave(Place place);

  // From now on the peer is awaited: for a request, or to take its answer. The bytes of its request are given back.
  void Await(Place place);
  // From now on it is the peer who waits: the connection is not sent away.
  void Hold(Place place);
  // Counts a request of so many bytes, for which others are sent away if need be. False: there is no room for it.
  bool Take(Place place, uint64_t bytes);

  // Whether another connection may enter. If not, somebody is sent away, where anybody but the latest is awaited.
  bool HasRoom();

 private:
  // Picks the longest awaited with at least `bytes` bytes, other than `but`, and returns how to send it away; null if
  // there is none. REQUIRES mutex_.
  std::function<void()> Pick(uint64_t bytes, const Entry* but);

  const size_t most_;
  const uint64_t most_bytes_;
  const std::function<void()> on_room_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the longest awaited first; all below guarded by mutex_
  uint64_t bytes_ = 0;
  bool wanted_ = false;  // HasRoom said no
};

}  // namespace headrace
