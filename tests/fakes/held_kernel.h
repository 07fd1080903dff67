// What a stream of the stand-in for CUDA runs in place of a trainer's kernel.
#pragma once

#include <atomic>

namespace headrace::fakes {

// Runs until it is told to end.
struct HeldKernel {
  std::atomic<bool> end = false;
  static void Run(void* kernel) { static_cast<HeldKernel*>(kernel)->end.wait(false); }
  void End() {
    end = true;
    end.notify_all();
  }
};

}  // namespace headrace::fakes
