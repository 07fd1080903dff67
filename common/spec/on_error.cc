#include "common/spec/on_error.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/spec/object_reader.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxSkipped = int64_t{1} << 53;
constexpr double kDefaultFraction = 0.01;

// "2.5%" as 0.025; nothing if it is none.
std::optional<double> Percent(const std::string& text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || std::string_view(end) != "%" || !(percent > 0 && percent <= 100)) return {};
  return percent / 100;
}

}  // namespace

OnError ParseOnError(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  ObjectReader reader(object, path, errors);
  OnError on_error;
  enum class Policy { kFail, kSkip };
  on_error.skip =
      reader.Enum<Policy>("policy", {{"Fail", Policy::kFail}, {"Skip", Policy::kSkip}}, Policy::kFail) == Policy::kSkip;
  if (const json* most = reader.Any("maxSkipped")) {
    if (!on_error.skip) reader.Error("maxSkipped", "goes with policy Skip");
    if (most->is_number_integer() && *most >= 0 && *most <= kMaxSkipped) {
      on_error.max_skipped = most->get<int64_t>();
    } else if (const auto fraction = most->is_string() ? Percent(most->get<std::string>()) : std::nullopt) {
      on_error.max_fraction = *fraction;
    } else {
      reader.Error("maxSkipped",
                   most->dump() + ": must be a whole number of records, or a percentage of them like \"1%\"");
    }
  } else {
    on_error.max_fraction = on_error.skip ? kDefaultFraction : 0;
  }
  return on_error;
}

json OnErrorToJson(const OnError& on_error) {
  json out = {{"policy", on_error.skip ? "Skip" : "Fail"}};
  if (!on_error.skip) return out;
  if (on_error.max_fraction == 0) {
    out["maxSkipped"] = on_error.max_skipped;
  } else {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, on_error.max_fraction * 100).ptr;
    out["maxSkipped"] = std::string(text, end) + "%";
  }
  return out;
}

void CheckOnError(const InputSpec& spec, std::vector<FieldError>* errors) {
  if (!spec.on_error.skip) return;
  const auto refuse = [&](const std::string& why) { errors->push_back({"spec.onError.policy", "Skip " + why}); };
  if (!std::holds_alternative<FilesSource>(spec.source)) {
    refuse("goes with spec.source.files only: other sources hold no bad records");
    return;
  }
  int batches = 0;
  for (const Transformation& transformation : spec.pipeline) batches += std::holds_alternative<Batch>(transformation);
  if (batches != 1) {
    refuse("needs one batch in spec.pipeline, from which bad records are left out; there are " +
           std::to_string(batches));
  }
  if (spec.distribution.strategy == Strategy::kTpu) {
    refuse(
        "does not go with strategy TPU, which demands static shapes: a batch that a record is left out of is smaller");
  }
}

}  // namespace headrace
