// A loader with a GPU, or the stand-in for its driver, in a process of its own, and its trainers.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>

#include "common/base/unique_fd.h"
#include "common/gpu/context.h"
#include "common/ring/layout.h"
#include "tests/loader/run.h"

namespace headrace::testing {

// Whether the driver of this process and those that it starts is the stand-in, and not a GPU's.
inline bool IsStandIn() { return std::getenv(gpu::kLibraryEnv) != nullptr; }

// Tests that run with these namespaces; skipped where there is no GPU, or the machine gives users none.
class InNamespaces : public ::testing::TestWithParam<Namespaces> {
 protected:
  void SetUp() override {
    const Result<int> gpus = gpu::CountGpus();
    if (!gpus.ok()) GTEST_SKIP() << "no GPU here: " << gpus.status().ToString();
    if (GetParam() == Namespaces::kShared) return;
    if (const std::string why = WhyNoNamespaces(); !why.empty()) GTEST_SKIP() << why;
  }
};

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

// Bytes that GPU 0 has free, of all processes. REQUIRES: not the stand-in, which has no such number.
inline size_t FreeGpuMemory() {
  const gpu::Driver* const driver = *gpu::Driver::Open();
  const auto context = std::move(*gpu::PrimaryContext::Retain(driver, 0));
  const gpu::PrimaryContext::Current current(*context);
  using MemGetInfo = gpu::Error (*)(size_t * free, size_t * total);
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(reinterpret_cast<MemGetInfo>(dlsym(library, "cuMemGetInfo_v2"))(&free, &total), gpu::kSuccess);
  dlclose(library);
  return free;
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
  // `folder` and what lies in it, `directory`, are a LoaderRun's.
  DeviceTrainer(const std::string& folder, const std::string& directory, int64_t step,
                Namespaces namespaces = Namespaces::kShared) {
    int input[2];
    int output[2];
    EXPECT_EQ(pipe2(input, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
    const std::filesystem::path test = std::filesystem::read_symlink("/proc/self/exe");
    const std::string path = test.parent_path() / "device_trainer";
    const std::string from = std::to_string(step);
    pid_ = ForkInto(namespaces, folder);
    if (pid_ == 0) {
      dup2(input[0], 0);
      dup2(output[1], 1);
      execl(path.c_str(), path.c_str(), PathInside(namespaces, folder, directory).c_str(), from.c_str(), nullptr);
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
