#include "client/destination.h"

namespace headrace::client {
namespace {

std::vector<Destination> AllToHost(const ring::HandshakeReply& reply, const std::string& why) {
  return {static_cast<size_t>(reply.topology.replicas_per_worker), Destination{{}, "Host: " + why}};
}

}  // namespace

Result<std::vector<Destination>> ChooseDestinations(const ConnectPolicy& policy, const ring::HandshakeReply& reply) {
  // The loader does not write to GPU memory itself yet: what it should bring there, the client does.
  const bool device = reply.memory == MemoryKind::kDevice;
  const bool pinned = reply.memory == MemoryKind::kPinned || device;
  const std::string asked = "spec.delivery.memory is " + std::string(MemoryKindName(reply.memory));
  if (reply.memory == MemoryKind::kHost) return AllToHost(reply, "spec.delivery.memory says so");
  if (!policy.takes_device) return AllToHost(reply, "the trainer takes host memory only");
  const Result<int> count = gpu::CountGpus();
  if (!count.ok()) {
    if (pinned) return count.status().WithContext(asked + ", and the trainer's process has no GPU");
    return AllToHost(reply, count.status().message());
  }
  std::vector<Destination> destinations;
  for (int r = 0; r < static_cast<int>(reply.topology.replicas_per_worker); ++r) {
    const int gpu = policy.gpus.empty() ? r % *count : policy.gpus[static_cast<size_t>(r) % policy.gpus.size()];
    if (gpu < 0 || gpu >= *count) {
      return InvalidArgument("replica " + std::to_string(r) + " is to have GPU " + std::to_string(gpu) +
                             ", and this process sees GPUs 0 to " + std::to_string(*count - 1) +
                             ": name one of them, or see CUDA_VISIBLE_DEVICES");
    }
    destinations.push_back({gpu, "Pinned: GPU " + std::to_string(gpu) + " of the " + std::to_string(*count) +
                                     " that the trainer's process sees" + "; " + asked +
                                     (device ? ", which this version delivers as Pinned does" : "")});
  }
  return destinations;
}

}  // namespace headrace::client
