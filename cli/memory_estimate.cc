#include "cli/memory_estimate.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/ring/layout.h"
#include "common/spec/memory.h"
#include "common/spec/remote_path.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

static_assert(kRingTensorAlign == ring::kTensorAlign && kRingPageBytes == ring::kPageBytes);

// The mean size of the first records of a file, where their format says it soon.
std::optional<int64_t> FirstRecordsBytes(const std::string& path, FileFormat format) {
  std::vector<char> bytes(64 << 10);
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  int64_t records = 0;
  size_t end = 0;
  switch (format) {
    case FileFormat::kText:
    case FileFormat::kCsv:
    case FileFormat::kJsonLines:
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != '\n') continue;
        ++records;
        end = i + 1;
      }
      break;
    case FileFormat::kTFRecord:
      while (end + sizeof(uint64_t) <= bytes.size()) {
        uint64_t length = 0;
        std::memcpy(&length, &bytes[end], sizeof length);
        if (length > (uint64_t{1} << 30)) return std::nullopt;  // compressed, or no such file
        end += static_cast<size_t>(length) + 16;                // with its frame
        ++records;
      }
      break;
    default: return std::nullopt;
  }
  return records == 0 ? std::nullopt : std::optional(static_cast<int64_t>(end) / records);
}

}  // namespace

json MemoryEstimate(const Plan& plan, const std::vector<std::string>& files, int64_t rows, int64_t workers,
                    int64_t replicas_per_worker) {
  FilesSeen seen;
  const auto* const source = std::get_if<FilesSource>(&plan.spec.source);
  if (source != nullptr && !files.empty()) {
    seen.remote = IsRemotePath(files[0]);
    if (!seen.remote) seen.record_bytes = FirstRecordsBytes(files[0], source->format);
  }
  const auto memory = EstimateMemory(plan, {workers, 0, replicas_per_worker}, rows, seen);
  if (!memory) return json();
  const auto known = [](const std::optional<int64_t>& bytes) { return bytes ? json(*bytes) : json(); };
  return {{"slotBytes", memory->slot_bytes},
          {"prefetchSteps", memory->prefetch_steps},
          {"bytesPerWorker", memory->ring_bytes},
          {"shuffleBytes", known(memory->shuffle_bytes)},
          {"readAheadBytes", memory->read_ahead_bytes},
          {"loaderBytes", known(memory->loader_bytes)}};
}

}  // namespace headrace::cli
