#include "operator/admission/loader_resources.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/spec/memory.h"
#include "common/spec/remote_path.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr int64_t kMi = int64_t{1} << 20;
constexpr int64_t kRoom = 256 * kMi;  // for what no estimate knows

// Whole Mi: easy to read, and never less.
std::string Quantity(int64_t bytes) { return std::to_string((bytes + kMi - 1) / kMi) + "Mi"; }

std::string Text(int64_t bytes) { return std::to_string(bytes) + " bytes (" + Quantity(bytes) + ")"; }

// The quantity "memory" of requests or limits, if it is there.
Result<std::optional<int64_t>> MemoryOf(const json& quantities, const char* list) {
  const auto memory = quantities.find("memory");
  if (memory == quantities.end()) return std::optional<int64_t>();
  const Result<int64_t> bytes = QuantityBytes(*memory);
  RETURN_IF_ERROR(bytes, std::string("spec.loader.resources.") + list + ".memory");
  return std::optional(*bytes);
}

bool IsRemote(const InputSpec& spec) {
  const auto* files = std::get_if<FilesSource>(&spec.source);
  return files != nullptr && !files->paths.empty() && IsRemotePath(files->paths[0]);
}

}  // namespace

Result<int64_t> QuantityBytes(const json& quantity) {
  if (quantity.is_number()) return static_cast<int64_t>(std::ceil(quantity.get<double>()));
  const std::string text = quantity.is_string() ? quantity.get<std::string>() : quantity.dump();
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},     {"m", 1e-3},    {"k", 1e3},        {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"P", 1e15},
      {"E", 1e18}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  char* end = nullptr;
  // "1E" is exa, not an exponent without digits, which strtod leaves alone.
  const double number = std::strtod(text.c_str(), &end);
  for (const auto& [unit, factor] : kUnits) {
    if (end == text.c_str() || end != unit || text.find_first_not_of("0123456789.eE+-kKMGTPim") != text.npos) continue;
    const double bytes = std::ceil(number * factor);
    if (bytes >= 0 && bytes < 0x1p62) return static_cast<int64_t>(bytes);
  }
  return InvalidArgument("\"" + text + "\" is no quantity of memory: write a number with a unit, such as 512Mi");
}

Result<json> LoaderResources(const json& input, const Plan& plan, const Topology& run,
                             const ResourceDefaults& defaults) {
  json resources = {{"requests", json::object()}, {"limits", json::object()}};
  resources.update(input.value("/spec/loader/resources"_json_pointer, json::object()));
  json& requests = resources["requests"];
  json& limits = resources["limits"];
  const auto memory = EstimateMemory(plan, run, LargestPiece(plan, run), {.remote = IsRemote(plan.spec)});
  const int64_t rings = memory ? memory->ring_bytes : 0;

  if (!requests.contains("cpu") && !limits.contains("cpu")) requests["cpu"] = defaults.cpu_request;
  if (!limits.contains("cpu") && !defaults.cpu_limit.empty()) limits["cpu"] = defaults.cpu_limit;

  ASSIGN_OR_RETURN(const std::optional<int64_t> asked, MemoryOf(requests, "requests"));
  ASSIGN_OR_RETURN(const std::optional<int64_t> allowed, MemoryOf(limits, "limits"));
  if (allowed && *allowed <= rings) {
    return InvalidArgument("spec.loader.resources.limits.memory: " + Text(*allowed) +
                           " does not hold the rings of a worker, which take up to " + Text(rings) +
                           " of the loader's memory: raise it, or lower spec.delivery.prefetchSteps");
  }
  const std::optional<int64_t> own = memory ? memory->loader_bytes : std::nullopt;
  int64_t request =
      std::max(own.value_or(0), defaults.memory_request_bytes) + (memory ? memory->certain_ring_bytes : 0);
  if (!allowed && (defaults.memory_limit_bytes || own)) {
    const int64_t limit =
        std::max(asked.value_or(0), rings + defaults.memory_limit_bytes.value_or(2 * own.value_or(0) + kRoom));
    limits["memory"] = Quantity(limit);
    request = std::min(request, limit);
  }
  if (!asked && !allowed) requests["memory"] = Quantity(request);  // with a limit alone, that is the request, too
  for (const char* list : {"requests", "limits"}) {
    if (resources[list].empty()) resources.erase(list);
  }
  return resources;
}

}  // namespace headrace::op
