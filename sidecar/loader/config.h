// The loader's configuration: the environment that the webhook (or `headrace run`) gives it. See common/spec/names.h.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/spec/plan.h"

namespace headrace::side {

struct LoaderConfig {
  std::string run_dir;    // HEADRACE_DIR
  std::string plan_path;  // HEADRACE_PLAN
  std::string data_dir;   // HEADRACE_DATA_DIR
  std::string run_id;     // HEADRACE_RUN_ID
  Topology topology;
  std::string listen_address;  // HEADRACE_LISTEN; empty: no HTTP
  uint16_t listen_port = 0;
  std::string coordinator;          // HEADRACE_COORDINATOR; empty: the loaders of this run do not agree on ends
  std::string peer_tls_dir;         // HEADRACE_PEER_TLS_DIR
  int64_t function_timeout_ms = 0;  // HEADRACE_FUNCTION_TIMEOUT
  bool serve_errors = false;        // HEADRACE_SERVE_ERRORS: stay up and answer with the error at the first attempt
};

// Errors: InvalidArgument naming the variable, its value and what it takes.
Result<LoaderConfig> ReadConfig();

}  // namespace headrace::side
