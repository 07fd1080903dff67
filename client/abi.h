// What every function of the C ABI does alike: errors, structs that carry their size, dtypes.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "client/connection.h"
#include "headrace/client.h"

namespace headrace::client {

// Keeps the message for headrace_last_error() of this thread, and translates the code.
headrace_status Report(const Status& status);
// The inverse, for the error that a callback returned: its message is the thread's last error. What is no error, where
// one is the only other answer to HEADRACE_OK, is InvalidArgument. Never ok.
Status FromCallback(headrace_status status);

// Runs `body`, which returns a headrace_status, and turns exceptions (memory) into one.
template <typename Body>
headrace_status Guard(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Report(Exhausted("out of memory"));
  } catch (const std::exception& error) {
    return Report(Internal(error.what()));
  }
}

// Copies as much of `from` as the caller's struct has, behind its size.
template <typename Struct>
headrace_status Fill(Struct* to, Struct from) {
  if (to->size < sizeof(size_t)) {
    return Report(
        InvalidArgument("the struct's size is " + std::to_string(to->size) + ": set it to sizeof the struct"));
  }
  from.size = to->size;
  std::memcpy(to, &from, std::min(to->size, sizeof(Struct)));
  return HEADRACE_OK;
}

headrace_dtype DLPackType(DType dtype);

// How to connect, by the caller's options (may be null) and the environment.
Result<ConnectPolicy> MakePolicy(const headrace_connect_options* given);

}  // namespace headrace::client
