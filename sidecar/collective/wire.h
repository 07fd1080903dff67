// What the loaders of a run say to each other, as bytes.
//
// A frame is the length of what follows (u32), a kind (u8) and the kind's fields, little-endian. The loaders of one run
// speak one version: a Hello of another version is read as far as its version, and refused. Hello's first fields and
// Refusal never change.
//
// Reports and News are whole states, never differences: a connection that is made anew starts with them, and nothing
// that was lost with the old one is missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/status.h"

namespace headrace::side::wire {

inline constexpr uint16_t kVersion = 2;
inline constexpr size_t kMaxFrameBytes = 16 << 10;
inline constexpr size_t kMaxTextBytes = 2 << 10;  // longer texts are cut when written
inline constexpr uint64_t kNever = ~uint64_t{0};

// Member to coordinator, once, first.
struct Hello {
  uint16_t version = kVersion;
  int64_t num_workers = 0;
  int64_t worker = 0;
  bool was_complete = false;  // this process has known the run with all of its workers connected
  std::string run_id;
  std::string plan_hash;
  std::string host;
  bool operator==(const Hello&) const = default;
};
// Coordinator to member, the answer.
struct Welcome {
  std::string host;
  bool operator==(const Welcome&) const = default;
};
struct Refusal {
  std::string why;
  bool operator==(const Refusal&) const = default;
};
// Member to coordinator: how many steps it had produced in an epoch that it has left. Before the Report that leaves it.
struct Final {
  uint64_t epoch = 0;
  int64_t steps = 0;
  bool operator==(const Final&) const = default;
};
// Member to coordinator: where it is.
struct Report {
  uint64_t epoch = 0;
  int64_t steps = 0;
  bool ended = false;
  bool leaving = false;      // the last word before an orderly end
  uint64_t waits_until = 0;  // somebody at this worker waits in epoch waits_until - 1; 0: nobody
  bool operator==(const Report&) const = default;
};
// Coordinator to member: what concerns the whole run.
struct News {
  bool complete = false;         // all workers have been connected
  bool leaving = false;          // the coordinator's last word before an orderly end
  uint64_t watched_until = 0;    // progress in epochs below this is waited for: report it at once
  uint64_t floor = 0;            // no worker is in an epoch below this
  uint64_t stuck_from = kNever;  // epochs from this on can never be closed, because `why`
  std::string why;
  bool operator==(const News&) const = default;
};
// Coordinator to member: epoch `epoch` has at least this many steps; exactly as many if closed.
struct Known {
  uint64_t epoch = 0;
  int64_t steps = 0;
  bool closed = false;
  bool operator==(const Known&) const = default;
};
// Either way: the run is over for everybody. `status` is Status::ToString().
struct Failure {
  std::string status;
  bool operator==(const Failure&) const = default;
};
// Member to coordinator: it can take what round `round` of the exchange moves, and wants the deliveries of an epoch
// from one on: they are counted over steps and replicas.
struct Ready {
  uint64_t round = 0;
  uint64_t epoch = 0;
  uint64_t delivery = 0;
  uint64_t seed = 0;
  bool operator==(const Ready&) const = default;
};
// Coordinator to member: the round begins. It moves that delivery, in so many bytes, or else says that the epoch has no
// more; round 0 says what to join by.
struct Go {
  uint64_t round = 0;
  uint64_t epoch = 0;
  uint64_t delivery = 0;
  uint64_t bytes = 0;
  bool ended = false;
  std::string id;
  bool operator==(const Go&) const = default;
};
// Either way: there is no exchange, or none any more. `status` is Status::ToString(); Cancelled: a loader has left.
struct Over {
  std::string status;
  bool operator==(const Over&) const = default;
};

using Message = std::variant<Hello, Welcome, Refusal, Final, Report, News, Known, Failure, Ready, Go, Over>;

// The message as one frame.
std::string Encode(const Message& message);

// The first whole frame of `bytes`, which loses it; nothing if there is none yet. Errors: Corrupt for what cannot be a
// frame of this protocol, however it goes on.
Result<std::optional<Message>> Decode(std::string_view* bytes);

}  // namespace headrace::side::wire
