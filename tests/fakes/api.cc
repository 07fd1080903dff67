#include "tests/fakes/api.h"

#include <algorithm>

#include "operator/kube/object.h"
#include "operator/kube/store.h"

namespace headrace::kube {
namespace {

using nlohmann::json;

std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// "a", "a=b" and "a!=b", joined by commas.
bool Selected(const json& object, const std::string& selector) {
  for (const std::string& term : Split(selector, ',')) {
    const size_t equals = term.find('=');
    const bool negated = equals != std::string::npos && equals > 0 && term[equals - 1] == '!';
    const std::string label = LabelOf(object, term.substr(0, negated ? equals - 1 : equals));
    if (equals == std::string::npos ? label.empty() : (label == term.substr(equals + 1)) == negated) return false;
  }
  return true;
}

bool InScope(const json& object, const std::string& name_space, const std::string& selector) {
  return !object.is_null() && (name_space.empty() || NamespaceOf(object) == name_space) && Selected(object, selector);
}

// Apply without ownership: objects merge, everything else is replaced.
void MergeInto(json& target, const json& source) {
  for (const auto& [key, value] : source.items()) {
    if (value.is_object() && target[key].is_object()) {
      MergeInto(target[key], value);
    } else {
      target[key] = value;
    }
  }
}

std::string CollectionOf(const Resource& resource) { return resource.api_version() + "/" + resource.plural; }

HttpReply ObjectReply(int status, const json& object) {
  return {status, {{"content-type", "application/json"}}, object.dump()};
}

}  // namespace

HttpReply StatusReply(int status, const std::string& message) {
  return ObjectReply(status, {{"kind", "Status"}, {"code", status}, {"message", message}});
}

std::string ExpiredLine() {
  return json{{"type", "ERROR"},
              {"object", {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}, {"message", "too old"}}}}
      .dump();
}

FakeApi::Target FakeApi::Parse(const std::string& text) {
  Target target;
  const size_t mark = text.find('?');
  if (mark != std::string::npos) {
    for (const std::string& pair : Split(std::string_view(text).substr(mark + 1), '&')) {
      const size_t equals = pair.find('=');
      target.query[Decoded(pair.substr(0, equals))] = Decoded(pair.substr(equals + 1));
    }
  }
  const std::vector<std::string> parts = Split(std::string_view(text).substr(0, mark), '/');
  size_t at = parts.at(0) == "api" ? 2 : 3;
  target.collection = parts.at(0) == "api" ? parts.at(1) : parts.at(1) + "/" + parts.at(2);
  if (at + 2 < parts.size() && parts[at] == "namespaces") {
    target.name_space = Decoded(parts[at + 1]);
    at += 2;
  }
  target.collection += "/" + parts.at(at);
  if (at + 1 < parts.size()) target.name = Decoded(parts[at + 1]);
  if (at + 2 < parts.size()) target.subresource = parts[at + 2];
  return target;
}

json FakeApi::Store(const std::string& collection, json object) {
  json& slot = collections_[collection][KeyOf(object)];
  json& meta = object["metadata"];
  const bool created = slot.is_null();
  meta["uid"] = created ? json("uid-" + std::to_string(next_uid_++)) : slot["metadata"]["uid"];
  meta["resourceVersion"] = created ? json() : slot["metadata"]["resourceVersion"];
  meta["generation"] = created ? json(1) : slot["metadata"]["generation"];
  if (!created && object == slot) return slot;  // a write that changes nothing makes no version
  if (!created && object.value("spec", json()) != slot.value("spec", json()))
    meta["generation"] = slot["metadata"]["generation"].get<int>() + 1;
  meta["resourceVersion"] = std::to_string(++version_);
  events_.push_back({version_, collection, created ? "ADDED" : "MODIFIED", slot, object});
  slot = std::move(object);
  changed_.notify_all();
  return slot;
}

void FakeApi::Erase(const std::string& collection, const std::string& key) {
  Objects& objects = collections_[collection];
  const auto it = objects.find(key);
  if (it == objects.end()) return;
  json before = std::move(it->second);
  objects.erase(it);
  json object = before;
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  events_.push_back({version_, collection, "DELETED", std::move(before), std::move(object)});
  changed_.notify_all();
}

json FakeApi::Put(const Resource& resource, json object) {
  const std::lock_guard lock(mutex_);
  object["apiVersion"] = resource.api_version();
  object["kind"] = resource.kind;
  return Store(CollectionOf(resource), std::move(object));
}

void FakeApi::Remove(const Resource& resource, const std::string& name_space, const std::string& name) {
  const std::lock_guard lock(mutex_);
  Erase(CollectionOf(resource), name_space + "/" + name);
}

