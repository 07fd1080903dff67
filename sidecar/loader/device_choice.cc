#include "sidecar/loader/device_choice.h"

#include "common/gpu/driver.h"
#include "sidecar/device/images.h"

namespace headrace::side {
namespace {

// "image", "mask"
std::string Names(const Feed& feed) {
  std::string names;
  for (const GpuImages& images : feed.gpu_images()) {
    names += (names.empty() ? "\"" : ", \"") + images.decoded.name + "\"";
  }
  return names;
}

// Whether GPU 0 takes our kernels.
Status TryImageKernels() {
  ASSIGN_OR_RETURN(const gpu::Driver* const driver, gpu::Driver::Open());
  ASSIGN_OR_RETURN(const auto context, gpu::PrimaryContext::Retain(driver, 0));
  return device::ImageKernels::Load(context.get()).status();
}

}  // namespace

MapsChoice ChooseLastMaps(const Delivery& delivery) {
  if (delivery.memory != MemoryKind::kDevice) return {};
  const Status status = TryImageKernels();
  if (status.ok()) return {LastMaps::kOnGpu, ""};
  return {LastMaps::kOnCpu, status.message()};
}

Result<DeviceChoice> ChooseDevice(const Feed& feed, const std::vector<std::unique_ptr<ring::RingWriter>>& rings) {
  const Delivery& delivery = feed.plan().spec.delivery;
  DeviceChoice choice;
  if (delivery.memory == MemoryKind::kHost || delivery.memory == MemoryKind::kPinned) return choice;
  if (delivery.memory == MemoryKind::kAuto && delivery.resource_claim.empty()) {
    choice.reason = "there is no spec.delivery.resourceClaim that gives the loader a GPU";
    return choice;
  }
  if (const Result<int> gpus = gpu::CountGpus(); !gpus.ok()) {
    choice.reason = "the loader has no GPU: " + gpus.status().message();
    return choice;
  }
  const std::vector<GpuImages> images(feed.gpu_images().begin(), feed.gpu_images().end());
  ASSIGN_OR_RETURN(choice.rings, device::MakeDeviceRings(rings, images));
  choice.reason = "the loader fills rings on " + std::to_string(choice.rings.size()) + " GPU(s) of its claim";
  if (!images.empty()) choice.reason += ", which do the last maps of " + Names(feed);
  return choice;
}

std::string MemoryText(MemoryKind memory, const DeviceChoice& choice) {
  const std::string asked = "spec.delivery.memory is " + std::string(MemoryKindName(memory));
  if (!choice.rings.empty()) return "Device: " + choice.reason + "; " + asked;
  if (memory == MemoryKind::kHost || memory == MemoryKind::kPinned) return std::string(MemoryKindName(memory));
  return "Pinned for trainers that find a GPU" + std::string(memory == MemoryKind::kAuto ? ", else Host" : "") + ": " +
         choice.reason + "; " + asked;
}

std::string WhyDeviceOnly(const Feed& feed) {
  if (feed.gpu_images().empty()) return {};
  return "spec.delivery.memory is Device, and the loader's GPU does the last maps of component " + Names(feed) +
         ", so that host memory has only what they are made of: take GPU memory (headrace.connect without "
         "memory=\"host\", takes_device in C), or write spec.delivery.memory: Auto, Pinned or Host";
}

}  // namespace headrace::side
