// What it costs that data lies in an object store: read from versitygw, a real S3 server on this machine, through a
// proxy of ours that can make it fail. One line a figure:
//   name  value  unit  ratio-to-something-of-this-run
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "sidecar/source/byte_stream.h"
#include "tests/s3/s3_server.h"
#include "tests/sidecar/remote/stores.h"

using headrace::fakes::Answer;
using headrace::fakes::SeenRequest;

namespace headrace::side {
namespace {

constexpr int kFiles = 16;
constexpr size_t kFileBytes = 128 << 20;
constexpr int kFolders = 100;
constexpr int kFilesInFolder = 1000;

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "object_store_bench: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

FileTable List(const S3Server& server, const std::string& path) {
  FilesSource source;
  source.paths = {path};
  source.object_store.endpoint = server.endpoint();
  return Must(ListFiles(source, "/"));
}

uint64_t ReadFile(const FileTable& files, size_t file, uint64_t most, std::atomic<uint64_t>* bytes_read) {
  const auto stream = Must(OpenByteStream(files, file, Compression::kAuto, bytes_read));
  std::vector<uint8_t> buffer(256 << 10);
  uint64_t total = 0;
  while (total < most) {
    const size_t read = Must(stream->Read(buffer.data(), buffer.size()));
    if (read == 0) break;
    total += read;
  }
  return total;
}

// Bytes a second of all files, one after another.
double ReadRate(const std::string& data, S3Server::Fault fault) {
  S3Server server(std::move(fault));
  std::filesystem::create_directory_symlink(data, server.root() + "/bench");
  const FileTable files = List(server, "s3://bench/part-*");
  std::atomic<uint64_t> bytes_read{0};
  uint64_t total = 0;
  const double begin = Seconds();
  for (size_t i = 0; Must(files.Has(i)); ++i) total += ReadFile(files, i, UINT64_MAX, &bytes_read);
  const double rate = static_cast<double>(total) / (Seconds() - begin);
  if (total != kFiles * kFileBytes) std::abort();
  return rate;
}

void ReadFaults() {
  const Folder folder;
  const std::string block = Numbered(1 << 20);
  for (int i = 0; i < kFiles; ++i) {
    std::ofstream file(folder.path() + "/part-" + std::to_string(100 + i), std::ios::binary);
    for (size_t at = 0; at < kFileBytes; at += block.size()) file << block;
  }
  const double whole = ReadRate(folder.path(), {});
  std::printf("%-52s %8.0f MB/s\n", "read 2 GiB, one file after another", whole / 1e6);
  const auto with = [&](const char* what, Answer (*spoil)(const std::function<Answer()>& ask)) {
    const double rate =
        ReadRate(folder.path(), [spoil](int request, const SeenRequest&, const std::function<Answer()>& ask) {
          return request % 20 == 7 ? spoil(ask) : ask();
        });
    std::printf("%-52s %8.0f MB/s  %5.2f of the faultless\n", what, rate / 1e6, rate / whole);
  };
  with("... with 5 % of replies 503", [](const std::function<Answer()>&) {
    return Answer{.status = 503, .body = "<Error><Code>SlowDown</Code></Error>"};
  });
  with("... with 5 % of replies broken off", [](const std::function<Answer()>& ask) {
    Answer answer = ask();
    answer.reset_after = answer.body.size() / 2;
    return answer;
  });
  with("... with 5 % of replies that never come",
       [](const std::function<Answer()>&) { return Answer{.silent = true}; });
}

// A whole run, from the command to the first batch: `headrace run` starts a loader, and reads as a trainer does.
void RunMany(const S3Server& server) {
  const Folder folder;
  const std::string input = folder.path() + "/input.yaml";
  std::ofstream(input)
      << "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: many}\nspec:\n"
         "  source:\n    files:\n      format: FixedLength\n"
         "      paths: [\"s3://many/data/*/part-*\"]\n"
         "      objectStore: {endpoint: \""
      << server.endpoint()
      << "\"}\n  features: [{name: x, dtype: uint8, shape: [10]}]\n  pipeline: [{batch: {size: 64}}]\n";
  const std::filesystem::path bench = std::filesystem::read_symlink("/proc/self/exe");
  const std::string headrace = bench.parent_path().parent_path() / "bin" / "headrace";
  const double begin = Seconds();
  FILE* const output = popen((headrace + " run -f " + input + " --workers 1 --steps 1").c_str(), "r");
  if (output == nullptr) std::abort();
  double first_step = 0;
  char line[4096];
  while (std::fgets(line, sizeof(line), output) != nullptr) {
    if (first_step == 0 && std::string_view(line).starts_with("step 0")) first_step = Seconds() - begin;
  }
  if (pclose(output) != 0 || first_step == 0) std::abort();
  std::printf("%-52s %8.2f s\n", "`headrace run` over them, to its first step", first_step);
  std::printf("%-52s %8.2f s\n", "... and to its end", Seconds() - begin);
}

void ListMany() {
  S3Server server;
  for (int folder = 0; folder < kFolders; ++folder) {
    const std::string path = server.root() + "/many/data/" + std::to_string(1000 + folder);
    std::filesystem::create_directories(path);
    for (int i = 0; i < kFilesInFolder; ++i) std::ofstream(path + "/part-" + std::to_string(1000 + i)) << "some bytes";
  }
  const double begin = Seconds();
  const FileTable files = List(server, "s3://many/data/*/part-*");
  if (!Must(files.Has(0))) std::abort();
  std::atomic<uint64_t> bytes_read{0};
  ReadFile(files, 0, 1, &bytes_read);
  std::printf("%-52s %8.2f s     %5zu requests\n", "the first bytes of 100,000 objects in 100 folders",
              Seconds() - begin, server.proxy().requests().size());
  if (Must(files.Has(size_t{kFolders} * kFilesInFolder))) std::abort();
  if (!Must(files.Has(size_t{kFolders} * kFilesInFolder - 1))) std::abort();
  std::printf("%-52s %8.2f s     %5zu requests\n", "... and all of them listed", Seconds() - begin,
              server.proxy().requests().size());
  RunMany(server);
}

}  // namespace
}  // namespace headrace::side

int main() {
  for (const auto& [name, value] : headrace::side::S3Server::Keys()) setenv(name.c_str(), value.c_str(), 1);
  headrace::side::ReadFaults();
  headrace::side::ListMany();
  return 0;
}
