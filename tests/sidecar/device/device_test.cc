#include "sidecar/device/device.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sidecar/device/nccl.h"

namespace headrace::device {
namespace {

TEST(Device, ReportsTheLinkedRuntime) {
  // HEADRACE_HAVE_CUDA is what CMake chose to link, as a value.
  EXPECT_EQ(Probe().runtime_version > 0, HEADRACE_HAVE_CUDA == 1);
}

TEST(Device, WorksWithoutADriver) {
  if (std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "this machine has an NVIDIA driver";
  const Report report = Probe();
  EXPECT_EQ(report.driver_version, 0);
  EXPECT_TRUE(report.gpus.empty());
  EXPECT_EQ(CheckGpu(0).code(), Code::kNotFound);
}

TEST(Device, EveryGpuRunsOurCode) {
  const Report report = Probe();
  if (report.gpus.empty()) GTEST_SKIP() << "no GPU here: " << GpuText(report);
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    const Status status = CheckGpu(static_cast<int>(i));
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(CheckGpu(static_cast<int>(report.gpus.size())).code(), Code::kNotFound);
}

TEST(Device, TextNamesTheFirstThingMissing) {
  EXPECT_EQ(GpuText({}), "this build is without CUDA");
  EXPECT_EQ(GpuText({.runtime_version = 13050}), "no CUDA driver in this process");
  EXPECT_EQ(GpuText({.runtime_version = 13050, .driver_version = 12040, .gpu_error = "driver too old"}),
            "the CUDA driver gives no GPU: driver too old");
  EXPECT_EQ(GpuText({.runtime_version = 13050, .driver_version = 13050}), "the CUDA driver sees no GPU");
  EXPECT_EQ(GpuText({.runtime_version = 13050, .driver_version = 13050, .gpus = {Gpu{}}}), "1 GPU");
  EXPECT_EQ(GpuText({.runtime_version = 13050, .driver_version = 13050, .gpus = {Gpu{}, Gpu{}}}), "2 GPUs");
}

TEST(Device, VersionsReadAsTheirVendorsWriteThem) {
  EXPECT_EQ(CudaVersionText(13050), "13.5");
  EXPECT_EQ(CudaVersionText(12080), "12.8");
  EXPECT_EQ(NcclVersionText(23203), "2.32.3");
  EXPECT_EQ(NcclVersionText(22105), "2.21.5");
}

TEST(Nccl, ModuleOpensWhereItWasBuilt) {
  const Result<int> version = NcclVersion();
  if (HEADRACE_HAVE_NCCL == 1) {
    ASSERT_TRUE(version.ok()) << version.status().ToString();
    EXPECT_EQ(*version / 10000, 2);
  } else {
    EXPECT_EQ(version.status().code(), Code::kNotFound);
  }
}

}  // namespace
}  // namespace headrace::device
