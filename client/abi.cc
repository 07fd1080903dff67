#include "client/abi.h"

#include <cstddef>
#include <cstdlib>

#include "common/spec/names.h"

namespace headrace::client {
namespace {

thread_local std::string last_error;

headrace_status FromCode(Code code) {
  switch (code) {
    case Code::kOk: return HEADRACE_OK;
    case Code::kInvalidArgument: return HEADRACE_INVALID_ARGUMENT;
    case Code::kNotFound: return HEADRACE_NOT_FOUND;
    case Code::kConflict: return HEADRACE_CONFLICT;
    case Code::kUnavailable: return HEADRACE_UNAVAILABLE;
    case Code::kCorrupt: return HEADRACE_CORRUPT;
    case Code::kExhausted: return HEADRACE_EXHAUSTED;
    case Code::kCancelled: return HEADRACE_CANCELLED;
    case Code::kInternal: return HEADRACE_INTERNAL;
  }
  return HEADRACE_INTERNAL;
}

// $HEADRACE_LOADER_TIMEOUT in milliseconds.
Result<int64_t> LoaderTimeoutMs() {
  const char* text = std::getenv("HEADRACE_LOADER_TIMEOUT");
  if (text == nullptr || *text == '\0') return 60000;
  char* end = nullptr;
  double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds >= 0) || seconds > 1e9) {
    return InvalidArgument("HEADRACE_LOADER_TIMEOUT is '" + std::string(text) +
                           "', want a number of seconds, at least 0");
  }
  return static_cast<int64_t>(seconds * 1000);
}

}  // namespace

headrace_status Report(const Status& status) {
  if (!status.ok()) last_error = status.message();
  return FromCode(status.code());
}

Status FromCallback(headrace_status status) {
  switch (status) {
    case HEADRACE_OK:
    case HEADRACE_END:
    case HEADRACE_TIMED_OUT: break;
    case HEADRACE_INVALID_ARGUMENT: return InvalidArgument(last_error);
    case HEADRACE_NOT_FOUND: return NotFound(last_error);
    case HEADRACE_CONFLICT: return Conflict(last_error);
    case HEADRACE_UNAVAILABLE: return Unavailable(last_error);
    case HEADRACE_CORRUPT: return Corrupt(last_error);
    case HEADRACE_EXHAUSTED: return Exhausted(last_error);
    case HEADRACE_CANCELLED: return Cancelled(last_error);
    case HEADRACE_INTERNAL: return Internal(last_error);
  }
  return InvalidArgument("a callback returned " + std::string(headrace_status_name(status)) + " (" +
                         std::to_string(status) + "), which does not answer its question");
}

headrace_dtype DLPackType(DType dtype) {
  const char* name = DTypeName(dtype).data();
  const auto bits = static_cast<uint8_t>(DTypeSize(dtype) * 8);
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64: return {name, 0, bits, 1};
    case DType::kString: return {name, 1, 8, 1};  // of its bytes
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64: return {name, 1, bits, 1};
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64: return {name, 2, bits, 1};
    case DType::kBfloat16: return {name, 4, bits, 1};
    case DType::kBool: return {name, 6, bits, 1};
  }
  return {name, 0, 0, 0};
}

Result<ConnectPolicy> MakePolicy(const headrace_connect_options* given) {
  headrace_connect_options options{};
  options.timeout_ms = -1;
  if (given != nullptr) {
    if (given->size < offsetof(headrace_connect_options, interrupted)) {
      return InvalidArgument("headrace_connect_options.size is " + std::to_string(given->size) +
                             ": set it to sizeof the struct");
    }
    std::memcpy(&options, given, std::min(given->size, sizeof(options)));
  }
  ConnectPolicy policy;
  const char* environment = std::getenv(names::kEnvDir);
  if (options.directory != nullptr) {
    policy.directory = options.directory;
  } else {
    policy.directory = environment != nullptr && *environment != '\0' ? environment : names::kRunDir;
  }
  ASSIGN_OR_RETURN(policy.loader_timeout_ms, LoaderTimeoutMs());
  policy.timeout_ms = options.timeout_ms < 0 ? policy.loader_timeout_ms : options.timeout_ms;
  policy.takes_device = options.takes_device != 0;
  if (options.num_gpus < 0 || options.device_batches < 0 || (options.num_gpus > 0 && options.gpus == nullptr)) {
    return InvalidArgument("headrace_connect_options: num_gpus is " + std::to_string(options.num_gpus) +
                           ", device_batches " + std::to_string(options.device_batches) +
                           ": want at least 0, and gpus to point to that many");
  }
  policy.gpus.assign(options.gpus, options.gpus + options.num_gpus);
  policy.device_batches = static_cast<size_t>(options.device_batches);
  if (options.interrupted != nullptr) {
    policy.interrupted = [ask = options.interrupted, context = options.interrupted_context] {
      return ask(context) != 0;
    };
  }
  return policy;
}

}  // namespace headrace::client

extern "C" {

const char* headrace_last_error(void) { return headrace::client::last_error.c_str(); }

void headrace_set_error(const char* message) { headrace::client::last_error = message == nullptr ? "" : message; }

}  // extern "C"
