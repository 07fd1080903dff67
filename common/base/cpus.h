// How many processors there are for this process.
#pragma once

#include <cstddef>

namespace headrace {

// CPUs that this process may use at a time: the smaller of its affinity and its cgroup's quota, rounded up; at least 1.
// Any thread.
size_t UsableCpus();

}  // namespace headrace
