#include "client/destination.h"

#include <algorithm>

namespace headrace::client {
namespace {

struct Choice {
  const ConnectPolicy& policy;
  const ring::HandshakeReply& reply;
  int gpus;  // that this process sees
  std::vector<std::string> uuids;

  std::string Asked() const { return "spec.delivery.memory is " + std::string(MemoryKindName(reply.memory)); }
};

std::vector<Destination> AllToHost(const ring::HandshakeReply& reply, const std::string& why) {
  return {static_cast<size_t>(reply.topology.replicas_per_worker), Destination{MemoryKind::kHost, {}, "Host: " + why}};
}

// The GPU that the trainer names for a replica, or that is its by its number. Errors: InvalidArgument.
Result<int> TrainersGpu(const Choice& choice, int replica) {
  const std::vector<int>& named = choice.policy.gpus;
  const int gpu = named.empty() ? replica % choice.gpus : named[static_cast<size_t>(replica) % named.size()];
  if (gpu >= 0 && gpu < choice.gpus) return gpu;
  return InvalidArgument("replica " + std::to_string(replica) + " is to have GPU " + std::to_string(gpu) +
                         ", and this process sees GPUs 0 to " + std::to_string(choice.gpus - 1) +
                         ": name one of them, or see CUDA_VISIBLE_DEVICES");
}

Result<Destination> ToPinned(const Choice& choice, int replica, const std::string& why_not_device) {
  ASSIGN_OR_RETURN(const int gpu, TrainersGpu(choice, replica));
  return Destination{MemoryKind::kPinned, gpu,
                     "Pinned: GPU " + std::to_string(gpu) + " of the " + std::to_string(choice.gpus) +
                         " that the trainer's process sees; " + choice.Asked() +
                         (why_not_device.empty() ? "" : ", and " + why_not_device)};
}

// Where the loader fills a ring on a GPU for this replica.
Result<Destination> ToDevice(const Choice& choice, int replica) {
  const std::string& uuid = choice.reply.device_rings[static_cast<size_t>(replica)].gpu;
  const auto found = std::find(choice.uuids.begin(), choice.uuids.end(), uuid);
  std::string why_not = "the loader fills replica " + std::to_string(replica) + "'s ring on " + uuid;
  if (found == choice.uuids.end()) {
    why_not += ", which this process does not see";
  } else {
    const int gpu = static_cast<int>(found - choice.uuids.begin());
    if (choice.policy.gpus.empty() ||
        choice.policy.gpus[static_cast<size_t>(replica) % choice.policy.gpus.size()] == gpu)
      return Destination{
          MemoryKind::kDevice, gpu,
          "Device: GPU " + std::to_string(gpu) + " (" + uuid + "), filled by the loader; " + choice.Asked()};
    why_not += ", GPU " + std::to_string(gpu) + " of this process, which names another";
  }
  ASSIGN_OR_RETURN(Destination pinned, ToPinned(choice, replica, why_not));
  // A process for each GPU need not see those of the others' replicas.
  if (choice.reply.memory == MemoryKind::kDevice) {
    pinned.error = InvalidArgument(choice.Asked() + ", and " + why_not +
                                   ": give trainer and loader the whole claim, see CUDA_VISIBLE_DEVICES and the gpus "
                                   "that are named when connecting, or write spec.delivery.memory: Auto");
  }
  return pinned;
}

}  // namespace

Result<std::vector<Destination>> ChooseDestinations(const ConnectPolicy& policy, const ring::HandshakeReply& reply) {
  if (reply.memory == MemoryKind::kHost) return AllToHost(reply, "spec.delivery.memory says so");
  if (!policy.takes_device && !reply.device_only.empty()) return InvalidArgument(reply.device_only);
  if (!policy.takes_device) return AllToHost(reply, "the trainer takes host memory only");
  Choice choice{policy, reply, 0, {}};
  const Result<int> count = gpu::CountGpus();
  if (!count.ok()) {
    if (reply.memory == MemoryKind::kAuto) return AllToHost(reply, count.status().message());
    return count.status().WithContext(choice.Asked() + ", and the trainer's process has no GPU");
  }
  choice.gpus = *count;
  const auto replicas = static_cast<size_t>(reply.topology.replicas_per_worker);
  const bool device = reply.device_rings.size() == replicas;
  for (int gpu = 0; device && gpu < choice.gpus; ++gpu) {
    ASSIGN_OR_RETURN(std::string uuid, gpu::GpuUuid(gpu));
    choice.uuids.push_back(std::move(uuid));
  }
  std::vector<Destination> destinations;
  for (int replica = 0; replica < static_cast<int>(replicas); ++replica) {
    ASSIGN_OR_RETURN(Destination to,
                     device ? ToDevice(choice, replica) : ToPinned(choice, replica, reply.memory_reason));
    destinations.push_back(std::move(to));
  }
  return destinations;
}

}  // namespace headrace::client
