// spec.distribution.collective: what, beside TCP, carries batches between the loaders of a run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/plan.h"

namespace headrace {

// `path` is "spec.distribution.collective".
Collective ParseCollective(const nlohmann::json& object, const std::string& path, std::vector<FieldError>* errors);
nlohmann::json CollectiveToJson(const Collective& collective);
// The rules between it and other fields.
void CheckCollective(const InputSpec& spec, std::vector<FieldError>* errors);

// What worker 0 may read for all and hand to the others.
enum class Exchanged {
  kNothing,
  kSame,   // every worker delivers the same
  kParts,  // each delivers its part, if finding the parts needs all of the data to be read: the loader finds out
};
Exchanged WhatIsExchanged(const Plan& plan);
// In words: what is exchanged, or why nothing is. "" with backend TCP.
std::string ExchangeReason(const Plan& plan);

}  // namespace headrace
