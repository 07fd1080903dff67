#include "operator/kube/informer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/log.h"
#include "operator/kube/object.h"
#include "operator/kube/transport.h"
#include "operator/kube/watch_line.h"

namespace headrace::kube {
namespace {

using nlohmann::json;

// An event holds one object, and etcd takes none above 1.5 MiB.
constexpr size_t kMaxEventBytes = 64 << 20;

constexpr char kListEnds[] = "k8s.io/initial-events-end";  // an annotation of the bookmark behind a streamed list

bool Expired(const Status& status) { return status.code() == Code::kExhausted; }

}  // namespace

Informer::Informer(HttpTransport* transport, Client* client, InformerOptions options)
    : transport_(transport),
      client_(client),
      options_(std::move(options)),
      store_(options_.index),
      streams_lists_(options_.stream_lists),
      random_(std::random_device{}()) {}

Informer::~Informer() { Stop(); }

void Informer::AddHandler(InformerHandler handler) { handlers_.push_back(std::move(handler)); }

void Informer::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

void Informer::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool Informer::WaitForSync(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return synced_.load(); });
}

std::chrono::milliseconds Informer::Backoff(int failures) {
  std::chrono::milliseconds delay = options_.backoff_min;
  for (int i = 0; i < failures && delay < options_.backoff_max; ++i) delay *= 2;
  delay = std::min(delay, options_.backoff_max);
  std::uniform_int_distribution<int64_t> jitter(0, delay.count());
  return std::min(delay + std::chrono::milliseconds(jitter(random_)), options_.backoff_max);
}

void Informer::Run(std::stop_token stop) {
  int failures = 0;
  bool paged_next = false;
  while (!stop.stop_requested()) {
    const bool list = resource_version_.empty();
    // A streamed list that failed is followed by one in pages: whatever was in the way of the one may let the other
    // pass.
    const bool streamed = list && streams_lists_ && !paged_next;
    const Status status = list && !streamed ? ListAll() : Watch(stop, streamed);
    if (stop.stop_requested()) return;
    paged_next = streamed && !listed_;
    if (paged_next && status.code() == Code::kInvalidArgument) {
      streams_lists_ = false;  // an older server, or one with the feature off
      continue;
    }
    if (options_.on_call) options_.on_call(list && !streamed ? "list" : paged_next ? "watchlist" : "watch", status);
    if (status.ok() && !paged_next && (list || progress_)) {
      if (!list) failures = 0;
      continue;
    }
    // A watch that ends at once without a word, or fails after it worked, is tried again like any failure: not hot.
    if (!list && progress_) failures = 0;
    if (!status.ok() && !Expired(status))
      log::Warning(
          "informer",
          {{"resource", options_.resource.plural}, {"verb", list ? "list" : "watch"}, {"error", status.ToString()}});
    const bool at_once = failures++ == 0 && Expired(status);
    std::unique_lock lock(mutex_);
    if (!at_once) changed_.wait_for(lock, stop, Backoff(failures - 1), [] { return false; });
  }
}

Status Informer::ListAll() {
  std::set<std::string> seen;
  ASSIGN_OR_RETURN(const std::string version,
                   client_->ListEach(options_.resource, options_.name_space, options_.label_selector, [&](json object) {
                     seen.insert(KeyOf(object));
                     Put(std::move(object));
                   }));
  if (version.empty()) return Unavailable("list of " + options_.resource.plural + ": no resourceVersion in the reply");
  EndList(seen, version);
  return {};
}

void Informer::EndList(const std::set<std::string>& seen, const std::string& version) {
  for (const std::string& key : store_.Keys())
    if (!seen.contains(key)) Delete(key);
  resource_version_ = version;
  const std::lock_guard lock(mutex_);
  synced_ = true;
  changed_.notify_all();
}

