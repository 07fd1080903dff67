// The names of the objects that belong to one DistributedInput; the operator makes them and pods refer to them.
#pragma once

#include <string>

namespace headrace::names {

inline std::string PlanConfigMapName(const std::string& input, const std::string& hash) {
  return input + "-plan-" + hash;
}
inline std::string ServiceName(const std::string& input) { return input + "-headrace"; }
inline std::string PeersSecretName(const std::string& input) { return input + "-headrace-peers"; }

}  // namespace headrace::names
