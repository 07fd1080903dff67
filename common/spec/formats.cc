#include "common/spec/formats.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/words.h"
#include "common/spec/sample_features.h"
#include "common/spec/text_formats.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxRecordBytes = int64_t{1} << 30;

struct FormatEntry {
  std::string_view name;
  FileFormat format;
  bool indexed = false;
  bool compressible = true;
  const char* options = "";  // the field of spec.source.files that is this format's own
  bool columns = false;      // a feature may be made of several columns
};

constexpr FormatEntry kFormats[] = {
    {"TFRecord", FileFormat::kTFRecord, true},
    {"Text", FileFormat::kText, true},
    {"CSV", FileFormat::kCsv, true, true, "csv", true},
    {"JSONLines", FileFormat::kJsonLines, true},
    {"FixedLength", FileFormat::kFixedLength, true, false, "fixedLength"},
    {"NumPy", FileFormat::kNumPy, true, false},
    {"Parquet", FileFormat::kParquet, false, false, "", true},
    {"Arrow", FileFormat::kArrow, false, true, "", true},
    {"WebDataset", FileFormat::kWebDataset, true},
};

const FormatEntry& EntryOf(FileFormat format) {
  return *std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& e) { return e.format == format; });
}

std::string IndexedFormats() {
  std::vector<std::string_view> names;
  for (const FormatEntry& entry : kFormats) {
    if (entry.indexed) names.push_back(entry.name);
  }
  return QuotedList(names);
}

}  // namespace

std::string_view FormatName(FileFormat format) { return EntryOf(format).name; }
bool IsIndexed(FileFormat format) { return EntryOf(format).indexed; }

void ParseFormat(ObjectReader& reader, FilesSource* files, std::vector<FieldError>* errors) {
  std::vector<std::string_view> names;
  for (const FormatEntry& entry : kFormats) names.push_back(entry.name);
  if (const std::optional<size_t> chosen = reader.Choice("format", names)) files->format = kFormats[*chosen].format;
  for (const FormatEntry& entry : kFormats) {
    const std::string_view options = entry.options;
    if (options.empty() || entry.format == files->format || !reader.Has(options)) continue;
    reader.Any(options);
    reader.Error(options, "goes with format " + std::string(entry.name) + ", and format is " +
                              std::string(FormatName(files->format)));
  }
  if (files->format == FileFormat::kCsv) {
    if (const json* object = reader.Object("csv")) files->csv = ParseCsv(*object, reader.Path("csv"), errors);
  }
  if (files->format == FileFormat::kFixedLength) {
    if (const json* object = reader.Object("fixedLength")) {
      ObjectReader options(*object, reader.Path("fixedLength"), errors);
      files->fixed_length.record_bytes = options.Int("recordBytes", 1, kMaxRecordBytes);
      files->fixed_length.header_bytes = options.Int("headerBytes", 0, kMaxRecordBytes).value_or(0);
      files->fixed_length.footer_bytes = options.Int("footerBytes", 0, kMaxRecordBytes).value_or(0);
    }
  }
}

void FormatToJson(const FilesSource& files, json* out) {
  if (files.format == FileFormat::kCsv) (*out)["csv"] = CsvToJson(files.csv);
  if (files.format == FileFormat::kFixedLength) {
    json options = {{"headerBytes", files.fixed_length.header_bytes}, {"footerBytes", files.fixed_length.footer_bytes}};
    if (files.fixed_length.record_bytes) options["recordBytes"] = *files.fixed_length.record_bytes;
    (*out)["fixedLength"] = std::move(options);
  }
}

