#include "cli/scrape.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <future>
#include <string_view>

#include "cli/loaders.h"
#include "common/net/http_get.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kTimeoutMs = 2000;

Status BadAddress(const std::string& text, const std::string& why) {
  return InvalidArgument("\"" + text + "\": " + why +
                         "; a loader is named by HOST, HOST:PORT or a URL like http://127.0.0.1:9464/metrics");
}

// Where the loader of a run directory wrote that it serves.
Result<MetricsAddress> AddressIn(const fs::path& directory, const std::string& name) {
  const fs::path path = directory / names::kMetricsFile;
  std::ifstream file(path);
  std::string text;
  if (!std::getline(file, text)) return NotFound(path.string() + ": not there");
  ASSIGN_OR_RETURN(MetricsAddress address, ParseMetricsAddress(text));
  address.name = name;
  return address;
}

}  // namespace

Result<MetricsAddress> ParseMetricsAddress(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  MetricsAddress address;
  address.name = text;
  std::string rest = text;
  if (rest.starts_with(kScheme)) rest = rest.substr(kScheme.size());
  if (rest.find("://") != std::string::npos) return BadAddress(text, "loaders serve metrics by plain http");
  if (const size_t slash = rest.find('/'); slash != std::string::npos) {
    address.path = rest.substr(slash);
    rest = rest.substr(0, slash);
  }
  std::string port = std::to_string(names::kLoaderPort);
  const bool bracketed = rest.starts_with("[");
  const size_t colon = rest.rfind(':');
  if (colon != std::string::npos && (!bracketed || rest[colon - 1] == ']')) {
    port = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  if (bracketed) {
    if (!rest.ends_with("]")) return BadAddress(text, "the bracket is not closed");
    rest = rest.substr(1, rest.size() - 2);
  } else if (rest.find(':') != std::string::npos) {
    return BadAddress(text, "an IPv6 address stands in brackets");
  }
  if (rest.empty()) return BadAddress(text, "there is no host");
  address.host = rest;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port == 0) {
    return BadAddress(text, "\"" + port + "\" is no port");
  }
  return address;
}

Result<std::vector<MetricsAddress>> LoadersOf(const std::string& directory) {
  if (Result<MetricsAddress> only = AddressIn(directory, fs::path(directory).filename()); only.ok()) {
    return std::vector<MetricsAddress>{std::move(only).value()};
  }
  std::vector<MetricsAddress> loaders;
  for (int64_t worker = 0;; ++worker) {
    const std::string name = WorkerDirectoryName(worker);
    Result<MetricsAddress> loader = AddressIn(fs::path(directory) / name, name);
    if (!loader.ok()) break;
    loaders.push_back(std::move(loader).value());
  }
  if (!loaders.empty()) return loaders;
  return NotFound(directory + ": no loader serves metrics there: neither it nor " + WorkerDirectoryName(0) +
                  "/ in it holds " + names::kMetricsFile +
                  "; give a loader's HEADRACE_DIR, or the folder that `headrace run` made for the run");
}

std::vector<std::string> LocalRuns() {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  for (const std::string& parent : ScratchParents()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("headrace-run-") && !name.starts_with("headrace-bench-")) continue;
      if (LoadersOf(entry.path()).ok()) found.emplace_back(entry.last_write_time(error), entry.path());
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> runs;
  for (auto& [time, path] : found) runs.push_back(std::move(path));
  return runs;
}

std::vector<Scrape> ScrapeAll(const std::vector<MetricsAddress>& loaders) {
  std::vector<std::future<Scrape>> asked;
  for (const MetricsAddress& loader : loaders) {
    asked.push_back(std::async(std::launch::async, [&loader] {
      Scrape scrape;
      const Result<std::string> text = HttpGet(loader.host, loader.port, loader.path, kTimeoutMs);
      scrape.time = std::chrono::steady_clock::now();
      scrape.status = text.status();
      if (!text.ok()) return scrape;
      Result<LoaderSample> sample = ParseLoaderMetrics(*text);
      scrape.status = sample.status();
      if (sample.ok()) scrape.sample = std::move(sample).value();
      return scrape;
    }));
  }
  std::vector<Scrape> scrapes;
  for (auto& scrape : asked) scrapes.push_back(scrape.get());
  return scrapes;
}

}  // namespace headrace::cli
