#include "common/spec/components.h"
#include "common/spec/padding.h"
#include "sidecar/source/block_reader.h"
#include "sidecar/source/columns.h"
#include "sidecar/source/csv.h"
#include "sidecar/source/fixed_records.h"
#include "sidecar/source/lines.h"
#include "sidecar/source/source.h"
#include "sidecar/source/stored_block.h"
#include "sidecar/source/tar.h"
#include "sidecar/source/tfrecord.h"

namespace headrace::side {
namespace {

std::unique_ptr<Framer> FrameSamples(SourceContext&) { return MakeTarFramer(); }
std::unique_ptr<Framer> FrameTFRecords(SourceContext&) { return MakeTFRecordFramer(); }
template <BlankLines Blank>
std::unique_ptr<Framer> FrameLinesOf(SourceContext&) {
  return MakeLineFramer(Blank);
}

std::unique_ptr<Decoder> DecodeTFRecords(const InputSpec& spec) {
  return CheckTFRecords(spec.features.empty() ? MakeBytesDecoder() : MakeExampleDecoder(PaddedFeatures(spec)));
}
std::unique_ptr<Decoder> DecodeText(const InputSpec&) { return MakeBytesDecoder(); }
std::unique_ptr<Decoder> DecodeCsv(const InputSpec& spec) {
  return MakeCsvDecoder(spec.features, std::get<FilesSource>(spec.source).csv.delimiter);
}
std::unique_ptr<Decoder> DecodeJson(const InputSpec& spec) {
  return spec.features.empty() ? MakeBytesDecoder() : MakeJsonDecoder(PaddedFeatures(spec));
}
std::unique_ptr<Decoder> DecodeSamples(const InputSpec& spec) { return MakeSampleDecoder(PaddedFeatures(spec)); }
std::unique_ptr<Decoder> DecodeColumns(const InputSpec& spec) { return MakeColumnsDecoder(PaddedFeatures(spec)); }

}  // namespace

const Format& FormatOf(FileFormat format) {
  static constexpr Format kTFRecord = {.decoder = DecodeTFRecords, .framer = FrameTFRecords, .says_lengths = true};
  static constexpr Format kText = {.decoder = DecodeText, .framer = FrameLinesOf<BlankLines::kAreRecords>};
  static constexpr Format kCsv = {.decoder = DecodeCsv, .framer = MakeCsvFramer, .headers = true};
  static constexpr Format kJsonLines = {.decoder = DecodeJson, .framer = FrameLinesOf<BlankLines::kArePassedOver>};
  static constexpr Format kFixedLength = {
      .decoder = MakeFixedDecoder, .open = OpenStoredRecords, .index = IndexFixedLength};
  static constexpr Format kNumPy = {.decoder = MakeFixedDecoder, .open = OpenStoredRecords, .index = IndexNumPy};
  static constexpr Format kColumns = {
      .decoder = DecodeColumns, .open = OpenColumns, .headers = true, .features = FeaturesOfColumns};
  static constexpr Format kWebDataset = {.decoder = DecodeSamples, .framer = FrameSamples, .says_lengths = true};
  switch (format) {
    case FileFormat::kTFRecord: return kTFRecord;
    case FileFormat::kText: return kText;
    case FileFormat::kCsv: return kCsv;
    case FileFormat::kJsonLines: return kJsonLines;
    case FileFormat::kFixedLength: return kFixedLength;
    case FileFormat::kNumPy: return kNumPy;
    case FileFormat::kParquet:
    case FileFormat::kArrow: return kColumns;
    case FileFormat::kWebDataset: return kWebDataset;
  }
  return kTFRecord;
}

Result<std::unique_ptr<Stream<Record>>> OpenRecords(const Format& format, SourceContext& context, uint32_t file) {
  if (format.framer == nullptr) return format.open(context, file);
  if (context.by_number != SourceContext::ByNumber::kNever) {
    ASSIGN_OR_RETURN(StoredBlock* const known, context.by_number == SourceContext::ByNumber::kAlways
                                                   ? context.FindStored(format, file)
                                                   : context.StoredInMemory(file));
    if (known != nullptr) return StreamOf(known);
  }
  return ReadBlocks(context, file, format.framer(context));
}

Status FillFeatures(InputSpec* spec, const FileTable& files) {
  if (KnowsComponents(*spec)) return {};
  ASSIGN_OR_RETURN(const bool any, files.Has(0));
  if (!any) return {};
  const auto& source = std::get<FilesSource>(spec->source);
  SourceContext context;
  context.spec = spec;
  context.compression = source.compression;
  context.files = files;
  ASSIGN_OR_RETURN(spec->features, FormatOf(source.format).features(context, 0));
  std::vector<FieldError> errors;
  CheckComponents(*spec, &errors);
  if (errors.empty()) return {};
  return InvalidArgument(errors[0].ToString() + " (the features are the columns of " + files.path(0) + ")");
}

}  // namespace headrace::side
