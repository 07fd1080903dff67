// Host, Pinned and Device give the same bytes: a loader and a trainer as processes, in one set of namespaces and in
// those that containers have. Against the stand-in for the driver, or on a GPU.
#include <gmock/gmock.h>

#include <random>

#include "sidecar/device/image_code.h"
#include "tests/loader/device_run.h"
#include "tests/sidecar/examples.h"

namespace headrace::testing {
namespace {

constexpr int kRecords = 101;
constexpr int kEpochs = 3;

class MemoryKinds : public InNamespaces {
 protected:
  // What batch_dump says of a loader over `spec`, whose memory is to be that kind, and what it wrote.
  struct Dump {
    std::string said;
    std::string bytes;
  };
  Dump Read(const std::string& spec, const std::string& memory, int replicas) {
    const LoaderRun run(spec + R"(, "delivery": {"prefetchSteps": 2, "memory": ")" + memory + R"("}})", 1, replicas,
                        "run", {}, GetParam());
    const std::string path = run.folder() + "/dump";
    int output[2];
    EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
    const std::filesystem::path test = std::filesystem::read_symlink("/proc/self/exe");
    const std::string program = test.parent_path() / "batch_dump";
    const pid_t trainer = ForkInto(GetParam(), run.folder());
    if (trainer == 0) {
      dup2(output[1], STDOUT_FILENO);
      const auto inside = [&](const std::string& there) { return PathInside(GetParam(), run.folder(), there); };
      execl(program.c_str(), program.c_str(), inside(run.directory(0)).c_str(), memory == "Host" ? "host" : "device",
            std::to_string(kEpochs).c_str(), inside(path).c_str(), nullptr);
      _exit(127);
    }
    close(output[1]);
    Dump dump;
    FILE* const lines = fdopen(output[0], "r");
    char line[200] = "";
    if (std::fgets(line, sizeof(line), lines) != nullptr) dump.said = line;
    std::fclose(lines);
    int status = -1;
    waitpid(trainer, &status, 0);
    EXPECT_EQ(status, 0) << memory;
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    dump.bytes = bytes.str();
    return dump;
  }

  // `tensors` of a batch are on the GPU, where batches are.
  void AreAlike(const std::string& spec, int batches, int tensors, int replicas = 1) {
    const Dump host = Read(spec, "Host", replicas);
    const std::string count = std::to_string(kEpochs * batches) + " batches, ";
    EXPECT_EQ(host.said, count + "0 tensors on a GPU\n");
    for (const std::string memory : {"Pinned", "Device"}) {
      const Dump gpu = Read(spec, memory, replicas);
      EXPECT_EQ(gpu.said, count + std::to_string(kEpochs * batches * tensors) + " tensors on a GPU\n") << memory;
      EXPECT_TRUE(gpu.bytes == host.bytes)
          << memory << ": " << gpu.bytes.size() << " and " << host.bytes.size() << " bytes";
    }
  }

  const Folder files_{"/tmp"};  // containers have a /dev/shm of their own
};

TEST_P(MemoryKinds, OfNumbers) {
  AreAlike(R"({"source": {"range": {"stop": 1000000}}, "pipeline": [{"batch": {"size": 65536}}])", 16, 1);
  AreAlike(R"({"source": {"range": {"stop": 100}}, "pipeline": [{"batch": {"size": 8}}])", 26, 1, 2);
}

// Strings and lists stay with the CPU.
TEST_P(MemoryKinds, OfExamples) {
  std::mt19937 random(3);
  std::ofstream file(files_.path() + "/a.tfrecord", std::ios::binary);
  for (int64_t i = 0; i < kRecords; ++i) {
    const std::vector<int64_t> tokens(random() % 7, i);
    file << side::TFRecordOf(side::ExampleOf({{"id", side::Int64List({i})},
                                              {"text", side::BytesList(std::string(random() % 50, 'x'))},
                                              {"tokens", side::Int64List(tokens)},
                                              {"x", side::FloatList({static_cast<float>(i), 0.5F, -1.0F})}}));
  }
  file.close();
  AreAlike(R"({"source": {"files": {"format": "TFRecord", "paths": [")" + files_.path() + R"(/a.tfrecord"]}},
    "features": [{"name": "id", "dtype": "int64"}, {"name": "text", "dtype": "string"},
                 {"name": "tokens", "dtype": "int64", "shape": [-1]}, {"name": "x", "dtype": "float32", "shape": [3]}],
    "pipeline": [{"shuffle": {"bufferSize": 50, "seed": 5}}, {"batch": {"size": 16}}])",
           7, 2);
}

// Under Device the GPU makes the floats, and the CPU under the others.
TEST_P(MemoryKinds, OfImages) {
  if (device::ImageCode().empty()) GTEST_SKIP() << "this build is without CUDA, and so without image kernels";
  std::mt19937 random(7);
  std::ofstream file(files_.path() + "/a.bin", std::ios::binary);
  for (int64_t i = 0; i < kRecords; ++i) {
    file.write(reinterpret_cast<const char*>(&i), sizeof(i));
    for (int byte = 0; byte < 64 * 48 * 3; ++byte) file.put(static_cast<char>(random()));
  }
  file.close();
  for (const std::string result : {"float32", "float16", "bfloat16"}) {
    AreAlike(R"({"source": {"files": {"format": "FixedLength", "paths": [")" + files_.path() + R"(/a.bin"]}},
      "features": [{"name": "label", "dtype": "int64"}, {"name": "image", "dtype": "uint8", "shape": [64, 48, 3]}],
      "pipeline": [{"map": {"feature": "image", "cast": "float32"}},
                   {"map": {"feature": "image", "scales": [0.017, 0.0175, 0.0174], "offsets": [-2.1, -2.0, -1.8]}},
                   {"map": {"feature": "image", "transpose": [2, 0, 1]}},
                   {"map": {"feature": "image", "cast": ")" +
                 result + R"("}}, {"batch": {"size": 8}}])",
             13, 2);
  }
}

TEST(Containers, ShareNoNamespace) {
  if (const std::string why = WhyNoNamespaces(); !why.empty()) GTEST_SKIP() << why;
  const Folder folder;
  const auto start = [&folder] {
    const pid_t child = ForkInto(Namespaces::kOwn, folder.path());
    while (child == 0) pause();
    return child;
  };
  const std::vector<pid_t> processes = {getpid(), start(), start()};
  for (const char* const kind : {"user", "pid", "mnt", "ipc"}) {
    std::set<std::string> found;
    for (const pid_t process : processes) {
      found.insert(std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/ns/" + kind));
    }
    EXPECT_EQ(found.size(), processes.size()) << kind;
  }
  for (const pid_t child : {processes[1], processes[2]}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(In, MemoryKinds, ::testing::Values(Namespaces::kShared, Namespaces::kOwn),
                         [](const auto& info) {
                           return info.param == Namespaces::kShared ? "OneSetOfNamespaces" : "NamespacesOfTheirOwn";
                         });

}  // namespace
}  // namespace headrace::testing
