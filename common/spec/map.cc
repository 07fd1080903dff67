#include "common/spec/map.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/words.h"
#include "common/spec/tensor_fields.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kMaxDepth = int64_t{1} << 24;
constexpr int64_t kMaxRecordValues = int64_t{1} << 30;

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

Status RefuseString(const TensorSpec& input) {
  if (input.dtype != DType::kString) return {};
  return InvalidArgument(
      "is a string; make numbers of it first, with a map {stringToNumber: ...}, {decodeImage: ...} or {decodeRaw: "
      "...}");
}

// For operations whose result depends on the shape.
Status RefuseVariable(const TensorSpec& input) {
  RETURN_IF_ERROR(RefuseString(input));
  if (!input.ragged) return {};
  return InvalidArgument(
      "varies in length, which only cast, scale and offset take; pad it with a paddedBatch before this map");
}

MapOperation ParseCast(ObjectReader& reader) {
  return CastOp{ReadDType(reader, DType::kFloat32, AlsoString::kNo, "cast")};
}
void CastToJson(const MapOperation& op, json& out) { out["cast"] = DTypeName(std::get<CastOp>(op).dtype); }
Result<TensorSpec> CastType(const MapOperation& op, const TensorSpec& input) {
  RETURN_IF_ERROR(RefuseString(input));
  return TensorSpec{input.name, std::get<CastOp>(op).dtype, input.shape, input.ragged};
}

// The list `several` of what may be given as one number, `one`.
std::vector<double> ParseSeveral(ObjectReader& reader, std::string_view several, std::string_view one) {
  const json* list = reader.Array(several, 1, kMaxInlineValues);
  if (list == nullptr) return {};
  if (reader.Has(one)) {
    reader.Error(several, "stands beside " + std::string(one) + "; give one number for all, or a list");
  }
  return ReadNumbers(reader, several, *list);
}

MapOperation ParseAffine(ObjectReader& reader) {
  AffineOp affine;
  affine.scale = reader.Number("scale");
  affine.offset = reader.Number("offset");
  affine.scales = ParseSeveral(reader, "scales", "scale");
  affine.offsets = ParseSeveral(reader, "offsets", "offset");
  return affine;
}
void AffineToJson(const MapOperation& op, json& out) {
  const auto& affine = std::get<AffineOp>(op);
  if (affine.scale) out["scale"] = *affine.scale;
  if (affine.offset) out["offset"] = *affine.offset;
  if (!affine.scales.empty()) out["scales"] = affine.scales;
  if (!affine.offsets.empty()) out["offsets"] = affine.offsets;
}
Result<TensorSpec> AffineType(const MapOperation& op, const TensorSpec& input) {
  RETURN_IF_ERROR(RefuseString(input));
  if (!IsFloating(input.dtype)) {
    return InvalidArgument("is " + std::string(DTypeName(input.dtype)) +
                           ", and scale and offset act on floats; put a map {cast: float32} before this one");
  }
  const auto& affine = std::get<AffineOp>(op);
  const int64_t last = input.shape.empty() ? 1 : input.shape.back();
  for (const auto& [name, list] : {std::pair{"scales", &affine.scales}, std::pair{"offsets", &affine.offsets}}) {
    if (list->empty() || static_cast<int64_t>(list->size()) == last) continue;
    return InvalidArgument("has shape " + json(input.shape).dump() + ", and " + name + " holds " +
                           std::to_string(list->size()) + " numbers; give as many as the last dimension has values");
  }
  return input;
}

MapOperation ParseOneHot(ObjectReader& reader) {
  OneHotOp one_hot;
  const json* object = reader.Object("oneHot");
  if (object == nullptr) return one_hot;
  ObjectReader fields(*object, reader.Path("oneHot"), reader.errors());
  one_hot.depth = fields.RequiredInt("depth", 1, kMaxDepth);
  one_hot.dtype = ReadDType(fields, DType::kFloat32);
  return one_hot;
}
void OneHotToJson(const MapOperation& op, json& out) {
  const auto& one_hot = std::get<OneHotOp>(op);
  out["oneHot"] = {{"depth", one_hot.depth}, {"dtype", DTypeName(one_hot.dtype)}};
}
Result<TensorSpec> OneHotType(const MapOperation& op, const TensorSpec& input) {
  RETURN_IF_ERROR(RefuseVariable(input));
  if (IsFloating(input.dtype) || input.dtype == DType::kBool) {
    return InvalidArgument("is " + std::string(DTypeName(input.dtype)) +
                           ", and oneHot takes integers; put a map {cast: int64} before this one");
  }
  const auto& one_hot = std::get<OneHotOp>(op);
  TensorSpec output{input.name, one_hot.dtype, input.shape};
  output.shape.push_back(one_hot.depth);
  return output;
}

