#include "operator/kube/events.h"

#include <openssl/sha.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "common/base/log.h"
#include "operator/kube/client.h"
#include "operator/kube/object.h"

namespace headrace::kube {
namespace {

using nlohmann::json;
using TimePoint = std::chrono::system_clock::time_point;

constexpr size_t kMaxNoteBytes = 1024;  // the API's own limit
constexpr auto kSeriesLifetime = std::chrono::minutes(6);
constexpr auto kFarewell = std::chrono::seconds(2);

std::string CutAtCharacter(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;  // inside a UTF-8 sequence
  text.resize(limit);
  return text;
}

}  // namespace

std::string MicroTime(TimePoint time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = micros / 1000000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + n, sizeof text - n, ".%06dZ", static_cast<int>(micros % 1000000));
  return text;
}

struct ApiEventRecorder::Occurrence {
  json regarding;  // an ObjectReference
  EventType type;
  std::string reason, action, note;
  TimePoint time;

  // A digest, since notes are long and many are remembered.
  std::string Identity() const {
    const std::string text =
        regarding.dump() + '\n' + reason + '\n' + action + '\n' + note + (type == EventType::kNormal ? "N" : "W");
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
    return {reinterpret_cast<const char*>(digest), 15};  // as long as a string can be without memory of its own
  }
};

struct ApiEventRecorder::Series {
  std::string identity;
  std::string name_space, name;  // of the Event object
  int count = 1;
  TimePoint last;
};

ApiEventRecorder::ApiEventRecorder(Client* client, Options options) : client_(client), options_(std::move(options)) {
  sender_ = std::thread([this] { Run(); });
}

ApiEventRecorder::~ApiEventRecorder() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  sender_.join();
}

void ApiEventRecorder::Record(const json& regarding, EventType type, const std::string& reason,
                              const std::string& action, const std::string& note) {
  auto occurrence = std::make_unique<Occurrence>();
  occurrence->regarding = {{"apiVersion", StringAt(regarding, {"apiVersion"})},
                           {"kind", StringAt(regarding, {"kind"})},
                           {"namespace", NamespaceOf(regarding)},
                           {"name", NameOf(regarding)},
                           {"uid", UidOf(regarding)}};
  occurrence->type = type;
  occurrence->reason = reason;
  occurrence->action = action;
  occurrence->note = CutAtCharacter(note, kMaxNoteBytes);
  occurrence->time = options_.now();
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < options_.queue_limit) {
      queue_.push_back(std::move(occurrence));
      changed_.notify_one();
      return;
    }
  }
  if (options_.on_drop) options_.on_drop();
}

void ApiEventRecorder::Run() {
  std::optional<std::chrono::steady_clock::time_point> give_up;
  for (;;) {
    std::unique_ptr<Occurrence> occurrence;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_ && !give_up) give_up = std::chrono::steady_clock::now() + kFarewell;
      if (queue_.empty() || (give_up && std::chrono::steady_clock::now() >= *give_up)) return;
      occurrence = std::move(queue_.front());
      queue_.pop_front();
    }
    Send(*occurrence);
  }
}

bool ApiEventRecorder::Continue(const std::string& identity, const Occurrence& occurrence, const std::string& time) {
  const auto known = by_identity_.find(identity);
  if (known == by_identity_.end()) return false;
  Series& series = *known->second;
  const json patch = {{"series", {{"count", series.count + 1}, {"lastObservedTime", time}}}};
  if (!client_->MergePatch(kEvents, series.name_space, series.name, patch).ok()) {
    // The Event is gone, or something is wrong with it: make a new one.
    series_.erase(known->second);
    by_identity_.erase(known);
    return false;
  }
  ++series.count;
  series.last = occurrence.time;
  series_.splice(series_.end(), series_, known->second);
  return true;
}

void ApiEventRecorder::Remember(Series series) {
  series_.push_back(std::move(series));
  by_identity_[series_.back().identity] = std::prev(series_.end());
  if (series_.size() > options_.series_limit) ForgetOldest();
}

void ApiEventRecorder::ForgetOldest() {
  by_identity_.erase(series_.front().identity);
  series_.pop_front();
}

void ApiEventRecorder::Send(const Occurrence& occurrence) {
  while (!series_.empty() && occurrence.time - series_.front().last > kSeriesLifetime) ForgetOldest();
  const std::string identity = occurrence.Identity();
  const std::string time = MicroTime(occurrence.time);
  if (Continue(identity, occurrence, time)) return;
  const json& regarding = occurrence.regarding;
  Series series{.identity = identity,
                .name_space = regarding["namespace"].get<std::string>(),
                .name = {},
                .last = occurrence.time};
  if (series.name_space.empty()) series.name_space = "default";  // where events of cluster-scoped objects live
  // Deterministic, so that a request sent twice makes one Event.
  char suffix[17];
  const auto stamp = std::chrono::duration_cast<std::chrono::nanoseconds>(occurrence.time.time_since_epoch()).count();
  std::snprintf(suffix, sizeof suffix, "%016llx",
                static_cast<unsigned long long>(stamp) ^ std::hash<std::string>()(identity));
  series.name = regarding["name"].get<std::string>().substr(0, 230) + "." + suffix;
  const json event = {{"apiVersion", kEvents.api_version()},
                      {"kind", kEvents.kind},
                      {"metadata", {{"namespace", series.name_space}, {"name", series.name}}},
                      {"eventTime", time},
                      {"type", occurrence.type == EventType::kNormal ? "Normal" : "Warning"},
                      {"reason", occurrence.reason},
                      {"action", occurrence.action},
                      {"note", occurrence.note},
                      {"regarding", regarding},
                      {"reportingController", options_.reporting_controller},
                      {"reportingInstance", options_.reporting_instance}};
  const Result<json> created = client_->Create(kEvents, event);
  if (created.ok() || created.status().code() == Code::kConflict) {
    Remember(std::move(series));
  } else {
    log::Warning("event not recorded", {{"reason", occurrence.reason}, {"error", created.status().ToString()}});
  }
}

}  // namespace headrace::kube
