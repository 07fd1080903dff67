// Work of several threads. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/status.h>

#include <cstddef>
#include <functional>

namespace headrace::side {

// Arrow's threads: as many as this process may use CPUs, with the one that asks for them. To be called before they are
// used for the first time; does nothing after that. Any thread.
void LimitArrowThreads();

// Calls fn(0) .. fn(count - 1), in the calling thread and in such of Arrow's as are idle, and returns once all have
// ended: with the first error of them, if there is one. Any thread.
arrow::Status InParallel(size_t count, const std::function<arrow::Status(size_t)>& fn);

}  // namespace headrace::side
