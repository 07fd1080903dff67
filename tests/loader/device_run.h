// A loader with the stand-in driver in a process of its own, and its trainers.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdio>
#include <set>
#include <sstream>

#include "common/base/unique_fd.h"
#include "common/ring/layout.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/loader/run.h"

namespace headrace::testing {

// Names this test's GPU memory, on the whole machine.
inline std::string MemoryTag() { return "test" + std::to_string(getpid()); }

// How many allocations of GPU memory with our tag any process still has, mapped or as a descriptor.
inline size_t LiveAllocations() {
  std::set<std::string> inodes;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("memfd:fake-cuda-") == std::string::npos || line.find(MemoryTag()) == std::string::npos) continue;
      // address permissions offset device inode path
      std::istringstream words(line);
      std::string word;
      for (int i = 0; i < 5; ++i) words >> word;
      inodes.insert(word);
    }
  }
  return inodes.size();
}

// A word of a ring's header, by its offset.
inline uint64_t HeaderWord(const std::string& directory, size_t offset) {
  std::ifstream ring(directory + "/replica-0.ring");
  uint64_t word = 0;
  ring.seekg(static_cast<std::streamoff>(offset));
  ring.read(reinterpret_cast<char*>(&word), sizeof(word));
  return word;
}
// The ring's counter of batches published.
inline uint64_t Published(const std::string& directory) {
  return HeaderWord(directory, offsetof(ring::RingHeader, published));
}

// A trainer in a process of its own: tests/loader/device_trainer.cc.
class DeviceTrainer {
 public:
  DeviceTrainer(const std::string& directory, int64_t step) {
    int input[2];
    int output[2];
    EXPECT_EQ(pipe2(input, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
    const std::filesystem::path test = std::filesystem::read_symlink("/proc/self/exe");
    const std::string path = test.parent_path() / "device_trainer";
    const std::string from = std::to_string(step);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(input[0], 0);
      dup2(output[1], 1);
      execl(path.c_str(), path.c_str(), directory.c_str(), from.c_str(), nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_ = UniqueFd(input[1]);
    lines_ = fdopen(output[0], "r");
  }
  ~DeviceTrainer() {
    Kill();
    std::fclose(lines_);
  }
  DeviceTrainer(const DeviceTrainer&) = delete;
  DeviceTrainer& operator=(const DeviceTrainer&) = delete;

  std::string Line() {
    char line[2000];
    if (std::fgets(line, sizeof(line), lines_) == nullptr) return "nothing";
    return std::string(line).substr(0, std::string(line).find('\n'));
  }
  // It takes no further batch.
  void Finish() { input_ = UniqueFd(); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd input_;
  FILE* lines_ = nullptr;
};

}  // namespace headrace::testing
