#include "cli/flags.h"

#include <charconv>

#include "common/base/words.h"

namespace headrace::cli {
namespace {

const Flag* Find(std::span<const Flag> flags, std::string_view name, char letter) {
  for (const Flag& flag : flags) {
    if (letter != 0 ? flag.letter == letter : flag.name == name) return &flag;
  }
  return nullptr;
}

Status UnknownFlag(const std::string& argument, std::string_view name, std::span<const Flag> flags) {
  std::vector<std::string_view> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  const std::string nearest = NearestName(name, names);
  std::string message = "unknown flag " + argument;
  if (!nearest.empty()) message += ": did you mean --" + nearest + "?";
  return InvalidArgument(std::move(message));
}

}  // namespace

Result<CommandLine> CommandLine::Parse(const std::vector<std::string>& arguments, std::span<const Flag> flags) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      line.rest_.assign(arguments.begin() + static_cast<ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      line.positional_.push_back(argument);
      continue;
    }
    const bool is_long = argument[1] == '-';
    const size_t equals = argument.find('=');
    const std::string name = is_long ? argument.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
    const Flag* flag = is_long ? Find(flags, name, 0) : Find(flags, "", argument[1]);
    if (flag == nullptr) return UnknownFlag(argument, is_long ? name : argument.substr(1), flags);

    std::optional<std::string> value;
    if (is_long && equals != std::string::npos) value = argument.substr(equals + 1);
    if (!is_long && argument.size() > 2) value = argument.substr(argument[2] == '=' ? 3 : 2);
    if (flag->value.empty()) {
      if (value) return InvalidArgument(argument + ": --" + std::string(flag->name) + " takes no value");
      value = "";
    } else if (!value) {
      if (i + 1 == arguments.size()) return InvalidArgument(argument + " needs a value, " + std::string(flag->value));
      value = arguments[++i];
    }
    line.values_[std::string(flag->name)] = *value;
  }
  return line;
}

std::optional<std::string> CommandLine::Text(const std::string& flag) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

Result<std::optional<int64_t>> CommandLine::Integer(const std::string& flag, int64_t minimum) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) return std::optional<int64_t>();
  const std::string& text = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < minimum) {
    return InvalidArgument("--" + flag + " " + text + ": must be an integer of at least " + std::to_string(minimum));
  }
  return std::optional<int64_t>(value);
}

}  // namespace headrace::cli
