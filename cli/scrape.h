// Where loaders serve their metrics, and reading them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/loader_metrics.h"

namespace headrace::cli {

struct MetricsAddress {
  std::string name;  // how a person knows the loader: what was given, or "worker-0"
  std::string host;
  uint16_t port = 0;
  std::string path = "/metrics";
};

// HOST, HOST:PORT or a URL, http, with port and path; an IPv6 address stands in brackets. Without a port it is that of
// pods. Errors: InvalidArgument naming the text.
Result<MetricsAddress> ParseMetricsAddress(const std::string& text);

// The loaders of a run directory: of one loader, or of a run that has worker-N/ in it. Errors: NotFound if no loader
// wrote there where it serves.
Result<std::vector<MetricsAddress>> LoadersOf(const std::string& directory);

// The runs that `headrace run` has on this machine now, the newest first.
std::vector<std::string> LocalRuns();

struct Scrape {
  Status status;  // Unavailable: it could not be asked
  LoaderSample sample;
  std::chrono::steady_clock::time_point time;
};

// All at once; blocks for as long as the slowest, up to a few seconds.
std::vector<Scrape> ScrapeAll(const std::vector<MetricsAddress>& loaders);

}  // namespace headrace::cli
