#include "sidecar/loader/config.h"

#include <charconv>
#include <cstdlib>

#include "common/spec/names.h"

namespace headrace::side {
namespace {

std::string Env(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

Result<int64_t> Number(const std::string& name, const std::string& text, int64_t min, int64_t max) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return InvalidArgument(name + ": \"" + text + "\" is not a whole number from " + std::to_string(min) + " to " +
                           std::to_string(max));
  }
  return value;
}

Result<int64_t> NumberEnv(const char* name, const char* otherwise, int64_t min, int64_t max) {
  return Number(name, Env(name, otherwise), min, max);
}

}  // namespace

Result<LoaderConfig> ReadConfig() {
  LoaderConfig config;
  config.run_dir = Env(names::kEnvDir, names::kRunDir);
  config.plan_path = Env(names::kEnvPlan, (std::string(names::kPlanDir) + "/" + names::kPlanFile).c_str());
  config.data_dir = Env(names::kEnvDataDir, names::kDefaultDataDir);
  config.run_id = Env(names::kEnvRunId, "");
  config.coordinator = Env(names::kEnvCoordinator, "");
  config.peer_tls_dir = Env(names::kEnvPeerTlsDir, "");
  config.serve_errors = Env(names::kEnvServeErrors, "") == "1";
  ASSIGN_OR_RETURN(config.topology.num_workers, NumberEnv(names::kEnvNumWorkers, "1", 1, 1 << 20));
  ASSIGN_OR_RETURN(config.topology.worker_index,
                   NumberEnv(names::kEnvWorkerIndex, "0", 0, config.topology.num_workers - 1));
  ASSIGN_OR_RETURN(config.topology.replicas_per_worker, NumberEnv(names::kEnvReplicasPerWorker, "1", 1, 1024));
  ASSIGN_OR_RETURN(const int64_t function_timeout, NumberEnv(names::kEnvFunctionTimeout, "60", 1, 1 << 20));
  config.function_timeout_ms = function_timeout * 1000;
  const std::string listen = Env(names::kEnvListen, "");
  if (!listen.empty()) {
    const size_t colon = listen.rfind(':');
    if (colon == std::string::npos) {
      return InvalidArgument(std::string(names::kEnvListen) + ": \"" + listen + "\" is not \"address:port\"");
    }
    config.listen_address = listen.substr(0, colon);
    ASSIGN_OR_RETURN(const int64_t port,
                     Number(std::string(names::kEnvListen) + "'s port", listen.substr(colon + 1), 0, 65535));
    config.listen_port = static_cast<uint16_t>(port);
  }
  return config;
}

}  // namespace headrace::side