MapOperation ParseReshape(ObjectReader& reader) {
  ReshapeOp reshape;
  const json* dims = reader.Array("reshape", 0, kMaxDims);
  if (dims == nullptr || !dims->is_array()) return reshape;
  int unknown = 0;
  for (const json& dim : *dims) {
    if (!dim.is_number_integer() || (dim < 1 && dim != kUnknownDim) || dim > kMaxRecordValues) {
      reader.Error("reshape", dims->dump() + ": each dimension must be a whole number from 1, or once -1");
      return reshape;
    }
    reshape.shape.push_back(dim.get<int64_t>());
    unknown += dim == kUnknownDim ? 1 : 0;
  }
  if (unknown > 1) reader.Error("reshape", dims->dump() + ": at most one dimension can be -1");
  return reshape;
}
void ReshapeToJson(const MapOperation& op, json& out) { out["reshape"] = std::get<ReshapeOp>(op).shape; }
Result<TensorSpec> ReshapeType(const MapOperation& op, const TensorSpec& input) {
  TensorSpec output{input.name, input.dtype, std::get<ReshapeOp>(op).shape};
  RETURN_IF_ERROR(RefuseVariable(input));
  const int64_t values = NumValues(input.shape);
  int64_t known = 1;
  for (const int64_t dim : output.shape) {
    if (dim != kUnknownDim && __builtin_mul_overflow(known, dim, &known)) known = 0;
  }
  const auto unknown = std::find(output.shape.begin(), output.shape.end(), kUnknownDim);
  if (unknown != output.shape.end() && known > 0 && values % known == 0) {
    *unknown = values / known;
    return output;
  }
  if (known == values) return output;
  return InvalidArgument("has shape " + json(input.shape).dump() + ", " + std::to_string(values) +
                         " values a record, and reshape " + json(output.shape).dump() +
                         " does not hold as many; give one dimension as -1, or correct the shape");
}

MapOperation ParseTranspose(ObjectReader& reader) {
  TransposeOp transpose;
  const json* axes = reader.Array("transpose", 1, kMaxDims);
  if (axes == nullptr || !axes->is_array()) return transpose;
  for (size_t d = 0; d < axes->size(); ++d) {
    // Each of 0 to d once, in any order.
    if (std::count(axes->begin(), axes->end(), json(d)) == 1) continue;
    reader.Error("transpose", axes->dump() + ": must name each dimension of a record once, from 0 to " +
                                  std::to_string(axes->size() - 1));
    return transpose;
  }
  transpose.axes = axes->get<std::vector<int64_t>>();
  return transpose;
}
void TransposeToJson(const MapOperation& op, json& out) { out["transpose"] = std::get<TransposeOp>(op).axes; }
Result<TensorSpec> TransposeType(const MapOperation& op, const TensorSpec& input) {
  RETURN_IF_ERROR(RefuseVariable(input));
  const auto& transpose = std::get<TransposeOp>(op);
  if (transpose.axes.size() != input.shape.size()) {
    return InvalidArgument("has shape " + json(input.shape).dump() + ", and transpose " + json(transpose.axes).dump() +
                           " is of " + std::to_string(transpose.axes.size()) +
                           " dimensions; name each dimension of a record once, batch dimensions left out");
  }
  TensorSpec output{input.name, input.dtype, {}};
  for (const int64_t axis : transpose.axes) output.shape.push_back(input.shape[static_cast<size_t>(axis)]);
  return output;
}

constexpr std::array<std::string_view, 6> kNumberTypes = {"float32", "float64", "int32", "int64", "uint32", "uint64"};

MapOperation ParseStringToNumber(ObjectReader& reader) {
  const std::optional<size_t> chosen = reader.Choice("stringToNumber", {kNumberTypes.begin(), kNumberTypes.end()});
  return StringToNumberOp{chosen ? *ParseDType(kNumberTypes[*chosen]) : DType::kFloat32};
}
void StringToNumberToJson(const MapOperation& op, json& out) {
  out["stringToNumber"] = DTypeName(std::get<StringToNumberOp>(op).dtype);
}
Result<TensorSpec> StringToNumberType(const MapOperation& op, const TensorSpec& input) {
  if (input.dtype == DType::kString) return TensorSpec{input.name, std::get<StringToNumberOp>(op).dtype, input.shape};
  return InvalidArgument("is " + std::string(DTypeName(input.dtype)) +
                         " and no string; use cast, or give the feature dtype string");
}

