#include <cstdio>
#include <string>

#include "cli/commands.h"
#include "common/spec/names.h"
#include "sidecar/device/device.h"
#include "sidecar/device/nccl.h"
#include "sidecar/source/arrow.h"

namespace headrace::cli {
namespace {

std::string CudaText(const device::Report& report) {
  if (report.runtime_version == 0) return "built without";
  std::string text = device::CudaVersionText(report.runtime_version);
  if (report.driver_version == 0) return text + ", no driver here";
  text += ", driver for " + device::CudaVersionText(report.driver_version);
  return report.gpu_error.empty() ? text : text + ", which gives no GPU: " + report.gpu_error;
}

int RunVersion(const CommandLine&) {
  std::printf("headrace %s (%s/%s)\n", HEADRACE_VERSION, names::kGroup, names::kVersion);
  const device::Report report = device::Probe();
  std::printf("cuda     %s\n", CudaText(report).c_str());
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    const device::Gpu& gpu = report.gpus[i];
    const Status check = device::CheckGpu(static_cast<int>(i));
    std::printf("gpu %-4zu %s, compute %d.%d, %llu MiB, %s\n", i, gpu.name.c_str(), gpu.compute_major,
                gpu.compute_minor, static_cast<unsigned long long>(gpu.memory_bytes >> 20),
                check.ok() ? "runs our code" : check.ToString().c_str());
  }
  const Result<int> nccl = device::NcclVersion();
  std::printf("nccl     %s\n", nccl.ok() ? device::NcclVersionText(*nccl).c_str() : "not beside this binary");
  const Result<std::string> arrow = side::ArrowVersion();
  std::printf("arrow    %s\n", arrow.ok() ? arrow->c_str() : "not beside this binary: no Parquet");
  std::printf("delivery %s: %s\n", report.gpus.empty() ? "Host" : "Pinned", device::GpuText(report).c_str());
  return 0;
}

}  // namespace

const Command kVersionCommand = {"version",
                                 "print the version, and what there is of CUDA",
                                 "",
                                 "Prints the version of this command and of the objects it reads, the CUDA runtime and "
                                 "NCCL that it can use,\nthe GPUs that it sees, and where batches go.\n",
                                 {},
                                 RunVersion};

}  // namespace headrace::cli
