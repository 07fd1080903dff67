#include "common/base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace headrace {
namespace {

// CPUs' worth of the cgroup's quota, as containers see it; 0: no limit.
double CgroupCpus() {
  double quota = 0;
  double period = 0;
  std::string word;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> word >> period) {
    return word == "max" || period <= 0 ? 0 : std::atof(word.c_str()) / period;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

}  // namespace

size_t UsableCpus() {
  cpu_set_t set;
  size_t cpus = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = static_cast<size_t>(CPU_COUNT(&set));
  if (const double limit = CgroupCpus(); limit > 0) cpus = std::min(cpus, static_cast<size_t>(std::ceil(limit)));
  return std::max<size_t>(cpus, 1);
}

}  // namespace headrace
