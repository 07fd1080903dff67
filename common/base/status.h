// Status and Result<T>: how every function of Headrace reports that it failed.
//
//   Result<Plan> plan = CompilePlan(spec);
//   if (!plan.ok()) return plan.status();
//
// A message says what went wrong, where (field path, or file and offset), the value, and the remedy.
// Context is added once per layer with RETURN_IF_ERROR(expr, "reading shard 3"). No exception crosses
// a module line: wrappers of third-party code catch and convert.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace headrace {

enum class Code {
  kOk,
  kInvalidArgument,  // the user's spec or call is wrong; retrying cannot help
  kNotFound,         // a named object or file is not there
  kConflict,         // somebody else wrote first (HTTP 409)
  kUnavailable,      // the environment failed; retrying may help
  kCorrupt,          // bytes of the data set are not what their format demands
  kExhausted,        // a bound was reached (memory, space, budget)
  kCancelled,        // asked to stop
  kInternal,         // a bug of ours
};

// "InvalidArgument", "NotFound", ...: as shown to users, in logs and in the client's exceptions.
std::string_view CodeName(Code code);

// The one place where a code becomes retry policy.
bool Retryable(Code code);

// A code and a message. Copyable, cheap when ok. Thread-compatible.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same status with "context: " before the message. No effect on an ok status.
  Status WithContext(std::string_view context) const;
  // "InvalidArgument: spec.pipeline[0]..." or "OK".
  std::string ToString() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Cold: what leads to one of them is laid out away from the code around it, which fewer lines of cache then hold.
[[gnu::cold]] Status InvalidArgument(std::string message);
[[gnu::cold]] Status NotFound(std::string message);
[[gnu::cold]] Status Conflict(std::string message);
[[gnu::cold]] Status Unavailable(std::string message);
[[gnu::cold]] Status Corrupt(std::string message);
[[gnu::cold]] Status Exhausted(std::string message);
[[gnu::cold]] Status Cancelled(std::string message);
[[gnu::cold]] Status Internal(std::string message);
// The inverse of Status::ToString, for errors that come from another process. Text of another form is Internal.
Status ParseStatus(std::string_view text);
// "what: strerror(error)"; ENOENT is NotFound, ENOSPC and ENOMEM are Exhausted, the rest Unavailable.
Status ErrnoStatus(int error, std::string_view what);

// A value or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}        // NOLINT: implicit by design, as absl::StatusOr
  Result(Status status) : state_(std::move(status)) {  // NOLINT
    assert(!std::get<Status>(state_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  // REQUIRES: ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace headrace

#define HEADRACE_CONCAT_INNER(a, b) a##b
#define HEADRACE_CONCAT(a, b) HEADRACE_CONCAT_INNER(a, b)

// RETURN_IF_ERROR(status_or_result) or RETURN_IF_ERROR(expr, "context").
#define RETURN_IF_ERROR(expr, ...)                                                                  \
  do {                                                                                              \
    if (const auto& headrace_status = (expr); !headrace_status.ok()) [[unlikely]]                   \
      return ::headrace::internal::AsStatus(headrace_status) __VA_OPT__(.WithContext(__VA_ARGS__)); \
  } while (false)

// ASSIGN_OR_RETURN(auto plan, CompilePlan(spec));
#define ASSIGN_OR_RETURN(lhs, expr) HEADRACE_ASSIGN_OR_RETURN(HEADRACE_CONCAT(headrace_result_, __LINE__), lhs, expr)
#define HEADRACE_ASSIGN_OR_RETURN(result, lhs, expr) \
  auto result = (expr);                              \
  if (!result.ok()) [[unlikely]]                     \
    return ::headrace::internal::AsStatus(result);   \
  lhs = std::move(result).value()

namespace headrace::internal {
[[gnu::cold]] const Status& AsStatus(const Status& status);
template <typename T>
[[gnu::cold, gnu::noinline]] Status AsStatus(const Result<T>& result) {
  return result.status();
}
}  // namespace headrace::internal