json FakeApi::Find(const Resource& resource, const std::string& name_space, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto collection = collections_.find(CollectionOf(resource));
  if (collection == collections_.end()) return {};
  const auto it = collection->second.find(name_space + "/" + name);
  return it == collection->second.end() ? json() : it->second;
}

size_t FakeApi::Count(const Resource& resource) const {
  const std::lock_guard lock(mutex_);
  const auto collection = collections_.find(CollectionOf(resource));
  return collection == collections_.end() ? 0 : collection->second.size();
}

void FakeApi::StreamLists(bool can) {
  const std::lock_guard lock(mutex_);
  streams_lists_ = can;
}

void FakeApi::Compact() {
  const std::lock_guard lock(mutex_);
  compacted_ = ++version_;
}

void FakeApi::EndWatches() {
  const std::lock_guard lock(mutex_);
  ++watch_generation_;
  changed_.notify_all();
}

void FakeApi::Bookmark() {
  std::string version;
  {
    const std::lock_guard lock(mutex_);
    version = std::to_string(version_);
  }
  SendLine(json{{"type", "BOOKMARK"}, {"object", {{"metadata", {{"resourceVersion", version}}}}}}.dump());
}

void FakeApi::SendLine(const std::string& line) {
  std::unique_lock lock(mutex_);
  lines_.push_back(line);
  changed_.notify_all();
  const size_t delivered = lines_delivered_ + open_watches_, ended = watches_ended_;
  changed_.wait_for(lock, std::chrono::seconds(10),
                    [&] { return lines_delivered_ >= delivered || watches_ended_ != ended; });
}

void FakeApi::FailNext(const std::string& match, HttpReply reply, int times) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({match, std::move(reply), times});
}

void FakeApi::ClearFailures() {
  const std::lock_guard lock(mutex_);
  failures_.clear();
}

std::vector<std::string> FakeApi::Calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

size_t FakeApi::CountCalls(const std::string& match) const {
  const std::lock_guard lock(mutex_);
  return std::count_if(calls_.begin(), calls_.end(), [&](const auto& call) { return call.find(match) != call.npos; });
}

size_t FakeApi::open_watches() const {
  const std::lock_guard lock(mutex_);
  return open_watches_;
}

bool FakeApi::WaitUntil(const std::function<bool()>& done) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    std::unique_lock lock(mutex_);
    if (std::chrono::steady_clock::now() > deadline) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(2));  // the tested side changes without telling us
  }
  return true;
}

std::optional<HttpReply> FakeApi::Note(const HttpCall& call) {
  calls_.push_back(call.method + " " + call.target);
  changed_.notify_all();
  for (Failure& failure : failures_) {
    if (failure.times <= 0 || calls_.back().find(failure.match) == std::string::npos) continue;
    --failure.times;
    return failure.reply;
  }
  return std::nullopt;
}

Result<HttpReply> FakeApi::Send(const HttpCall& call) {
  const std::lock_guard lock(mutex_);
  if (auto failure = Note(call)) {
    if (failure->status == 0) return Unavailable(call.method + ": connection refused");
    return *std::move(failure);
  }
  return Execute(call, Parse(call.target));
}

HttpReply FakeApi::Execute(const HttpCall& call, const Target& target) {
  Objects& objects = collections_[target.collection];
  const std::string key = target.name_space + "/" + target.name;
  const auto it = objects.find(key);
  if (call.method == "GET" && target.name.empty()) return List(target);
  if (call.method == "GET")
    return it == objects.end() ? StatusReply(404, key + " not found") : ObjectReply(200, it->second);
  json body = call.body.empty() ? json() : json::parse(call.body);
  if (call.method == "POST") {
    const std::string own = KeyOf(body);
    if (objects.contains(own)) return StatusReply(409, own + " already exists");
    return ObjectReply(201, Store(target.collection, std::move(body)));
  }
  if (call.method == "PATCH") return Patch(call, target, std::move(body));
  if (it == objects.end()) return StatusReply(404, key + " not found");
  if (call.method == "PUT") {
    if (!ResourceVersionOf(body).empty() && ResourceVersionOf(body) != ResourceVersionOf(it->second))
      return StatusReply(409, "the object has been modified");
    return ObjectReply(200, Store(target.collection, std::move(body)));
  }
  const std::string uid = StringAt(body, {"preconditions", "uid"});
  if (!uid.empty() && uid != UidOf(it->second)) return StatusReply(409, "the UID in the precondition does not match");
  Erase(target.collection, key);
  return StatusReply(200, "deleted");
}