Status Informer::Watch(std::stop_token stop, bool list) {
  std::vector<std::pair<std::string, std::string>> query = {
      {"watch", "true"},
      {"allowWatchBookmarks", "true"},
      {"resourceVersion", resource_version_},
      {"timeoutSeconds", std::to_string(options_.watch_timeout.count())}};
  if (list) {
    query.emplace_back("sendInitialEvents", "true");
    query.emplace_back("resourceVersionMatch", "NotOlderThan");
  }
  listed_ = false;
  seen_.reset();
  if (list) seen_.emplace();
  if (!options_.label_selector.empty()) query.emplace_back("labelSelector", options_.label_selector);
  const std::string path = PathOf(options_.resource, options_.name_space, "");
  const HttpCall call{.method = "GET", .target = path + "?" + QueryOf(query)};
  partial_line_.clear();
  progress_ = false;
  const Result<HttpReply> reply =
      transport_->Stream(call, options_.watch_timeout + options_.idle_margin, std::move(stop),
                         [this](std::string_view bytes) { return OnBytes(bytes); });
  Status status = reply.ok() ? StatusOfReply(*reply, "watch " + path) : reply.status();
  if (Expired(status)) resource_version_.clear();
  return status;
}

Status Informer::OnBytes(std::string_view bytes) {
  for (;;) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    if (partial_line_.empty()) {
      RETURN_IF_ERROR(OnLine(bytes.substr(0, end)));
    } else {
      partial_line_.append(bytes.substr(0, end));
      RETURN_IF_ERROR(OnLine(partial_line_));
      partial_line_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  if (partial_line_.size() + bytes.size() > kMaxEventBytes)
    return Unavailable("watch event larger than " + std::to_string(kMaxEventBytes) + " bytes");
  partial_line_.append(bytes);
  return {};
}

Status Informer::OnLine(std::string_view line) {
  if (line.empty()) return {};
  json event = ParseWatchLine(line);
  const std::string type = StringAt(event, {"type"});
  if (type.empty() || !event.contains("object") || !event["object"].is_object())
    return Unavailable("watch event is not an event: " + std::string(line.substr(0, 100)));
  json object = std::move(event["object"]);
  if (type == "ERROR") {
    const auto code = object.find("code");
    const std::string message = "watch: " + StringAt(object, {"message"});
    const bool gone = code != object.end() && code->is_number_integer() && code->get<int>() == 410;
    return gone ? Exhausted(message) : Unavailable(message);
  }
  const std::string version = ResourceVersionOf(object);
  if (type == "ADDED" || type == "MODIFIED") {
    if (seen_) seen_->insert(KeyOf(object));
    Put(std::move(object));
  } else if (type == "DELETED") {
    if (seen_) seen_->erase(KeyOf(object));
    Delete(KeyOf(object));
  } else if (type != "BOOKMARK") {
    return Unavailable("watch event of unknown type '" + type + "'");
  } else if (seen_ && AnnotationOf(object, kListEnds) == "true") {
    if (version.empty()) return Unavailable("the streamed list ends without a resourceVersion");
    EndList(*std::exchange(seen_, std::nullopt), version);
    listed_ = true;
    if (options_.on_call) options_.on_call("watchlist", {});
  }
  progress_ = true;
  // While a list is streamed, its objects come in the order of their names: no version to resume from.
  if (!seen_ && !version.empty()) resource_version_ = version;
  return {};
}

void Informer::Put(json object) {
  object["metadata"].erase("managedFields");
  if (options_.slim) options_.slim(object);
  const auto now = std::make_shared<const json>(std::move(object));
  const Object before = store_.Put(now);
  // A new list repeats what did not change.
  if (before && ResourceVersionOf(*before) == ResourceVersionOf(*now) && UidOf(*before) == UidOf(*now)) return;
  for (const InformerHandler& handler : handlers_)
    if (handler.on_put) handler.on_put(before, now);
}

void Informer::Delete(const std::string& key) {
  const Object removed = store_.Delete(key);
  if (!removed) return;
  for (const InformerHandler& handler : handlers_)
    if (handler.on_delete) handler.on_delete(removed);
}

}  // namespace headrace::kube
