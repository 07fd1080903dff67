// Photographs of 224 x 224 that are cast, scaled and brought to channels first: in one pass, map by map, and beside a
// copy of as many bytes as come out. One line a figure, of one core.
//   pixels_bench [IMAGES]     in a batch; 64
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/spec/components.h"
#include "sidecar/decode/decoder.h"
#include "tests/bench/timing.h"

using headrace::InputSpec;
using headrace::Map;
using headrace::Result;
using headrace::bench::Median;
using headrace::bench::NowNs;
using headrace::side::Decoder;
using headrace::side::Record;
using nlohmann::json;

namespace {

constexpr size_t kImageValues = 224 * 224 * 3;

// Copies the same photograph again and again, as a reader of files would: of bytes, or of floats, as Bilinear makes it.
class Photograph : public Decoder {
 public:
  explicit Photograph(bool floats) : bytes_(kImageValues * (floats ? sizeof(float) : 1)) {
    for (size_t i = 0; i < kImageValues; ++i) {
      const auto value = static_cast<uint8_t>(i * 2654435761U >> 13);
      const auto as_float = static_cast<float>(value);
      if (floats) {
        std::memcpy(&bytes_[i * sizeof as_float], &as_float, sizeof as_float);
      } else {
        bytes_[i] = value;
      }
    }
  }
  headrace::Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    for (size_t i = 0; i < records.size(); ++i) {
      std::memcpy(columns[0] + i * bytes_.size(), bytes_.data(), bytes_.size());
    }
    return {};
  }

 private:
  std::vector<uint8_t> bytes_;
};

InputSpec Spec(const std::string& maps, bool floats) {
  json spec = json::parse(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x",
      "shape": [224, 224, 3]}]})");
  spec["features"][0]["dtype"] = floats ? "float32" : "uint8";
  for (const json& map : json::parse(maps)) spec["pipeline"].push_back({{"map", map}});
  Result<InputSpec> parsed = headrace::ParseInputSpec(spec);
  if (!parsed.ok()) {
    std::fprintf(stderr, "pixels_bench: %s\n", parsed.status().message().c_str());
    std::exit(1);
  }
  return std::move(*parsed);
}

std::unique_ptr<Decoder> OneByOne(const InputSpec& spec, bool floats) {
  std::unique_ptr<Decoder> decoder = std::make_unique<Photograph>(floats);
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    decoder = headrace::side::MakeMapDecoder(std::move(decoder), RecordComponents(spec, i, nullptr),
                                             std::get<Map>(spec.pipeline[i]), "spec.pipeline", false);
  }
  return headrace::side::MakeBlockDecoder(std::move(decoder), RecordComponents(spec, spec.pipeline.size(), nullptr));
}

// Bytes in a nanosecond of what `make` writes.
double Rate(size_t bytes, const std::function<void()>& make) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const double start = NowNs();
    make();
    times.push_back(NowNs() - start);
  }
  return static_cast<double>(bytes) / Median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t images = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  const std::vector<Record> records(images);
  std::vector<uint8_t> out(images * kImageValues * sizeof(float));
  std::vector<uint8_t> other(out.size(), 1);
  const std::string floats = R"([{"scale": 0.00392156862745098}, {"offsets": [-0.485, -0.456, -0.406]},
      {"scales": [4.367, 4.464, 4.444]})";
  const std::string normalised = R"([{"cast": "float32"}, )" + floats.substr(1);
  const std::string first = R"(, {"transpose": [2, 0, 1]})";
  struct Workload {
    const char* name;
    std::string maps;
    size_t value_bytes;
    bool floats = false;
  };
  for (const Workload& workload :
       {Workload{"channels_first_float32", normalised + first + "]", 4},
        Workload{"channels_first_float16", normalised + first + R"(, {"cast": "float16"}])", 2},
        Workload{"channels_last_float32", normalised + "]", 4},
        Workload{"by_the_table_bfloat16", normalised + first + R"(, {"cast": "bfloat16"}])", 2},
        Workload{"of_floats_first_float32", floats + first + "]", 4, true},
        Workload{"of_floats_first_float16", floats + first + R"(, {"cast": "float16"}])", 2, true},
        Workload{"of_floats_last_float32", floats + "]", 4, true}}) {
    const InputSpec spec = Spec(workload.maps, workload.floats);
    const size_t bytes = images * kImageValues * workload.value_bytes;
    const auto decode = [&](const std::unique_ptr<Decoder>& decoder) {
      uint8_t* const columns[] = {out.data()};
      return Rate(bytes, [&] {
        if (!decoder->Decode(records, columns).ok()) std::abort();
      });
    };
    const double copy = Rate(bytes, [&] { std::memcpy(out.data(), other.data(), bytes); });
    const double once = decode(
        headrace::side::MakePipelineDecoder(spec, spec.pipeline.size(), std::make_unique<Photograph>(workload.floats)));
    const double apart = decode(OneByOne(spec, workload.floats));
    std::printf("%-24s %7.3f GB/s written  %6.2f of memcpy (%.3f)  %6.2f of map by map (%.3f)\n", workload.name, once,
                once / copy, copy, once / apart, apart);
  }
  return 0;
}
