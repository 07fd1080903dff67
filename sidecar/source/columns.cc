#include "sidecar/source/columns.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/words.h"
#include "common/spec/features.h"
#include "common/spec/padding.h"
#include "common/spec/remote_path.h"
#include "common/spec/tensor_fields.h"
#include "sidecar/decode/column_cast.h"
#include "sidecar/source/arrow.h"
#include "sidecar/source/columns_stream.h"

namespace headrace::side {
namespace {

constexpr size_t kColumnsTold = 20;

Result<std::unique_ptr<ColumnsFile>> OpenFile(SourceContext& context, uint32_t file) {
  ASSIGN_OR_RETURN(const ColumnsReaders* const readers, ArrowReaders());
  const std::string* const path = &context.files.path(file);
  ASSIGN_OR_RETURN(auto stored, OpenStored(context.files, file, &context.bytes_read));
  if (std::get<FilesSource>(context.spec->source).format == FileFormat::kParquet) {
    return readers->parquet(std::move(stored), path);
  }
  std::array<uint8_t, 6> magic{};
  ASSIGN_OR_RETURN(const size_t read, stored->ReadAt(0, magic));
  const bool has_footer = read == magic.size() && std::memcmp(magic.data(), "ARROW1", magic.size()) == 0;
  std::unique_ptr<ByteStream> bytes;
  if (!has_footer || stored->remote() != nullptr) {
    const Compression compression = has_footer ? Compression::kNone : context.compression;
    ASSIGN_OR_RETURN(bytes, OpenByteStream(context.files, file, compression, &context.bytes_read));
  }
  if (!has_footer) return readers->arrow_stream(std::move(bytes), path);
  return readers->arrow_file(std::move(stored), std::move(bytes), path);
}

// "a: int64, b: string" and how many more.
std::string Listed(const std::vector<FileColumn>& columns) {
  std::string text;
  for (size_t i = 0; i < std::min(columns.size(), kColumnsTold); ++i) {
    text += (i > 0 ? ", " : "") + columns[i].name + ": " + columns[i].type;
  }
  if (columns.size() > kColumnsTold) text += " and " + std::to_string(columns.size() - kColumnsTold) + " more";
  return columns.empty() ? "no columns" : text;
}

Result<size_t> Find(const std::vector<FileColumn>& columns, const std::string& name, const std::string& where) {
  const auto is = [&](const FileColumn& column) { return column.name == name; };
  const auto found = std::find_if(columns.begin(), columns.end(), is);
  if (found == columns.end()) {
    std::vector<std::string_view> names;
    for (const FileColumn& column : columns) names.emplace_back(column.name);
    const std::string nearest = NearestName(name, names);
    return InvalidArgument(where + "there is no column \"" + name + "\" in the file; " +
                           (nearest.empty() ? "" : "did you mean \"" + nearest + "\"? ") + "It has " + Listed(columns));
  }
  if (std::find_if(found + 1, columns.end(), is) != columns.end()) {
    return InvalidArgument(where + "the file has several columns \"" + name +
                           "\", and which is meant cannot be said; write it with names of their own");
  }
  return static_cast<size_t>(found - columns.begin());
}

int64_t ValuesOf(std::span<const int64_t> shape) {
  int64_t values = 1;
  for (const int64_t dim : shape) values *= dim;
  return values;
}

std::string WhyNotOfShape(const Feature& feature, const FileColumn& column) {
  if (!feature.columns.empty() && feature.columns.size() > 1) {
    return column.shape.empty() ? "" : "and a feature of several columns takes one value a row of each";
  }
  const bool fixed = column.shape.empty() || column.shape[0] >= 0;
  if (!fixed) return "";  // each row says how many
  const int64_t has = ValuesOf(column.shape);
  const std::string holds = "which is " + std::to_string(has) + (has == 1 ? " value" : " values") + " a row";
  if (IsVarying(feature) || feature.padding) {
    const int64_t unit = ValuesOf(std::span(feature.shape).subspan(1));
    return has % unit == 0 ? "" : holds + ", and no multiple of " + std::to_string(unit);
  }
  const int64_t takes = ValuesOf(feature.shape);
  return has == takes ? "" : holds + ", and the feature's shape takes " + std::to_string(takes);
}

}  // namespace

std::string WhyNotOf(const Feature& feature, const FileColumn& column) {
  if (!column.offered) return "which is not offered: numbers, strings, dictionaries of them, and lists of numbers are";
  if (column.empty) return "";  // all of it is null, whatever it would be
  if (feature.dtype == DType::kString) {
    const bool bytes = column.dtype == DType::kUint8 && column.shape.size() == 1;
    return bytes || column.dtype == DType::kString ? "" : "and no string; give the feature a dtype of numbers";
  }
  if (column.dtype == DType::kString) {
    if (feature.dtype == DType::kUint8 && !feature.shape.empty()) return "";
    return "and no number; give the feature dtype string and use a map, or dtype uint8 and the shape of its bytes";
  }
  if (!Casts(column.dtype, feature.dtype)) {
    return "and would lose its fractions as " + std::string(DTypeName(feature.dtype)) + "; give the feature dtype " +
           std::string(DTypeName(column.dtype)) + ", and a map with cast if that is meant";
  }
  const std::string shape = WhyNotOfShape(feature, column);
  return shape.empty() ? "" : shape + "; correct its shape in spec.features";
}

Result<std::unique_ptr<Stream<Record>>> OpenColumns(SourceContext& context, uint32_t file) {
  const std::string& path = context.files.path(file);
  ASSIGN_OR_RETURN(auto opened, OpenFile(context, file));
  const std::vector<FileColumn>& columns = opened->columns();
  std::vector<size_t> chosen;
  std::vector<size_t> places;  // of each feature's columns, in `chosen`
  for (const Feature& feature : PaddedFeatures(*context.spec)) {
    const std::string where = path + ": feature \"" + feature.name + "\": ";
    const std::vector<std::string> names =
        feature.columns.empty() ? std::vector<std::string>{feature.name} : feature.columns;
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(const size_t column, Find(columns, name, where));
      const std::string why_not = WhyNotOf(feature, columns[column]);
      if (!why_not.empty()) {
        return InvalidArgument(where + "column \"" + name + "\" is " + columns[column].type + ", " + why_not);
      }
      const auto known = std::find(chosen.begin(), chosen.end(), column);
      places.push_back(static_cast<size_t>(known - chosen.begin()));
      if (known == chosen.end()) chosen.push_back(column);
    }
  }
  RETURN_IF_ERROR(opened->Choose(chosen));
  return MakeColumnsStream(std::move(opened), std::move(places), &context.blocks, context.mixed);
}

Result<std::vector<Feature>> FeaturesOfColumns(SourceContext& context, uint32_t file) {
  ASSIGN_OR_RETURN(const auto opened, OpenFile(context, file));
  std::vector<Feature> features;
  for (const FileColumn& column : opened->columns()) {
    if (!column.offered || column.empty) continue;
    Feature& feature = features.emplace_back();
    feature.name = column.name;
    feature.dtype = column.dtype;
    feature.shape = column.shape;
  }
  if (!features.empty() && features.size() <= kMaxFeatures) return features;
  return InvalidArgument("spec.features: is required with files such as " + context.files.path(file) + ", which has " +
                         (features.empty() ? "no column that can be read: "
                                           : std::to_string(features.size()) + " columns, more than " +
                                                 std::to_string(kMaxFeatures) + ": ") +
                         Listed(opened->columns()));
}

}  // namespace headrace::side
