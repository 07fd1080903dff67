// One JSON object a line on standard error: {"time":..,"level":"info","msg":"..","key":"value",..}.
// Secrets are never passed here. Thread-safe; each line is one write(2).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::log {

using Field = std::pair<std::string_view, std::string>;

void Info(std::string_view message, std::initializer_list<Field> fields = {});
void Warning(std::string_view message, std::initializer_list<Field> fields = {});
void Error(std::string_view message, std::initializer_list<Field> fields = {});

}  // namespace headrace::log
