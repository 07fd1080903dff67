#include "common/spec/components.h"
#include "common/spec/padding.h"
#include "sidecar/source/block_reader.h"
#include "sidecar/source/columns.h"
#include "sidecar/source/csv.h"
#include "sidecar/source/fixed_records.h"
#include "sidecar/source/lines.h"
#include "sidecar/source/source.h"
#include "sidecar/source/tar.h"
#include "sidecar/source/tfrecord.h"

namespace headrace::side {
namespace {

template <std::unique_ptr<Framer> (*MakeFramer)()>
Result<std::unique_ptr<Stream<Record>>> OpenFramed(SourceContext& context, uint32_t file) {
  return ReadBlocks(context, file, MakeFramer());
}

template <BlankLines Blank>
Result<std::unique_ptr<Stream<Record>>> OpenLines(SourceContext& context, uint32_t file) {
  return ReadBlocks(context, file, MakeLineFramer(Blank));
}

}  // namespace

const Format& FormatOf(FileFormat format) {
  static constexpr Format kTFRecord = {
      OpenFramed<MakeTFRecordFramer>, [](const InputSpec& spec) {
        return CheckTFRecords(spec.features.empty() ? MakeBytesDecoder() : MakeExampleDecoder(PaddedFeatures(spec)));
      }};
  static constexpr Format kText = {OpenLines<BlankLines::kAreRecords>,
                                   [](const InputSpec&) { return MakeBytesDecoder(); }};
  static constexpr Format kCsv = {
      [](SourceContext& context, uint32_t file) { return ReadBlocks(context, file, MakeCsvFramer(context)); },
      [](const InputSpec& spec) {
        return MakeCsvDecoder(spec.features, std::get<FilesSource>(spec.source).csv.delimiter);
      },
      nullptr, true};
  static constexpr Format kJsonLines = {OpenLines<BlankLines::kArePassedOver>, [](const InputSpec& spec) {
                                          return spec.features.empty() ? MakeBytesDecoder()
                                                                       : MakeJsonDecoder(PaddedFeatures(spec));
                                        }};
  static constexpr Format kFixedLength = {OpenStoredRecords, MakeFixedDecoder, IndexFixedLength};
  static constexpr Format kNumPy = {OpenStoredRecords, MakeFixedDecoder, IndexNumPy};
  static constexpr Format kColumns = {OpenColumns,
                                      [](const InputSpec& spec) { return MakeColumnsDecoder(PaddedFeatures(spec)); },
                                      nullptr, true, FeaturesOfColumns};
  static constexpr Format kWebDataset = {OpenFramed<MakeTarFramer>,
                                         [](const InputSpec& spec) { return MakeSampleDecoder(PaddedFeatures(spec)); }};
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

Status FillFeatures(InputSpec* spec, FileTable* files) {
  if (KnowsComponents(*spec) || files->paths.empty()) return {};
  const auto& source = std::get<FilesSource>(spec->source);
  SourceContext context;
  context.spec = spec;
  context.compression = source.compression;
  context.files = std::move(*files);
  auto features = FormatOf(source.format).features(context, 0);
  *files = std::move(context.files);
  RETURN_IF_ERROR(features);
  spec->features = std::move(*features);
  std::vector<FieldError> errors;
  CheckComponents(*spec, &errors);
  if (errors.empty()) return {};
  return InvalidArgument(errors[0].ToString() + " (the features are the columns of " + files->paths[0] + ")");
}

}  // namespace headrace::side
