// A context of the stand-in driver, current in the test's thread, which must leave nothing behind.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "common/gpu/context.h"
#include "tests/fakes/fake_cuda.h"

namespace headrace::gpu {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const Driver*> opened = Driver::Open();
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    driver_ = *opened;
    auto context = PrimaryContext::Retain(driver_, 0);
    ASSERT_TRUE(context.ok()) << context.status().ToString();
    context_ = std::move(*context);
    current_.emplace(*context_);
    before_ = State();
  }
  void TearDown() override {
    current_.reset();
    context_.reset();
    const FakeCudaState left = State();
    EXPECT_EQ(left.contexts + left.streams + left.events + left.registrations + left.device_bytes, 0);
  }
  static FakeCudaState State() {
    FakeCudaState state;
    FakeCudaGetState(&state);
    return state;
  }

  const Driver* driver_ = nullptr;
  std::unique_ptr<PrimaryContext> context_;
  std::optional<PrimaryContext::Current> current_;
  FakeCudaState before_{};
};

}  // namespace headrace::gpu
