// All metrics of the loader: names, help texts and where their values come from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/ring/writer.h"
#include "sidecar/loader/engine.h"

namespace headrace::side {

// Reads counters when scraped; costs the data path nothing. Thread-safe.
class Probe {
 public:
  // All must outlive the probe.
  Probe(const Feed* feed, const Engine* engine, const std::vector<std::unique_ptr<ring::RingWriter>>* rings)
      : feed_(*feed), engine_(*engine), rings_(*rings) {}

  // In Prometheus' text format.
  std::string Render() const;

 private:
  const Feed& feed_;
  const Engine& engine_;
  const std::vector<std::unique_ptr<ring::RingWriter>>& rings_;
};

}  // namespace headrace::side
