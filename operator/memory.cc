#include "operator/memory.h"

#include <malloc.h>

namespace headrace::op {

void BoundMemory() {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
}

}  // namespace headrace::op
