#include "common/base/log.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace headrace::log {
namespace {

std::string Timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(ms));
  return text;
}

void Write(std::string_view level, std::string_view message, std::initializer_list<Field> fields) {
  nlohmann::ordered_json line;
  line["time"] = Timestamp();
  line["level"] = level;
  line["msg"] = message;
  for (const auto& [key, value] : fields) line[std::string(key)] = value;
  // Foreign bytes may not be UTF-8: replace rather than throw.
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void Info(std::string_view message, std::initializer_list<Field> fields) { Write("info", message, fields); }
void Warning(std::string_view message, std::initializer_list<Field> fields) { Write("warning", message, fields); }
void Error(std::string_view message, std::initializer_list<Field> fields) { Write("error", message, fields); }

}  // namespace headrace::log
