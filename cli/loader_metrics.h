// What a loader counts, as its /metrics say it: the names are those of sidecar/loader/probe.cc.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace headrace::cli {

// Counters since the loader started, times in seconds.
struct LoaderSample {
  struct Stage {
    double busy = 0;
    double blocked_on_input = 0;
    double blocked_on_output = 0;
  };
  struct Replica {
    double batches = 0;
    double records = 0;
    double bytes = 0;
    double trainer_wait = 0;
    double ring_full = 0;
    double ring_batches = 0;  // now
    double ring_slots = 0;
  };
  std::string input;  // "namespace/name"
  double epoch = 0;
  double bytes_read = 0;
  double decode_threads = 0;  // now
  Stage read;
  Stage decode;
  std::vector<Replica> replicas;  // by number
};

// Reads Prometheus' text format; passes over what it does not know. Errors: InvalidArgument if there is no
// headrace_loader_info, for then it is not a loader's.
Result<LoaderSample> ParseLoaderMetrics(const std::string& text);

// How a loader went between two samples. Times are seconds a second, so 1 is one thread all the time.
struct LoaderRates {
  double seconds = 0;
  LoaderSample rates;  // counters are amounts a second; what is "now", epoch and input are the later sample's
};

// A counter that went down began anew: its loader was restarted. REQUIRES: seconds > 0.
LoaderRates RatesBetween(const LoaderSample& before, const LoaderSample& after, double seconds);

}  // namespace headrace::cli
