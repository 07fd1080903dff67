// headrace_serve with Python callbacks.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

namespace headrace::python {

// For headrace_connect_options.interrupted: whether a signal's handler has raised.
int LookAtSignals(void*);

// Serves until the loader ends. `start(epoch, num_workers, worker, replicas, replicas_per_worker)` starts an epoch and
// returns None, or a tuple of the declared components [(name, dtype, shape), ..] and the cardinality; `next()` returns
// [(name, array), ..] with C-contiguous numpy arrays, or None at the end. What they raise becomes the error that every
// replica gets.
void Serve(const std::optional<std::string>& directory, int64_t timeout_ms, nanobind::callable start,
           nanobind::callable next);

}  // namespace headrace::python
