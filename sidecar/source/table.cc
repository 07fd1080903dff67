#include "common/spec/padding.h"
#include "sidecar/source/block_reader.h"
#include "sidecar/source/fixed_records.h"
#include "sidecar/source/source.h"
#include "sidecar/source/tfrecord.h"

namespace headrace::side {
namespace {

template <std::unique_ptr<Framer> (*MakeFramer)()>
Result<std::unique_ptr<Stream<Record>>> OpenFramed(SourceContext& context, uint32_t file) {
  return ReadBlocks(context, file, MakeFramer());
}

}  // namespace

const Format& FormatOf(FileFormat format) {
  static constexpr Format kTFRecord = {
      OpenFramed<MakeTFRecordFramer>, [](const InputSpec& spec) {
        return CheckTFRecords(spec.features.empty() ? MakeBytesDecoder() : MakeExampleDecoder(PaddedFeatures(spec)));
      }};
  static constexpr Format kFixedLength = {OpenStoredRecords, MakeFixedDecoder, IndexFixedLength};
  static constexpr Format kNumPy = {OpenStoredRecords, MakeFixedDecoder, IndexNumPy};
  switch (format) {
    case FileFormat::kTFRecord: return kTFRecord;
    case FileFormat::kFixedLength: return kFixedLength;
    case FileFormat::kNumPy: return kNumPy;
  }
  return kTFRecord;
}

}  // namespace headrace::side
