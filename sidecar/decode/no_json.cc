// Where the parts that need a GPU are built alone (json.cc is the counterpart).
#include "sidecar/decode/decoder.h"

namespace headrace::side {
namespace {

class NoJsonDecoder : public Decoder {
 public:
  Status Decode(std::span<const Record>, std::span<uint8_t* const>) override {
    return InvalidArgument(
        "spec.source.files.format: this build does not decode JSON, since it is of the parts that need "
        "a GPU alone; use TFRecord, FixedLength, NumPy, CSV or Text");
  }
};

}  // namespace

std::unique_ptr<Decoder> MakeJsonDecoder(const std::vector<Feature>&) { return std::make_unique<NoJsonDecoder>(); }

}  // namespace headrace::side
