#include "common/spec/components.h"
#include "common/spec/padding.h"
#include "sidecar/source/block_reader.h"
#include "sidecar/source/columns.h"
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
  static constexpr Format kColumns = {
      OpenColumns, [](const InputSpec& spec) { return MakeColumnsDecoder(PaddedFeatures(spec)); }, FeaturesOfColumns};
  switch (format) {
    case FileFormat::kTFRecord: return kTFRecord;
    case FileFormat::kParquet:
    case FileFormat::kArrow: return kColumns;
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
