#include "operator/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace headrace::op {
namespace {

using Setter = std::function<Status(const std::string& value)>;

Setter Text(std::string& field) {
  return [&field](const std::string& value) {
    field = value;
    return Status();
  };
}

template <typename T>
Setter Number(T& field, int low, int high) {
  return [&field, low, high](const std::string& value) -> Status {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < low || number > high)
      return InvalidArgument("'" + value + "' is not a number from " + std::to_string(low) + " to " +
                             std::to_string(high));
    field = T(number);
    return {};
  };
}

constexpr int kMostUser = 2147483647;

// Empty stays: none.
template <typename T>
Setter Memory(T& field) {
  return [&field](const std::string& value) -> Status {
    if (value.empty()) return {};
    ASSIGN_OR_RETURN(field, QuantityBytes(value));
    return {};
  };
}

Setter Cpu(std::string& field) {
  return [&field](const std::string& value) -> Status {
    const size_t digits = std::min(value.find_first_not_of("0123456789."), value.size());
    const bool milli = value.size() == digits + 1 && value.back() == 'm';
    if (!value.empty() && (digits == 0 || (digits != value.size() && !milli))) {
      return InvalidArgument("'" + value + "' is no number of CPUs: write 2, 0.5 or 500m");
    }
    field = value;
    return {};
  };
}

}  // namespace

Result<Config> ParseConfig(const std::vector<std::string>& arguments) {
  Config config;
  if (const char* host = std::getenv("HOSTNAME")) config.identity = host;
  const std::map<std::string, Setter> flags = {
      {"loader-image", Text(config.loader.image)},
      {"image-pull-policy", Text(config.loader.image_pull_policy)},
      {"loader-cpu-request", Cpu(config.loader.resources.cpu_request)},
      {"loader-cpu-limit", Cpu(config.loader.resources.cpu_limit)},
      {"loader-memory-request", Memory(config.loader.resources.memory_request_bytes)},
      {"loader-memory-limit", Memory(config.loader.resources.memory_limit_bytes)},
      {"loader-run-as-user", Number(config.loader.run_as_user, 1, kMostUser)},
      {"ring-volume", Memory(config.loader.run_volume_bytes)},
      {"webhook-port", Number(config.webhook_port, 0, 65535)},
      {"metrics-port", Number(config.metrics_port, 0, 65535)},
      {"secure-metrics-port", Number(config.secure_metrics_port, 0, 65535)},
      {"webhook-configuration", Text(config.webhook_configuration)},
      {"webhook-service", Text(config.webhook_service)},
      {"certificate-secret", Text(config.certificate_secret)},
      {"lease", Text(config.lease)},
      {"namespace", Text(config.name_space)},
      {"identity", Text(config.identity)},
      {"workers", Number(config.workers, 1, 64)},
      {"drain-seconds", Number(config.drain, 0, 60)},
      {"api-server", Text(config.api_server)},
  };
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string::npos)
      return InvalidArgument("argument '" + argument + "': expected --name=value");
    const std::string name = argument.substr(2, equals - 2);
    const auto flag = flags.find(name);
    if (flag == flags.end()) return InvalidArgument("flag --" + name + ": not known");
    RETURN_IF_ERROR(flag->second(argument.substr(equals + 1)), "flag --" + name);
  }
  if (config.loader.image.empty()) return InvalidArgument("flag --loader-image: required");
  const std::string& policy = config.loader.image_pull_policy;
  if (policy != "Always" && policy != "IfNotPresent" && policy != "Never")
    return InvalidArgument("flag --image-pull-policy: '" + policy + "' is none of Always, IfNotPresent, Never");
  if (config.identity.empty()) return InvalidArgument("flag --identity: required where HOSTNAME is not set");
  return config;
}

}  // namespace headrace::op