MapOperation ParseDecodeImage(ObjectReader& reader) {
  DecodeImageOp decode;
  const json* object = reader.Object("decodeImage");
  if (object == nullptr) return decode;
  ObjectReader fields(*object, reader.Path("decodeImage"), reader.errors());
  const std::vector<int64_t> shape = ReadShape(fields, DType::kUint8);
  if (shape.size() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4)) {
    decode.height = shape[0];
    decode.width = shape[1];
    decode.channels = shape[2];
  } else {
    fields.Error("shape", json(shape).dump() + " must be [height, width, channels], with 1, 3 or 4 channels");
  }
  decode.resize = fields.Enum<ResizeMethod>(
      "resize",
      {{"None", ResizeMethod::kNone}, {"Nearest", ResizeMethod::kNearest}, {"Bilinear", ResizeMethod::kBilinear}},
      ResizeMethod::kNone);
  return decode;
}
void DecodeImageToJson(const MapOperation& op, json& out) {
  const auto& decode = std::get<DecodeImageOp>(op);
  const char* const resize = decode.resize == ResizeMethod::kNone      ? "None"
                             : decode.resize == ResizeMethod::kNearest ? "Nearest"
                                                                       : "Bilinear";
  out["decodeImage"] = {{"shape", {decode.height, decode.width, decode.channels}}, {"resize", resize}};
}
Result<TensorSpec> DecodeImageType(const MapOperation& op, const TensorSpec& input) {
  const auto& decode = std::get<DecodeImageOp>(op);
  const DType dtype = decode.resize == ResizeMethod::kBilinear ? DType::kFloat32 : DType::kUint8;
  if (input.dtype == DType::kString)
    return TensorSpec{input.name, dtype, {decode.height, decode.width, decode.channels}};
  return InvalidArgument("is " + std::string(DTypeName(input.dtype)) +
                         " and no string; give the feature that holds the images dtype string");
}

MapOperation ParseDecodeRaw(ObjectReader& reader) {
  DecodeRawOp decode;
  const json* object = reader.Object("decodeRaw");
  if (object == nullptr) return decode;
  ObjectReader fields(*object, reader.Path("decodeRaw"), reader.errors());
  decode.dtype = ReadDType(fields, DType::kFloat32);
  decode.shape = ReadShape(fields, decode.dtype);
  return decode;
}
void DecodeRawToJson(const MapOperation& op, json& out) {
  const auto& decode = std::get<DecodeRawOp>(op);
  out["decodeRaw"] = {{"dtype", DTypeName(decode.dtype)}, {"shape", decode.shape}};
}
Result<TensorSpec> DecodeRawType(const MapOperation& op, const TensorSpec& input) {
  const auto& decode = std::get<DecodeRawOp>(op);
  if (input.dtype == DType::kString) return TensorSpec{input.name, decode.dtype, decode.shape};
  return InvalidArgument("is " + std::string(DTypeName(input.dtype)) +
                         " and no string; give the feature that holds the bytes dtype string");
}

struct Entry {
  std::array<std::string_view, 4> fields;  // of a map; one or more of them name the operation
  MapOperation (*parse)(ObjectReader&);
  void (*to_json)(const MapOperation&, json&);
  Result<TensorSpec> (*type)(const MapOperation&, const TensorSpec&);
};

// In the order of the variant's alternatives: an entry's index is MapOperation::index().
constexpr std::array<Entry, std::variant_size_v<MapOperation>> kOperations = {{
    {{"cast"}, ParseCast, CastToJson, CastType},
    {{"scale", "offset", "scales", "offsets"}, ParseAffine, AffineToJson, AffineType},
    {{"oneHot"}, ParseOneHot, OneHotToJson, OneHotType},
    {{"reshape"}, ParseReshape, ReshapeToJson, ReshapeType},
    {{"stringToNumber"}, ParseStringToNumber, StringToNumberToJson, StringToNumberType},
    {{"decodeImage"}, ParseDecodeImage, DecodeImageToJson, DecodeImageType},
    {{"decodeRaw"}, ParseDecodeRaw, DecodeRawToJson, DecodeRawType},
    {{"transpose"}, ParseTranspose, TransposeToJson, TransposeType},
}};

}  // namespace

Transformation ParseMap(ObjectReader& reader) {
  Map map;
  map.feature = reader.String("feature", 128);
  map.as = reader.String("as", 128);
  std::vector<std::string_view> names;
  int found = 0;
  for (const Entry& entry : kOperations) {
    bool here = false;
    for (const std::string_view field : entry.fields) {
      if (field.empty()) continue;
      names.push_back(field);
      here = reader.Any(field) != nullptr || here;
    }
    if (!here) continue;
    ++found;
    map.operation = entry.parse(reader);
  }
  if (found != 1) {
    reader.Error("", "must hold exactly one operation, of " + QuotedList(names) + ", and holds " +
                         std::to_string(found) + "; write each as a map of its own");
  }
  return map;
}

json MapToJson(const Transformation& transformation) {
  const auto& map = std::get<Map>(transformation);
  json out = json::object();
  if (!map.feature.empty()) out["feature"] = map.feature;
  if (!map.as.empty()) out["as"] = map.as;
  kOperations[map.operation.index()].to_json(map.operation, out);
  return out;
}

std::string_view MapOperationName(const MapOperation& operation) { return kOperations[operation.index()].fields[0]; }

Result<TensorSpec> MappedType(const MapOperation& operation, const TensorSpec& input) {
  return kOperations[operation.index()].type(operation, input);
}

}  // namespace headrace
