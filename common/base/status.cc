#include "common/base/status.h"

#include <cerrno>
#include <cstring>

namespace headrace {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kInvalidArgument: return "InvalidArgument";
    case Code::kNotFound: return "NotFound";
    case Code::kConflict: return "Conflict";
    case Code::kUnavailable: return "Unavailable";
    case Code::kCorrupt: return "Corrupt";
    case Code::kExhausted: return "Exhausted";
    case Code::kCancelled: return "Cancelled";
    case Code::kInternal: return "Internal";
  }
  return "Internal";
}

bool Retryable(Code code) {
  switch (code) {
    case Code::kConflict:
    case Code::kUnavailable:
    case Code::kExhausted: return true;
    case Code::kOk:
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kCorrupt:
    case Code::kCancelled:
    case Code::kInternal: return false;
  }
  return false;
}

Status InvalidArgument(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
Status NotFound(std::string message) { return {Code::kNotFound, std::move(message)}; }
Status Conflict(std::string message) { return {Code::kConflict, std::move(message)}; }
Status Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }
Status Corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }
Status Exhausted(std::string message) { return {Code::kExhausted, std::move(message)}; }
Status Cancelled(std::string message) { return {Code::kCancelled, std::move(message)}; }
Status Internal(std::string message) { return {Code::kInternal, std::move(message)}; }

const Status& internal::AsStatus(const Status& status) { return status; }

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return {code_, std::string(context) + ": " + message_};
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(CodeName(code_)) + ": " + message_;
}

Status ParseStatus(std::string_view text) {
  if (text == CodeName(Code::kOk)) return {};
  size_t colon = text.find(": ");
  if (colon != std::string_view::npos) {
    for (Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kConflict, Code::kUnavailable, Code::kCorrupt,
                      Code::kExhausted, Code::kCancelled, Code::kInternal}) {
      if (text.substr(0, colon) == CodeName(code)) return {code, std::string(text.substr(colon + 2))};
    }
  }
  return Internal(std::string(text));
}

Status ErrnoStatus(int error, std::string_view what) {
  std::string message = std::string(what) + ": " + std::strerror(error);
  switch (error) {
    case ENOENT: return NotFound(std::move(message));
    case ENOSPC:
    case ENOMEM: return Exhausted(std::move(message));
    default: return Unavailable(std::move(message));
  }
}

}  // namespace headrace
