#include "cli/case_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

constexpr int kConnectTimeoutMs = 10000;
constexpr int kNextTimeoutMs = 10000;

// Reads `fd` to its end and closes it.
std::string Drain(int fd) {
  std::string text;
  char block[1 << 16];
  for (ssize_t count; (count = read(fd, block, sizeof block)) > 0;) text.append(block, static_cast<size_t>(count));
  close(fd);
  return text;
}

}  // namespace

Status ReadEpoch(WorkerStream& stream, const EpochRequest& request, json* steps) {
  RETURN_IF_ERROR(stream.StartEpoch());
  while (steps->size() < request.most) {
    ASSIGN_OR_RETURN(const WorkerStep step, stream.Next(request.iteration, kNextTimeoutMs));
    if (step.empty()) break;
    json records = json::array();
    for (const ReplicaBatch& batch : step) records.push_back(RecordsAsJson(batch));
    steps->push_back(std::move(records));
  }
  return {};
}

Status ReadEpochByProcesses(const std::string& run_directory, int64_t replicas, const EpochRequest& request,
                            json* steps) {
  std::vector<Process> processes;
  std::vector<int> outputs;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe2");
    ProcessOptions options;
    options.argv = {SiblingBinary("headrace"), "verify", "--read",
                    json{replica, request.most, request.iteration == WorkerStream::Iteration::kNextAsOptional}.dump()};
    options.environment = {{names::kEnvDir, run_directory}};
    options.stdout_fd = ends[1];
    Result<Process> started = Process::Start(options);
    close(ends[1]);
    outputs.push_back(ends[0]);
    RETURN_IF_ERROR(started.status());
    processes.push_back(std::move(started).value());
  }
  std::string error;
  std::vector<json> by_replica;
  for (const int output : outputs) {
    const json read = json::parse(Drain(output), nullptr, /*allow_exceptions=*/false);
    if (!read.is_object()) return Internal("a replica's process printed no JSON object");
    if (read.contains("error")) error = read["error"];
    by_replica.push_back(read.at("steps"));
  }
  for (size_t s = 0; s < by_replica[0].size(); ++s) {
    json step = json::array();
    for (const json& own : by_replica) {
      if (own.size() != by_replica[0].size())
        return Internal("the replicas' processes read different numbers of steps");
      step.push_back(own[s].at(0));
    }
    steps->push_back(std::move(step));
  }
  return error.empty() ? Status() : ParseStatus(error);
}

Status PrintEpochOfReplica(const std::string& text) {
  const json asked = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!asked.is_array() || asked.size() != 3)
    return InvalidArgument("--read " + text + ": not [REPLICA, MOST, OPTIONAL]");
  const char* const directory = std::getenv(names::kEnvDir);
  json steps = json::array();
  const auto read = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto stream, WorkerStream::Connect(
                                            directory == nullptr ? "" : directory, kConnectTimeoutMs,
                                            [] { return false; }, asked[0].get<int>()));
    return ReadEpoch(*stream,
                     {asked[2].get<bool>() ? WorkerStream::Iteration::kNextAsOptional : WorkerStream::Iteration::kNext,
                      asked[1].get<size_t>()},
                     &steps);
  };
  const Status status = read();
  json out = {{"steps", steps}};
  if (!status.ok()) out["error"] = status.ToString();
  std::printf("%s\n", out.dump().c_str());
  return {};
}

}  // namespace headrace::cli
