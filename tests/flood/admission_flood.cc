// Floods the admission endpoint, the operator's own server and handler in a process of their own, with hostile requests
// over TLS, while one honest peer goes on asking for pods to be injected.
//
//   admission_flood [REQUESTS] [MOST_MIB] [SEED]     default 1000000 256 1
//
// Fails if the server ends, keeps a hostile peer without a word for a minute, does not answer the honest one, or takes
// more than MOST_MIB MiB of memory.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "common/net/certificates.h"
#include "operator/admission/server.h"
#include "operator/memory.h"
#include "operator/pod/input_key.h"
#include "tests/flood/hostile_requests.h"
#include "tests/flood/peer.h"

namespace headrace::flood {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kPeers = 6;
constexpr size_t kLingering = 60;  // connections that each keeps open: together more than the server has places

json ReviewOf(const char* resource, const json& object) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u"},
            {"operation", "CREATE"},
            {"namespace", "ml"},
            {"resource", {{"group", ""}, {"version", "v1"}, {"resource", resource}}},
            {"object", object}}}};
}

json Pod() {
  return json::parse(R"({
    "metadata": {
      "name": "train-0", "namespace": "ml", "annotations": {"a": "b"},
      "labels": {"headrace.dev/input": "numbers", "batch.kubernetes.io/job-completion-index": "0"},
      "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1", "controller": true}]},
    "spec": {
      "securityContext": {"runAsUser": 1000}, "volumes": [{"name": "v", "emptyDir": {}}],
      "initContainers": [{"name": "istio-proxy", "restartPolicy": "Always", "env": [{"name": "A", "value": "b"}]}],
      "containers": [{
        "name": "trainer", "image": "registry.example/trainer:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "resources": {"limits": {"cpu": 4, "memory": "64Gi"}}}]}})");
}

std::vector<json> GoodReviews() {
  json job = json::parse(R"({"metadata": {"name": "t", "labels": {"headrace.dev/inject-template": "true"}},
                             "spec": {"completions": 2, "completionMode": "Indexed"}})");
  job["spec"]["template"] = Pod();
  return {ReviewOf("pods", Pod()), ReviewOf("jobs", job)};
}