HttpReply FakeApi::Patch(const HttpCall& call, const Target& target, json body) {
  Objects& objects = collections_[target.collection];
  const auto it = objects.find(target.name_space + "/" + target.name);
  const bool apply = call.content_type == "application/apply-patch+yaml";
  if (!apply && call.content_type != "application/merge-patch+json") return StatusReply(415, "unsupported media type");
  if (apply && !target.query.contains("fieldManager")) return StatusReply(400, "fieldManager is required for apply");
  if (it == objects.end() && (!apply || !target.subresource.empty())) return StatusReply(404, "not found");
  json object = it == objects.end() ? json::object() : it->second;
  const std::string expected = ResourceVersionOf(body);
  if (!expected.empty() && expected != ResourceVersionOf(object))
    return StatusReply(409, "the object has been modified");
  if (target.subresource == "status") body = {{"status", body.value("status", json::object())}};
  if (apply) {
    MergeInto(object, body);
  } else {
    object.merge_patch(body);
  }
  return ObjectReply(it == objects.end() ? 201 : 200, Store(target.collection, std::move(object)));
}

HttpReply FakeApi::List(const Target& target) {
  const auto query = [&](const char* name) {
    const auto it = target.query.find(name);
    return it == target.query.end() ? std::string() : it->second;
  };
  const size_t limit = query("limit").empty() ? SIZE_MAX : std::stoul(query("limit"));
  // A continue token is "version:key".
  const std::string token = query("continue");
  if (!token.empty() && std::stoll(token) < compacted_) return StatusReply(410, "the continue token is too old");
  const std::string after = token.empty() ? "" : token.substr(token.find(':') + 1);
  json list = {
      {"kind", "List"}, {"items", json::array()}, {"metadata", {{"resourceVersion", std::to_string(version_)}}}};
  for (const auto& [key, object] : collections_[target.collection]) {
    if (key <= after || !InScope(object, target.name_space, query("labelSelector"))) continue;
    if (list["items"].size() == limit) {
      const json& last = list["items"].back();
      list["metadata"]["continue"] = std::to_string(version_) + ":" + KeyOf(last);
      break;
    }
    list["items"].push_back(object);
  }
  return ObjectReply(200, list);
}

Result<HttpReply> FakeApi::Stream(const HttpCall& call, std::chrono::milliseconds, std::stop_token stop,
                                  const std::function<Status(std::string_view)>& on_bytes) {
  std::unique_lock lock(mutex_);
  if (auto failure = Note(call)) {
    if (failure->status == 0) return Unavailable("watch: connection refused");
    return *std::move(failure);
  }
  Target target = Parse(call.target);
  const bool list = target.query.contains("sendInitialEvents");
  if (list && (!streams_lists_ || target.query["resourceVersionMatch"] != "NotOlderThan"))
    return StatusReply(422, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
  std::deque<std::string> initial;  // what is there, and the bookmark that says that this was all
  int64_t from = list ? version_ : std::stoll(target.query["resourceVersion"]);
  if (list) {
    for (const auto& [key, object] : collections_[target.collection]) {
      if (!InScope(object, target.name_space, target.query["labelSelector"])) continue;
      initial.push_back(json{{"type", "ADDED"}, {"object", object}}.dump());
    }
    initial.push_back(json{
        {"type", "BOOKMARK"},
        {"object",
         {{"metadata",
           {{"resourceVersion", std::to_string(version_)}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}}}}
                          .dump());
  }
  if (from < compacted_) return StatusReply(410, "too old resource version");
  const std::string selector = target.query["labelSelector"];
  size_t lines_sent = lines_.size();
  size_t next = 0;
  const int64_t generation = watch_generation_;
  ++open_watches_;
  changed_.notify_all();
  Status status;
  while (status.ok() && !stop.stop_requested() && generation == watch_generation_) {
    std::string line;
    bool raw = false;
    if (!initial.empty()) {
      line = std::move(initial.front());
      initial.pop_front();
    } else if (next < events_.size()) {
      const Event& event = events_[next++];
      if (event.version <= from || event.collection != target.collection) continue;
      from = event.version;
      const bool was = InScope(event.before, target.name_space, selector);
      const bool is = event.type != "DELETED" && InScope(event.object, target.name_space, selector);
      if (!was && !is) continue;
      line = json{{"type", is ? (was ? "MODIFIED" : "ADDED") : "DELETED"}, {"object", event.object}}.dump();
    } else if (lines_sent < lines_.size()) {
      line = lines_[lines_sent++];
      raw = true;
    } else {
      changed_.wait(lock, stop, [&] {
        return next < events_.size() || lines_sent < lines_.size() || generation != watch_generation_;
      });
      continue;
    }
    line += '\n';
    lock.unlock();
    status = on_bytes(line);
    lock.lock();
    if (raw) {
      ++lines_delivered_;
      changed_.notify_all();
    }
  }
  ++watches_ended_;
  --open_watches_;
  changed_.notify_all();
  if (!status.ok()) return status;
  if (stop.stop_requested()) return Cancelled("watch");
  return HttpReply{200, {}, {}};
}

}  // namespace headrace::kube
