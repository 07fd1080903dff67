#include "common/ring/message.h"

namespace headrace::ring {

using nlohmann::json;

Result<json> ParseMessage(const std::string& text) {
  json message = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) return Internal("handshake: not a JSON object: '" + text.substr(0, 200) + "'");
  auto version = message.find("version");
  if (version == message.end() || !version->is_number_integer() || *version != kProtocolVersion) {
    return Internal("handshake: version is " + (version == message.end() ? "missing" : version->dump()) + ", want " +
                    std::to_string(kProtocolVersion) + ": loader and client library are not of the same release");
  }
  return message;
}

std::string DumpMessage(const json& message) {
  // Invalid UTF-8 (a file's name in a message) must not throw.
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

Status ErrorOf(const json& message) {
  const auto error = message.find("error");
  if (error == message.end()) return {};
  if (!error->is_string()) return Internal("handshake: field error is not a string");
  Status status = ParseStatus(error->get<std::string>());
  return status.ok() ? Internal("handshake: field error says OK") : status;
}

}  // namespace headrace::ring
