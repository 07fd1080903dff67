// Any bytes as a JSON text. What nlohmann::json reads as a text with these features is read alike here; anything else
// is a row or an error, and nothing is touched outside the row.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sidecar/decode/decoder.h"
#include "tests/fuzz/target.h"
#include "tests/sidecar/records.h"

using namespace headrace;
using namespace headrace::side;

namespace {

std::vector<Feature> Features() {
  std::vector<Feature> features(4);
  features[0].name = "s";
  features[0].dtype = DType::kString;
  features[1].name = "n";
  features[1].dtype = DType::kInt32;
  features[1].path = "/m/n";
  features[2].name = "x";
  features[2].shape = {2};
  features[2].path = "/x/1";
  features[2].has_default = true;
  features[2].default_value = {1, 2};
  features[3].name = "r";
  features[3].dtype = DType::kInt64;
  features[3].shape = {-1};
  return features;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto decoder = MakeJsonDecoder(Features());
  static BytesBlockPool pool;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Record record = RecordOf(&pool, {text});
  const auto s = std::make_unique<BytesRef>();
  const auto n = std::make_unique<int32_t>();
  const auto x = std::make_unique<float[]>(2);
  const auto r = std::make_unique<BytesRef>();
  uint8_t* const columns[] = {reinterpret_cast<uint8_t*>(s.get()), reinterpret_cast<uint8_t*>(n.get()),
                              reinterpret_cast<uint8_t*>(x.get()), reinterpret_cast<uint8_t*>(r.get())};
  const Status status = decoder->Decode({&record, 1}, columns);
  if (!status.ok() && status.message().find("a.tfrecord: record at byte 48: ") != 0) std::abort();  // not where
  uint64_t sum = 0;  // all that is referred to can be read
  for (size_t i = 0; status.ok() && i < s->size; ++i) sum += s->data[i];
  for (size_t i = 0; status.ok() && i < r->size; ++i) sum += r->data[i];
  if (sum > 255 * (s->size + r->size)) std::abort();

  int names = 0;  // a value that stands twice may be wrong the first time
  const auto count = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    if (event != nlohmann::json::parse_event_t::key) return true;
    if (depth == 1 ? parsed == "s" || parsed == "m" : depth == 2 && parsed == "n") ++names;
    return true;
  };
  if (text.find('\0') != std::string::npos) return 0;  // no JSON holds one, but to nlohmann it ends the text
  const auto json = nlohmann::json::parse(text, count, false);
  if (!json.is_object() || names > 3 || json.contains("x") || json.contains("r")) return 0;
  if (!json.contains("s") || !json["s"].is_string() || !json.contains("m") || !json["m"].is_object()) return 0;
  const auto number = json["m"].find("n");
  if (number == json["m"].end() || !number->is_number_integer() || *number != number->get<int32_t>()) return 0;
  const auto& expected = json["s"].get_ref<const std::string&>();
  if (!status.ok() || expected != std::string(reinterpret_cast<const char*>(s->data), s->size)) std::abort();
  if (*n != number->get<int32_t>() || x[0] != 1 || x[1] != 2 || r->size != 0) std::abort();
  return 0;
}

const int headrace::fuzz::kMutations = 100000;

std::vector<std::string> headrace::fuzz::Seeds() {
  return {R"({"s": "a\n\u00e9\ud83d\ude00\"", "m": {"k": [1, {}], "n": -5}})",
          R"({"m":{"n":7},"other":{"s":1,"m":{"n":2}},"\u0073":"text","s":"last"})",
          R"({"s": "", "m": {"n": 1}, "x": [0, [1.5, 2e3], null], "r": [1, -2, 3]})",
          R"({"s": "x", "m": {"n": 1}, "x": [0, null], "r": null} )",
          // breaks off before a value that is wanted
          R"({"s": "x", "m": {"n": 1}, "x": [ "m": {0, null], "r": null} )"};
}
