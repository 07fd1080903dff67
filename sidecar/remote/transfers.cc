#include "sidecar/remote/transfers.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>

#include "sidecar/remote/pace.h"

namespace headrace::side {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMaxText = 16 << 20;  // of a reply that is not the caller's data: a page of a listing at most
constexpr size_t kMaxHeaders = 256;
constexpr long kConnectTimeoutMs = 5000;
constexpr long kLocalTimeoutMs = 2000;
// A reply that brings less than this many bytes a second for that many seconds is given up and asked for again.
constexpr long kSlowBytes = 4 << 10;
constexpr long kSlowSeconds = 30;

void InitCurlOnce() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_ALL);
  static_cast<void>(done);
}

// Certificates of a private authority, by the variables that other tools read too; none: the system's.
std::string AuthorityFile() {
  for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0') return file;
  }
  return "";
}

// Errors that asking again will not mend.
bool IsFatal(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT || code == CURLE_TOO_MANY_REDIRECTS;
}

}  // namespace

class Transfers::Loop {
 public:
  explicit Loop(const RetryPolicy& policy) : policy_(policy) {
    InitCurlOnce();
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(2 * Pace::kMost));
    thread_ = std::thread([this] { Run(); });
  }
  ~Loop() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = news_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    for (CURL* easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Start(Call& call) {
    {
      const std::lock_guard lock(mutex_);
      call.done_ = false;
      starts_.push_back(&call);
      news_ = true;
    }
    curl_multi_wakeup(multi_);
  }

  void Cancel(Call& call) {
    std::unique_lock lock(mutex_);
    if (call.done_) return;
    cancels_.push_back(&call);
    news_ = true;
    curl_multi_wakeup(multi_);
    changed_.wait(lock, [&] { return call.done_; });
  }

  template <typename Predicate>
  void Await(Predicate done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, done);
  }
  static bool IsDone(const Call& call) { return call.done_; }
  bool IsDoneNow(const Call& call) {
    const std::lock_guard lock(mutex_);
    return call.done_;
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = news_ = true;
    }
    curl_multi_wakeup(multi_);
  }

 private:
  struct Host;

  // A call under way.
  struct Live {
    Call* call = nullptr;
    Host* host = nullptr;
    int attempts = 0;       // begun
    Clock::time_point due;  // of the next one, where none is being made
    // Of the attempt being made.
    CURL* easy = nullptr;
    Request request;
    curl_slist* headers = nullptr;
    Reply reply;
    std::span<uint8_t> out;
    bool has_out = false;
    bool first_byte = false;
    Clock::time_point next_byte_due;
    milliseconds first_byte_timeout{0};
    milliseconds stalled{0};  // of the policy
    char error[CURL_ERROR_SIZE] = "";
  };

  struct Host {
    Pace pace;
    int under_way = 0;
    std::deque<Live*> waiting;
    UsualTime first_byte;
  };

  void Run() {
    while (true) {
      if (TakeOrders()) return;
      const Clock::time_point next = Begin();
      int running = 0;
      curl_multi_perform(multi_, &running);
      // News that came since the orders were taken: its wake-up may be over, in a poll before.
      if (Collect() || HasNews()) continue;
      const auto wait = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
      curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp<int64_t>(wait, 0, 1000)), nullptr);
    }
  }

  bool HasNews() {
    const std::lock_guard lock(mutex_);
    return news_;
  }

  // What other threads asked for. true: to end.
  bool TakeOrders() {
    std::vector<Call*> starts;
    std::vector<Call*> cancels;
    bool stopped = false;
    {
      const std::lock_guard lock(mutex_);
      starts.swap(starts_);
      cancels.swap(cancels_);
      stopped = stopped_;
      news_ = ending_;  // which is acted upon once all else is done
      if (ending_ && starts.empty() && cancels.empty()) return true;
    }
    for (Call* call : starts) {
      Live& live = live_[call];
      live.call = call;
      live.host = &hosts_[call->origin()];
      live.host->waiting.push_back(&live);
    }
    if (stopped) {
      for (auto& [call, live] : live_) cancels.push_back(call);
    }
    for (Call* call : cancels) {
      const auto found = live_.find(call);
      if (found == live_.end()) continue;  // it was done meanwhile
      Live& live = found->second;
      Reply reply;
      reply.error = "stopped";
      reply.fatal = true;
      reply.attempts = live.attempts;
      if (live.easy != nullptr) EndAttempt(live);
      std::erase(live.host->waiting, &live);
      std::erase(delayed_, &live);
      Finish(live, std::move(reply), Fate::kFailed);
    }
    return false;
  }

  // Begins what is due and what its host takes. Returns when to look again.
  Clock::time_point Begin() {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = now + std::chrono::seconds(1);
    std::erase_if(delayed_, [&](Live* live) {
      if (live->due <= now) {
        live->host->waiting.push_front(live);  // before those that were never tried: somebody waits for it
        return true;
      }
      next = std::min(next, live->due);
      return false;
    });
    for (auto& [origin, host] : hosts_) {
      while (!host.waiting.empty() && host.under_way < host.pace.limit()) {
        Live& live = *host.waiting.front();
        host.waiting.pop_front();
        BeginAttempt(live, now);
      }
    }
    for (const Live* live : active_) next = std::min(next, live->next_byte_due);
    return next;
  }

  void BeginAttempt(Live& live, Clock::time_point now) {
    ++live.attempts;
    ++live.host->under_way;
    live.request = live.call->Prepare();
    live.reply = Reply();
    live.reply.attempts = live.attempts;
    live.has_out = live.first_byte = false;
    live.out = {};
    // Connecting has a limit of its own; the time to the first byte begins where the request is sent.
    live.next_byte_due = now + 2 * milliseconds(kConnectTimeoutMs);
    live.first_byte_timeout = live.request.patient ? policy_.most_first_byte
                                                   : policy_.FirstByteTimeout(live.host->first_byte, live.attempts - 1);
    live.stalled = policy_.stalled;
    live.error[0] = '\0';
    if (idle_.empty()) {
      live.easy = curl_easy_init();
    } else {
      live.easy = idle_.back();
      idle_.pop_back();
    }
    const Request& request = live.request;
    CURL* const easy = live.easy;
    for (const std::string& header : request.headers) {
      live.headers = curl_slist_append(live.headers, header.c_str());
    }
    if (!authority_file_.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, authority_file_.c_str());
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    // Parallel reads want connections of their own, not streams of one.
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, request.local ? kLocalTimeoutMs : kConnectTimeoutMs);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kSlowBytes);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    if (request.local) {
      curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
      curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 2 * kLocalTimeoutMs);
    }
    if (request.redirects > 0) {
      curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
      curl_easy_setopt(easy, CURLOPT_MAXREDIRS, static_cast<long>(request.redirects));
      curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, request.url.rfind("https:", 0) == 0 ? "https" : "http,https");
    }
    if (request.method == "POST" || request.method == "PUT") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
      live.headers = curl_slist_append(live.headers, "Expect:");  // no round trip before the body
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, live.headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, live.error);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, OnSend);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &live);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &live);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &live);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &live);
    curl_multi_add_handle(multi_, easy);
    active_.push_back(&live);
  }

  static int OnSend(void* user, char*, char*, int, int) {
    Live& live = *static_cast<Live*>(user);
    live.next_byte_due = Clock::now() + live.first_byte_timeout;
    return CURL_PREREQFUNC_OK;
  }

  static size_t OnHeader(char* data, size_t one, size_t size, void* user) {
    Live& live = *static_cast<Live*>(user);
    Reply& reply = live.reply;
    live.first_byte = true;
    live.next_byte_due = Clock::now() + live.stalled;
    const std::string_view line(data, one * size);
    if (line.starts_with("HTTP/")) {
      reply.headers.clear();  // of a redirection
      return size;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || reply.headers.size() >= kMaxHeaders) return size;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const size_t begin = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    const size_t end = line.find_last_not_of(" \t\r\n");
    reply.headers[name] = line.substr(begin, end == std::string_view::npos || end < begin ? 0 : end + 1 - begin);
    return size;
  }

  static size_t OnBody(char* data, size_t one, size_t size, void* user) {
    Live& live = *static_cast<Live*>(user);
    size *= one;
    Reply& reply = live.reply;
    live.next_byte_due = Clock::now() + live.stalled;
    if (!live.has_out) {
      live.has_out = true;
      reply.status = StatusOf(live.easy);
      const std::optional<std::span<uint8_t>> out = live.call->Body(reply);
      if (!out) return 0;
      live.out = *out;
    }
    if (live.out.empty()) {
      if (reply.text.size() + size > kMaxText) return 0;
      reply.text.append(data, size);
      return size;
    }
    if (size > live.out.size() - reply.received) return 0;
    std::memcpy(live.out.data() + reply.received, data, size);
    reply.received += size;
    return size;
  }

  static int StatusOf(CURL* easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  // Takes what has ended, and what takes too long. true: something has.
  bool Collect() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      any = true;
      Live* live = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &live);
      Settle(*live, message->data.result);
    }
    const Clock::time_point now = Clock::now();
    std::vector<Live*> late;
    for (Live* live : active_) {
      if (live->next_byte_due <= now) late.push_back(live);
    }
    for (Live* live : late) {
      std::snprintf(live->error, sizeof live->error, live->first_byte ? "the reply stalled" : "no reply in time");
      Settle(*live, CURLE_OPERATION_TIMEDOUT);
      any = true;
    }
    return any;
  }

  void Settle(Live& live, CURLcode result) {
    Host& host = *live.host;
    Reply& reply = live.reply;
    reply.status = result == CURLE_OK ? StatusOf(live.easy) : 0;
    if (result != CURLE_OK) {
      const bool too_long = result == CURLE_WRITE_ERROR;
      reply.error = too_long                ? "more bytes came than were asked for"
                    : live.error[0] != '\0' ? live.error
                                            : curl_easy_strerror(result);
      // A cloud's own names are known on its machines and nowhere else.
      reply.fatal = IsFatal(result) || (live.request.local && result == CURLE_COULDNT_RESOLVE_HOST);
    }
    if (live.first_byte && !live.request.patient) {
      double sent = 0;
      double answered = 0;
      curl_easy_getinfo(live.easy, CURLINFO_PRETRANSFER_TIME, &sent);
      curl_easy_getinfo(live.easy, CURLINFO_STARTTRANSFER_TIME, &answered);
      host.first_byte.Add(milliseconds(static_cast<int64_t>(std::max(answered - sent, 0.0) * 1000)));
    }
    EndAttempt(live);
    const Fate fate = live.call->Judge(reply);
    if (fate == Fate::kDone) host.pace.Answered();
    if (fate == Fate::kThrottled) host.pace.Throttled();
    if (fate == Fate::kDone || fate == Fate::kFailed || live.attempts >= policy_.max_attempts) {
      Finish(live, std::move(reply), fate);
      return;
    }
    live.due = Clock::now() + policy_.DelayAfter(reply, random_());
    delayed_.push_back(&live);
  }

  void EndAttempt(Live& live) {
    curl_multi_remove_handle(multi_, live.easy);
    curl_easy_reset(live.easy);
    idle_.push_back(live.easy);
    live.easy = nullptr;
    curl_slist_free_all(live.headers);
    live.headers = nullptr;
    std::erase(active_, &live);
    --live.host->under_way;
  }

  void Finish(Live& live, Reply reply, Fate fate) {
    Call* const call = live.call;
    live_.erase(call);
    call->reply_ = std::move(reply);
    call->fate_ = fate;
    {
      const std::lock_guard lock(mutex_);
      call->done_ = true;  // from here on it may be gone
    }
    changed_.notify_all();
  }

  const RetryPolicy policy_;
  const std::string authority_file_ = AuthorityFile();
  CURLM* multi_ = nullptr;
  std::thread thread_;

  // Of the thread alone.
  std::unordered_map<Call*, Live> live_;
  std::unordered_map<std::string, Host> hosts_;
  std::vector<Live*> active_;
  std::vector<Live*> delayed_;
  std::vector<CURL*> idle_;
  std::mt19937_64 random_{std::random_device{}()};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex, as each call's done_.
  std::vector<Call*> starts_;
  std::vector<Call*> cancels_;
  bool stopped_ = false;
  bool ending_ = false;
  bool news_ = false;  // one of the above has changed since the orders were taken
};

Transfers::Transfers(const RetryPolicy& policy) : loop_(std::make_unique<Loop>(policy)) {}
Transfers::~Transfers() = default;
void Transfers::Start(Call& call) { loop_->Start(call); }
void Transfers::Await(const Call& call) {
  loop_->Await([&] { return Loop::IsDone(call); });
}
void Transfers::AwaitAny(std::span<Call* const> calls) {
  loop_->Await(
      [&] { return std::any_of(calls.begin(), calls.end(), [](const Call* call) { return Loop::IsDone(*call); }); });
}
bool Transfers::IsDone(const Call& call) { return loop_->IsDoneNow(call); }
void Transfers::Cancel(Call& call) { loop_->Cancel(call); }
void Transfers::Stop() { loop_->Stop(); }

}  // namespace headrace::side
