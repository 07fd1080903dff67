#include "common/net/connections.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headrace {

Connections::Connections(size_t most, uint64_t most_bytes, std::function<void()> on_room)
    : most_(most), most_bytes_(most_bytes), on_room_(std::move(on_room)) {}

Connections::Place Connections::Enter(std::function<void()> send_away) {
  const std::lock_guard lock(mutex_);
  return entries_.insert(entries_.end(), Entry{std::move(send_away)});
}

void Connections::Leave(Place place) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ -= place->bytes;
    entries_.erase(place);
    if (!wanted_ || entries_.size() > most_) return;
    wanted_ = false;
  }
  on_room_();
}

void Connections::Await(Place place) {
  const std::lock_guard lock(mutex_);
  bytes_ -= std::exchange(place->bytes, 0);
  place->awaited = true;
  entries_.splice(entries_.end(), entries_, place);
}

void Connections::Hold(Place place) {
  const std::lock_guard lock(mutex_);
  place->awaited = false;
}

bool Connections::Take(Place place, uint64_t bytes) {
  std::vector<std::function<void()>> leaving;
  bool taken = false;
  {
    const std::lock_guard lock(mutex_);
    while (bytes_ + bytes > most_bytes_) {
      std::function<void()> send_away = Pick(1, &*place);
      if (!send_away) break;
      leaving.push_back(std::move(send_away));
    }
    taken = bytes_ + bytes <= most_bytes_;
    if (taken) bytes_ += place->bytes = bytes;
  }
  for (const auto& send_away : leaving) send_away();
  return taken;
}

bool Connections::HasRoom() {
  std::function<void()> send_away;
  {
    const std::lock_guard lock(mutex_);
    if (entries_.size() <= most_) return true;
    wanted_ = true;
    send_away = Pick(0, &entries_.back());
  }
  if (send_away) send_away();
  return false;
}

std::function<void()> Connections::Pick(uint64_t bytes, const Entry* but) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.awaited && !entry.leaving && entry.bytes >= bytes && &entry != but;
  });
  if (found == entries_.end()) return nullptr;
  found->leaving = true;
  bytes_ -= std::exchange(found->bytes, 0);  // theirs in a moment
  return std::move(found->send_away);
}

}  // namespace headrace
