#include "common/spec/variable.h"

#include <algorithm>

#include "common/spec/components.h"

namespace headrace {
namespace {

constexpr int64_t kLeastDefault = int64_t{1} << 20;
constexpr int64_t kMostDefault = int64_t{1} << 40;
constexpr int64_t kDefaultPerRecord = 4096;

}  // namespace

uint64_t VariableBytes(const InputSpec& spec, int64_t records) {
  const std::vector<TensorSpec> components = RecordComponents(spec, spec.pipeline.size(), nullptr);
  if (KnowsComponents(spec) && std::none_of(components.begin(), components.end(), IsVariable)) return 0;
  const int64_t otherwise =
      std::max(kLeastDefault, kDefaultPerRecord * std::min(records, kMostDefault / kDefaultPerRecord));
  return static_cast<uint64_t>(spec.delivery.max_batch_bytes.value_or(otherwise));
}

Status OutgrewVariableBytes(uint64_t needed, uint64_t given) {
  return InvalidArgument("spec.delivery.maxBatchBytes: the strings and ragged values of a batch take " +
                         std::to_string(needed) + " bytes and have room for " + std::to_string(given) +
                         "; raise it to at least the former, or make batches smaller");
}

}  // namespace headrace
