// Messages on the run directory's sockets: one JSON object with a version, checked field by field.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/base/status.h"

namespace headrace::ring {

inline constexpr int kProtocolVersion = 1;

// The object in `text`, of our protocol version.
Result<nlohmann::json> ParseMessage(const std::string& text);
std::string DumpMessage(const nlohmann::json& message);
// The status in the message's "error", if it has one; OK if not.
Status ErrorOf(const nlohmann::json& message);

// Typed access that collects the first error instead of throwing.
class Fields {
 public:
  explicit Fields(const nlohmann::json& message) : message_(message) {}

  const nlohmann::json* Find(const char* name, bool (nlohmann::json::*is_type)() const noexcept, const char* type) {
    auto field = message_.find(name);
    if (field != message_.end() && ((*field).*is_type)()) return &*field;
    if (status_.ok()) status_ = Internal(std::string("handshake: field ") + name + " is not " + type);
    return nullptr;
  }
  std::string String(const char* name) {
    const nlohmann::json* field = Find(name, &nlohmann::json::is_string, "a string");
    return field == nullptr ? std::string() : field->get<std::string>();
  }
  int64_t Integer(const char* name, int64_t least) {
    const nlohmann::json* field = Find(name, &nlohmann::json::is_number_integer, "an integer");
    if (field == nullptr) return least;
    int64_t value = field->get<int64_t>();
    if (value < least && status_.ok()) {
      status_ = Internal(std::string("handshake: ") + name + " is " + std::to_string(value) + ", want at least " +
                         std::to_string(least));
    }
    return value;
  }
  const Status& status() const { return status_; }

 private:
  const nlohmann::json& message_;
  Status status_;
};

}  // namespace headrace::ring
