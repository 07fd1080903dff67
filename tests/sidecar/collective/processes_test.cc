// Loaders as processes of their own, killed and stopped, with the timeouts that users get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace headrace::side {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr int kLimitMs = 30000;

class LoaderProcess {
 public:
  LoaderProcess(const std::string& socket, int worker, int workers) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const std::string binary = HEADRACE_BIN_DIR "/../tests/collective_loader";
    const std::string index = std::to_string(worker), number = std::to_string(workers);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pair[1], 0);
      ::dup2(pair[1], 1);
      ::execl(binary.c_str(), binary.c_str(), socket.c_str(), index.c_str(), number.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(pair[1]);
    pipe_ = pair[0];
    EXPECT_EQ(Read(), "up");
  }
  ~LoaderProcess() {
    Signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(pipe_);
  }
  LoaderProcess(const LoaderProcess&) = delete;
  LoaderProcess& operator=(const LoaderProcess&) = delete;

  void Signal(int signal) const { ::kill(pid_, signal); }
  void Say(std::string line) const {
    line += "\n";
    EXPECT_EQ(::send(pipe_, line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
  }
  std::string Ask(const std::string& line) const {
    Say(line);
    return Read();
  }
  std::string Read() const {
    std::string line;
    for (char c = 0;;) {
      pollfd waiting{pipe_, POLLIN, 0};
      if (::poll(&waiting, 1, kLimitMs) <= 0 || ::read(pipe_, &c, 1) != 1) return line + "<nothing more>";
      if (c == '\n') return line;
      line += c;
    }
  }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

class ProcessesTest : public ::testing::Test {
 protected:
  ProcessesTest() {
    char folder[] = "/tmp/headrace-processes-XXXXXX";
    folder_ = mkdtemp(folder);
    for (int w = 0; w < 3; ++w) loaders_[w] = Start(w);
    // All are there: an epoch of one step each.
    for (const auto& loader : loaders_) loader->Say("announce 0 1 1");
    for (const auto& loader : loaders_) EXPECT_EQ(loader->Ask("any 0 1"), "false");
  }
  ~ProcessesTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<LoaderProcess> Start(int worker) {
    return std::make_unique<LoaderProcess>(folder_ + "/coordinator.sock", worker, 3);
  }

  // Each of `others` waits in epoch 1 while `victim` gets `signal`; all of them name it within 10 s.
  void ExpectNamed(int victim, int signal, std::initializer_list<int> others) {
    for (const int w : others) loaders_[w]->Say("announce 1 " + std::to_string(w) + " 1");
    for (const int w : others) loaders_[w]->Say("any 1 7");
    const auto death = Clock::now();
    loaders_[victim]->Signal(signal);
    for (const int w : others) {
      EXPECT_THAT(loaders_[w]->Read(), HasSubstr("Unavailable: worker " + std::to_string(victim) + " (host pod-" +
                                                 std::to_string(victim) + ")"));
      EXPECT_LT(Clock::now() - death, 10s) << "worker " << w;
      EXPECT_THAT(loaders_[w]->Ask("failure"), HasSubstr("was lost"));
    }
  }

  std::string folder_;
  std::unique_ptr<LoaderProcess> loaders_[3];
};

TEST_F(ProcessesTest, AKilledLoaderIsNamedByAll) { ExpectNamed(2, SIGKILL, {0, 1}); }
TEST_F(ProcessesTest, AStoppedLoaderIsNamedByAll) { ExpectNamed(1, SIGSTOP, {0, 2}); }
TEST_F(ProcessesTest, AKilledCoordinatorIsNamedByAll) { ExpectNamed(0, SIGKILL, {1, 2}); }
TEST_F(ProcessesTest, AStoppedCoordinatorIsNamedByAll) { ExpectNamed(0, SIGSTOP, {1, 2}); }

// Whoever is killed and started again in time: the epoch ends where it would have.
TEST_F(ProcessesTest, ARestartedLoaderGoesOn) {
  for (const int victim : {0, 1, 2}) {
    const std::string epoch = std::to_string(victim + 1);
    for (int w = 0; w < 3; ++w) loaders_[w]->Say("announce " + epoch + " " + std::to_string(w + 1) + " 0");
    for (int w = 0; w < 3; ++w) {
      if (w == victim) continue;
      loaders_[w]->Say("announce " + epoch + " " + std::to_string(w + 1) + " 1");
      loaders_[w]->Say("any " + epoch + " 8");
    }
    loaders_[victim].reset();
    loaders_[victim] = Start(victim);
    loaders_[victim]->Say("announce " + epoch + " 9 1");
    for (int w = 0; w < 3; ++w) {
      if (w == victim) continue;
      EXPECT_EQ(loaders_[w]->Read(), "true") << "victim " << victim << ", worker " << w;
    }
    for (const auto& loader : loaders_) EXPECT_EQ(loader->Ask("any " + epoch + " 9"), "false") << "victim " << victim;
  }
}

}  // namespace
}  // namespace headrace::side