// Serves until killed; writes its port to `port_out` first.
[[noreturn]] void Serve(int port_out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  kube::Store inputs, jobs, stateful_sets, pods(op::InputKeyOf), config_maps(op::InputKeyOf);
  inputs.Put(std::make_shared<const json>(json::parse(R"({
    "metadata": {"name": "numbers", "namespace": "ml", "uid": "i1"},
    "spec": {"source": {"range": {"stop": 1000}}, "pipeline": [{"batch": {"size": 8}}]}})")));
  jobs.Put(std::make_shared<const json>(json::parse(R"({
    "metadata": {"name": "train", "namespace": "ml", "uid": "job-1"}, "spec": {"completions": 2}})")));
  op::AdmissionDeps deps;
  deps.inputs = &inputs;
  deps.jobs = &jobs;
  deps.stateful_sets = &stateful_sets;
  deps.pods = &pods;
  deps.config_maps = &config_maps;
  deps.loader.image = "registry.example/loader:1";
  const auto now = std::chrono::system_clock::now();
  const Authority authority = *MakeAuthority("flood", now - 1h, now + 24h);
  const auto pair =
      std::make_shared<const TlsKeyPair>(*IssueServingCertificate(authority, {"localhost"}, now - 1h, now + 24h));
  HttpServerOptions options = op::WebhookServerOptions();
  options.address = "127.0.0.1";
  options.tls = [pair] { return pair; };
  const auto server = HttpServer::Start(options, op::MakeAdmissionHandler(deps));
  const uint16_t port = server.ok() ? (*server)->port() : 0;
  if (::write(port_out, &port, sizeof port) != sizeof port) ::_exit(1);
  for (;;) ::pause();
}

int MebibytesOf(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    int kibibytes = 0;
    if (word == "VmRSS:" && status >> kibibytes) return kibibytes / 1024;
  }
  return 0;
}

struct Tally {
  std::mutex mutex;
  std::map<int, uint64_t> answers;  // by status; guarded by mutex
  std::atomic<uint64_t> sent = 0;
  std::atomic<uint64_t> turned_away = 0;  // no handshake: the connection went to make room for another
  std::atomic<uint64_t> silence = 0;
  std::atomic<bool> over = false;

  void Answered(int status) {
    const std::lock_guard lock(mutex);
    ++answers[status];
  }
};

class HostilePeer {
 public:
  HostilePeer(uint16_t port, uint64_t seed, Tally& tally)
      : port_(port), requests_(seed, GoodReviews()), tally_(tally) {}

  void Attack() {
    const HostileRequest request = requests_.Next();
    if (request.before_tls) {
      auto raw = std::make_unique<Peer>(port_);
      raw->Send(request.bytes);
      return Finish(request, std::move(raw));
    }
    if (!connection_) {
      connection_ = std::make_unique<Peer>(port_);
      if (!connection_->Handshake()) {
        Note(*connection_);
        ++tally_.turned_away;
        connection_.reset();
        return;
      }
    }
    uint64_t times = request.times;
    while (times > 0 && connection_->Send(request.bytes)) --times;
    if (request.then != HostileRequest::Then::kAwaitAnswer) return Finish(request, std::move(connection_));
    const int status = connection_->ReadAnswer();
    Note(*connection_);
    if (status != 0) tally_.Answered(status);
    if (status == 0) connection_.reset();
  }

 private:
  void Finish(const HostileRequest& request, std::unique_ptr<Peer> peer) {
    if (request.then == HostileRequest::Then::kLinger) {
      lingering_.push_back(std::move(peer));
      if (lingering_.size() > kLingering) lingering_.pop_front();
    } else if (request.then == HostileRequest::Then::kEnd) {
      peer->EndSending();
      // What answers a handshake with anything but TLS says nothing that is HTTP.
      for (int status; (status = peer->ReadAnswer()) != 0 && !request.before_tls;) tally_.Answered(status);
      Note(*peer);
    }
  }

  void Note(const Peer& peer) {
    if (peer.timed_out()) ++tally_.silence;
  }

  const uint16_t port_;
  HostileRequests requests_;
  Tally& tally_;
  std::unique_ptr<Peer> connection_;
  std::deque<std::unique_ptr<Peer>> lingering_;
};

struct HonestTally {
  std::vector<double> took_ms;
  uint64_t connections = 0;
  uint64_t failed = 0;
};

// As an API server asks: over a connection that is kept, and once more over a new one where that was gone.
void AskHonestly(uint16_t port, Tally& flood, HonestTally& honest) {
  const std::string body = GoodReviews()[0].dump();
  const std::string request =
      "POST /inject-pod HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  std::unique_ptr<Peer> connection;
  while (!flood.over) {
    const Clock::time_point begin = Clock::now();
    bool answered = false;
    for (int tries = 0; tries < 3 && !answered; ++tries) {
      if (!connection) {
        connection = std::make_unique<Peer>(port);
        ++honest.connections;
        if (!connection->Handshake()) {
          connection.reset();
          continue;
        }
      }
      connection->Send(request);
      answered = connection->ReadAnswer() == 200 && connection->body().find("\"patch\"") != std::string::npos;
      if (!answered) connection.reset();
    }
    honest.failed += answered ? 0 : 1;
    honest.took_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    std::this_thread::sleep_for(5ms);  // its pace
  }
}

int Flood(uint16_t port, pid_t server, uint64_t requests, int most_mebibytes, uint64_t seed) {
  Tally tally;
  HonestTally honest;
  const int before = MebibytesOf(server);
  int most = before;
  const Clock::time_point begin = Clock::now();
  std::thread honest_peer([&] { AskHonestly(port, tally, honest); });
  std::vector<std::thread> hostile;
  for (int i = 0; i < kPeers; ++i) {
    hostile.emplace_back([&, i] {
      HostilePeer peer(port, seed * kPeers + static_cast<uint64_t>(i), tally);
      while (tally.sent++ < requests) peer.Attack();
    });
  }
  std::thread watcher([&] {
    Clock::time_point told = begin;
    while (!tally.over) {
      most = std::max(most, MebibytesOf(server));
      if (Clock::now() - told > 10s) {
        told = Clock::now();
        std::printf("%llu of %llu hostile requests, %d MiB\n", static_cast<unsigned long long>(tally.sent),
                    static_cast<unsigned long long>(requests), most);
        std::fflush(stdout);
      }
      std::this_thread::sleep_for(20ms);  // its pace
    }
  });
  for (std::thread& thread : hostile) thread.join();
  tally.over = true;
  honest_peer.join();
  watcher.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  const bool alive = ::waitpid(server, nullptr, WNOHANG) == 0;
  std::sort(honest.took_ms.begin(), honest.took_ms.end());
  const auto at = [&](double part) {
    return honest.took_ms[static_cast<size_t>(part * static_cast<double>(honest.took_ms.size() - 1))];
  };
  std::printf("hostile requests    %10llu   in %.0f s, %.0f/s\n", static_cast<unsigned long long>(requests), seconds,
              static_cast<double>(requests) / seconds);
  for (const auto& [status, count] : tally.answers) {
    std::printf("  answered %-10d%10llu\n", status, static_cast<unsigned long long>(count));
  }
  std::printf("  turned away       %10llu\n", static_cast<unsigned long long>(tally.turned_away));
  std::printf("  left in silence   %10llu   a minute long; goal 0\n", static_cast<unsigned long long>(tally.silence));
  std::printf("server's memory     %10d   MiB at most, from %d; goal %d\n", most, before, most_mebibytes);
  std::printf("honest requests     %10zu   over %llu connections, %llu failed; goal 0\n", honest.took_ms.size(),
              static_cast<unsigned long long>(honest.connections), static_cast<unsigned long long>(honest.failed));
  std::printf("  milliseconds      %10.1f   median, %.1f P99, %.1f at most\n", at(0.5), at(0.99), at(1));
  std::printf("server              %10s\n", alive ? "alive" : "DEAD");
  const bool spoke_http = !tally.answers.contains(-1);
  if (!spoke_http) std::printf("an answer was no HTTP\n");
  const bool no_bug = !tally.answers.contains(500);
  if (!no_bug) std::printf("an exception came out of a review: the server's log has it\n");
  return alive && honest.failed == 0 && tally.silence == 0 && most <= most_mebibytes && spoke_http && no_bug ? 0 : 1;
}

}  // namespace
}  // namespace headrace::flood

int main(int argc, char** argv) {
  headrace::op::BoundMemory();
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  const auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const pid_t server = ::fork();
  if (server == 0) headrace::flood::Serve(ends[1]);
  uint16_t port = 0;
  if (::read(ends[0], &port, sizeof port) != sizeof port || port == 0) return 1;
  const int result =
      headrace::flood::Flood(port, server, number(1, 1'000'000), static_cast<int>(number(2, 256)), number(3, 1));
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return result;
}
