#include "tests/s3/s3_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "sidecar/remote/sign_v4.h"
#include "sidecar/remote/small_request.h"
#include "sidecar/remote/url.h"

namespace headrace::side {
namespace {

constexpr char kAccessKey[] = "AKIDTEST";
constexpr char kSecretKey[] = "open sesame";

int Connect(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

S3Server::S3Server(Fault fault) : fault_(std::move(fault)) {
  std::filesystem::create_directory(root());
  const std::string socket = folder_.path() + "/socket";
  const std::string log = folder_.path() + "/log";
  const std::string root_folder = root();
  const char* const arguments[] = {
      HEADRACE_VERSITYGW, "--quiet",  "--port", socket.c_str(),      "--access", kAccessKey,
      "--secret",         kSecretKey, "posix",  root_folder.c_str(), nullptr};
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes takes it along
    dup2(output, 1);
    dup2(output, 2);
    execv(HEADRACE_VERSITYGW, const_cast<char* const*>(arguments));
    _exit(127);
  }
  close(output);
  // It says nothing when it is ready; it has ended or it listens.
  int fd = -1;
  while ((fd = Connect(socket)) < 0 && waitpid(process_, nullptr, WNOHANG) == 0) usleep(1000);
  EXPECT_GE(fd, 0) << HEADRACE_VERSITYGW << " did not start";
  close(fd);
  proxy_ = std::make_unique<fakes::HttpFaults>(
      [this](const fakes::SeenRequest& request) {
        const int number = requests_++;
        const auto ask = [&] { return Forward(request.raw); };
        return fault_ ? fault_(number, request, ask) : ask();
      },
      /*handles_at_once=*/true);
}

S3Server::~S3Server() {
  proxy_.reset();
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
}

std::map<std::string, std::string> S3Server::Keys() {
  return {{"AWS_ACCESS_KEY_ID", kAccessKey}, {"AWS_SECRET_ACCESS_KEY", kSecretKey}};
}

void S3Server::Put(const std::string& bucket, const std::string& key, const std::string& bytes) {
  std::filesystem::create_directory(root() + "/" + bucket);
  Request request{.method = "PUT",
                  .url = endpoint() + "/" + bucket + "/" + PercentEncode(key, /*keep_slashes=*/true),
                  .body = bytes};
  SignV4({kAccessKey, kSecretKey, ""}, "us-east-1", "s3", std::time(nullptr), &request);
  Transfers transfers;
  const Reply reply = SendSmall(&transfers, request);
  EXPECT_EQ(reply.status, 200) << WhyFailed(reply) << reply.text;
}

fakes::Answer S3Server::Forward(const std::string& raw) const {
  const int fd = Connect(folder_.path() + "/socket");
  size_t sent = 0;
  while (sent < raw.size()) {
    const ssize_t now = send(fd, raw.data() + sent, raw.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) break;
    sent += static_cast<size_t>(now);
  }
  // The server closes after each answer.
  std::string reply;
  char buffer[64 << 10];
  for (ssize_t read = 0; (read = recv(fd, buffer, sizeof buffer, 0)) > 0;)
    reply.append(buffer, static_cast<size_t>(read));
  close(fd);
  fakes::Answer answer{.status = 502};
  const size_t head = reply.find("\r\n\r\n");
  if (reply.rfind("HTTP/1.1 ", 0) != 0 || head == std::string::npos) return answer;
  answer.status = std::stoi(reply.substr(9, 3));
  answer.body = reply.substr(head + 4);
  for (size_t at = reply.find("\r\n") + 2; at < head;) {
    const size_t end = reply.find("\r\n", at);
    const size_t colon = reply.find(": ", at);
    const std::string name = reply.substr(at, colon - at);
    if (name != "Content-Length" && name != "Connection") {
      answer.headers.emplace_back(name, reply.substr(colon + 2, end - colon - 2));
    }
    at = end + 2;
  }
  return answer;
}

}  // namespace headrace::side
