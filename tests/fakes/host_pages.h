// What this process has mapped, as the stand-in for CUDA asks it of the kernel.
#pragma once

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fakes/fake_cuda_state.h"

namespace headrace::gpu::fake {

inline bool IsMapped(uintptr_t address, size_t bytes) {
  std::vector<unsigned char> pages((bytes + kPageBytes - 1) / kPageBytes);
  const uintptr_t begin = address / kPageBytes * kPageBytes;
  return mincore(reinterpret_cast<void*>(begin), address + bytes - begin, pages.data()) == 0;
}

// Whether the kernel would lock these mapped pages: not those that are shared with a file of a disk.
inline bool IsLockable(uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char access[5] = {};
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %*s %n", &begin, &end, access, &path) < 3) continue;
    if (address < begin || address >= end || access[3] != 's') continue;
    struct statfs of {};
    return statfs(line.c_str() + path, &of) != 0 || of.f_type == TMPFS_MAGIC;  // a memfd has no path
  }
  return true;
}

}  // namespace headrace::gpu::fake