void CheckFormat(const InputSpec& spec, std::vector<FieldError>* errors) {
  const auto& files = std::get<FilesSource>(spec.source);
  const FormatEntry& entry = EntryOf(files.format);
  if (!entry.compressible && files.compression != Compression::kAuto && files.compression != Compression::kNone) {
    errors->push_back({"spec.source.files.compression",
                       "does not go with format " + std::string(entry.name) +
                           (FilesNameColumns(files.format)
                                ? ", whose files say themselves how each column is compressed; leave it out"
                                : ", whose records are read from where they lie; decompress the files and leave it "
                                  "out")});
  }
  if (spec.features.empty() && !RecordsAreBytes(files.format) && !FilesNameColumns(files.format)) {
    errors->push_back(
        {"spec.features", "is required with format " + std::string(entry.name) + ": name the features of a record"});
  }
  if (spec.features.empty() && FilesNameColumns(files.format) && spec.distribution.strategy == Strategy::kTpu) {
    errors->push_back({"spec.features",
                       "is required with strategy TPU, which demands static shapes: without it they are known only "
                       "when a file is opened"});
  }
  for (size_t i = 0; i < spec.features.size(); ++i) {
    const std::string field = "spec.features[" + std::to_string(i) + "]";
    const std::string format = ", and spec.source.files.format is " + std::string(entry.name);
    if (!spec.features[i].columns.empty() && !entry.columns) {
      errors->push_back({field + ".columns", "goes with formats that have columns" + format});
    }
    if (!spec.features[i].path.empty() && files.format != FileFormat::kJsonLines) {
      errors->push_back({field + ".path", "goes with format JSONLines" + format});
    }
  }
  if (files.format == FileFormat::kText) CheckText(spec, errors);
  if (files.format == FileFormat::kCsv) CheckCsv(spec, errors);
  if (files.format == FileFormat::kJsonLines) CheckJsonLines(spec, errors);
  if (files.format == FileFormat::kWebDataset) CheckSamples(spec, errors);
  if (files.format != FileFormat::kFixedLength && files.format != FileFormat::kNumPy) return;
  int64_t bytes = 0;
  for (size_t i = 0; i < spec.features.size(); ++i) {
    const Feature& feature = spec.features[i];
    const std::string field = "spec.features[" + std::to_string(i) + "]";
    const bool varies = !feature.shape.empty() && feature.shape[0] < 0;
    if (feature.dtype == DType::kString || varies) {
      errors->push_back({field + (varies ? ".shape" : ".dtype"),
                         "must be a numeric type of fixed shape: records of format " + std::string(entry.name) +
                             " have one length; strings of bytes are uint8 of that shape"});
      return;
    }
    if (feature.has_default) errors->push_back({field + ".default", "is never used: such records miss nothing"});
    int64_t size = static_cast<int64_t>(DTypeSize(feature.dtype));
    for (const int64_t dim : feature.shape) size *= dim;
    bytes += size;
  }
  if (files.format == FileFormat::kNumPy && spec.features.size() > 1) {
    errors->push_back({"spec.features", "has " + std::to_string(spec.features.size()) +
                                            " features, and a .npy file holds one array; name one feature"});
  }
  if (files.fixed_length.record_bytes && *files.fixed_length.record_bytes < bytes) {
    errors->push_back(
        {"spec.source.files.fixedLength.recordBytes", "is " + std::to_string(*files.fixed_length.record_bytes) +
                                                          ", and the features take " + std::to_string(bytes)});
  }
}

void CheckGlobalShuffle(const InputSpec& spec, size_t position, const std::string& field,
                        std::vector<FieldError>* errors) {
  const auto refuse = [&](const std::string& why) { errors->push_back({field + ".scope", "Global " + why}); };
  if (position != 0) {
    refuse("must come first in spec.pipeline: it shuffles the source's records; use scope Buffer here");
  } else if (std::holds_alternative<FunctionSource>(spec.source)) {
    refuse("does not go with spec.source.function");
  } else if (const auto* range = std::get_if<RangeSource>(&spec.source); range != nullptr && !range->stop) {
    refuse("needs an end of the range: give spec.source.range.stop");
  } else if (const auto* files = std::get_if<FilesSource>(&spec.source);
             files != nullptr && !IsIndexed(files->format)) {
    refuse("needs to know where each record lies, which it does for the formats " + IndexedFormats() +
           "; use scope Buffer with format " + std::string(FormatName(files->format)));
  } else if (files != nullptr && files->compression != Compression::kAuto && files->compression != Compression::kNone) {
    refuse("reads each record from where it lies, and spec.source.files.compression is " +
           std::string(CompressionName(files->compression)) + "; decompress the files, or use scope Buffer");
  }
}

}  // namespace headrace
