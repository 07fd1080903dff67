// tf.train.Example (tensorflow/core/example/{example,feature}.proto), read in place:
//
//   Example   { Features features = 1; }
//   Features  { map<string, Feature> feature = 1; }          an entry is { string key = 1; Feature value = 2; }
//   Feature   { oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
//   BytesList { repeated bytes value = 1; }
//   FloatList { repeated float value = 1 [packed]; }  Int64List { repeated int64 value = 1 [packed]; }
//
// As everywhere in protocol buffers, a repeated key's last value counts, and lists may come packed or not.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "sidecar/core/arena.h"
#include "sidecar/decode/convert.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/default_row.h"
#include "sidecar/decode/example_shape.h"
#include "sidecar/decode/wire.h"

namespace headrace::side {
namespace {

struct Column {
  Feature feature;
  size_t values = 1;  // of one record
  size_t value_bytes = 0;
  size_t row_bytes = 0;
  std::vector<uint8_t> default_row;  // empty: the feature is required
  size_t unit = 0;           // of a feature of varying length: values come in multiples of it; 0: exactly `values` come
  bool ragged = false;       // of varying length, and not padded
  mutable size_t found = 0;  // values, in the last record
};

// Why a feature's value cannot be taken; empty if it can.
using Complaint = std::string;

Complaint CheckCount(size_t found, const char* kind, const Column& column) {
  column.found = found;
  if (found == column.values) return "";
  const std::string holds = "holds " + std::to_string(found) + " " + kind;
  if (column.unit == 0) return holds + " and its shape takes " + std::to_string(column.values);
  if (found > column.values) return holds + " and paddedBatch pads to " + std::to_string(column.values);
  if (found % column.unit != 0) return holds + ", which is no multiple of " + std::to_string(column.unit);
  return "";
}

// `floats` as they lie in a message, to values of `dtype`.
void CopyFloats(DType dtype, std::span<const uint8_t> floats, uint8_t* out) {
  if (dtype == DType::kFloat32) {
    if (!floats.empty()) std::memcpy(out, floats.data(), floats.size());
    return;
  }
  for (size_t at = 0; at < floats.size(); at += sizeof(float), out += DTypeSize(dtype)) {
    float value;
    std::memcpy(&value, &floats[at], sizeof value);
    StoreAs(dtype, value, out);
  }
}

Complaint StoreFloats(WireReader list, const Column& column, uint8_t* out) {
  if (!IsFloat(column.feature.dtype)) return "is a float_list; give it a float dtype";
  size_t count = 0;
  while (const auto field = list.Next()) {
    if (field->number != 1 || (field->type != WireType::kBytes && field->type != WireType::kFixed32)) continue;
    const size_t here = field->bytes.size() / sizeof(float);
    if (field->bytes.size() % sizeof(float) != 0) return "is a broken float_list";
    if (count + here <= column.values) CopyFloats(column.feature.dtype, field->bytes, out + count * column.value_bytes);
    count += here;
  }
  if (list.broken()) return "is a broken float_list";
  return CheckCount(count, "floats", column);
}

Complaint StoreInts(WireReader list, const Column& column, uint8_t* out) {
  const DType dtype = column.feature.dtype;
  if (IsFloat(dtype) || dtype == DType::kString) return "is an int64_list; give it an integer dtype";
  size_t count = 0;
  Complaint complaint;
  const auto store = [&](uint64_t varint) {
    const auto value = static_cast<int64_t>(varint);
    if (count < column.values) {
      if (!Fits(dtype, value))
        complaint = "holds " + std::to_string(value) + ", which is no " + std::string(DTypeName(dtype));
      StoreAs(dtype, value, out + count * column.value_bytes);
    }
    ++count;
  };
  bool broken = false;
  while (const auto field = list.Next()) {
    if (field->number != 1) continue;
    if (field->type == WireType::kVarint) {
      store(field->varint);
    } else if (field->type == WireType::kBytes) {
      WireReader packed(field->bytes);
      while (!packed.AtEnd()) store(packed.Varint());
      broken = broken || packed.broken();
    }
  }
  if (broken || list.broken()) return "is a broken int64_list";
  if (!complaint.empty()) return complaint;
  return CheckCount(count, "integers", column);
}

// One value, by reference.
Complaint StoreString(WireReader list, uint8_t* out) {
  size_t count = 0;
  BytesRef value;
  while (const auto field = list.Next()) {
    if (field->number != 1 || field->type != WireType::kBytes) continue;
    value = {field->bytes.data(), field->bytes.size()};
    ++count;
  }
  if (list.broken()) return "is a broken bytes_list";
  std::memcpy(out, &value, sizeof value);
  return count == 1 ? "" : "holds " + std::to_string(count) + " values, and a string feature takes one";
}

Complaint StoreBytes(WireReader list, const Column& column, uint8_t* out) {
  if (column.feature.dtype == DType::kString) return StoreString(list, out);
  if (column.feature.dtype != DType::kUint8) return "is a bytes_list; give it dtype uint8, or string and a map";
  size_t count = 0;
  while (const auto field = list.Next()) {
    if (field->number != 1 || field->type != WireType::kBytes) continue;
    if (count + field->bytes.size() <= column.values && !field->bytes.empty()) {
      std::memcpy(out + count, field->bytes.data(), field->bytes.size());
    }
    count += field->bytes.size();
  }
  if (list.broken()) return "is a broken bytes_list";
  return CheckCount(count, "bytes", column);
}

std::string_view AsText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ExampleDecoder : public Decoder {
 public:
  explicit ExampleDecoder(const std::vector<Feature>& features) : seen_(features.size()) {
    for (const Feature& feature : features) {
      Column column{feature, 1, DTypeSize(feature.dtype), 0, {}, 0, false, 0};
      if (!feature.shape.empty() && feature.shape[0] < 0) {
        column.ragged = true;
        column.unit = 1;
        for (size_t d = 1; d < feature.shape.size(); ++d) column.unit *= static_cast<size_t>(feature.shape[d]);
        column.row_bytes = sizeof(BytesRef);
        column.default_row.resize(sizeof(BytesRef));  // without the feature, a record holds no values of it
        columns_.push_back(std::move(column));
        continue;
      }
      for (const int64_t dim : feature.shape) column.values *= static_cast<size_t>(dim);
      column.row_bytes = column.values * column.value_bytes;
      column.default_row = DefaultRow(feature);
      if (feature.padding) column.unit = column.values / static_cast<size_t>(feature.shape[0]);
      columns_.push_back(std::move(column));
    }
    for (const Column& column : columns_) {
      names_.push_back(column.feature.name);
      learns_ = learns_ && !column.ragged && column.unit == 0 && column.feature.dtype != DType::kString;
    }
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    ragged_values_.Reset();
    for (size_t row = 0; row < records.size(); ++row) {
      if (learns_ && DecodeKnown(records[row].bytes(), row, columns)) continue;
      RETURN_IF_ERROR(DecodeOne(records[row], row, columns));
      if (learns_) Learn(records[row].bytes());
    }
    return {};
  }

 private:
  // Lengths of varints make a few shapes of records that are otherwise alike.
  static constexpr size_t kMostShapes = 8;
  // Where records differ too much, looking for their shapes is given up.
  static constexpr int kMostPatience = 256;

  // Copies the values of a record that has the shape of one before. false: nobody knows it, or it is wrong.
  bool DecodeKnown(std::span<const uint8_t> record, size_t row, std::span<uint8_t* const> outs) {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (!shapes_[i].Fits(record)) continue;
      if (i > 0) std::swap(shapes_[i], shapes_[i - 1]);  // those that are found often come first
      const ExampleShape& shape = shapes_[i > 0 ? i - 1 : 0];
      patience_ = std::min(patience_ + 1, kMostPatience);
      for (const ExampleShape::Values& values : shape.values()) {
        const Column& column = columns_[values.feature];
        uint8_t* const out = outs[values.feature] + row * column.row_bytes;
        if (!StoreKnown(column, values.kind, record.subspan(values.begin, values.size), out)) return false;
      }
      if (shape.values().size() == columns_.size()) return true;
      return StoreDefaults(shape, row, outs);
    }
    return false;
  }

  static bool StoreKnown(const Column& column, ExampleShape::Kind kind, std::span<const uint8_t> bytes, uint8_t* out) {
    const DType dtype = column.feature.dtype;
    switch (kind) {
      case ExampleShape::Kind::kBytes:
        if (dtype != DType::kUint8 || bytes.size() != column.values) return false;
        std::memcpy(out, bytes.data(), bytes.size());
        return true;
      case ExampleShape::Kind::kFloats:
        if (!IsFloat(dtype) || bytes.size() != column.values * sizeof(float)) return false;
        CopyFloats(dtype, bytes, out);
        return true;
      case ExampleShape::Kind::kInts: {
        if (IsFloat(dtype)) return false;
        WireReader packed(bytes);
        for (size_t i = 0; i < column.values; ++i) {
          const auto value = static_cast<int64_t>(packed.Varint());
          if (packed.broken() || !Fits(dtype, value)) return false;
          StoreAs(dtype, value, out + i * column.value_bytes);
        }
        return packed.AtEnd();
      }
    }
    return false;
  }

  bool StoreDefaults(const ExampleShape& shape, size_t row, std::span<uint8_t* const> outs) const {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const auto& values = shape.values();
      if (std::any_of(values.begin(), values.end(), [c](const auto& v) { return v.feature == c; })) continue;
      const Column& column = columns_[c];
      if (column.default_row.empty()) return false;
      std::memcpy(outs[c] + row * column.row_bytes, column.default_row.data(), column.row_bytes);
    }
    return true;
  }

  void Learn(std::span<const uint8_t> record) {
    if (--patience_ == 0) learns_ = false;
    auto shape = ExampleShape::Of(record, names_);
    if (!shape) return;
    if (shapes_.size() == kMostShapes) shapes_.pop_back();
    shapes_.push_back(std::move(*shape));
  }

  Status DecodeOne(const Record& record, size_t row, std::span<uint8_t* const> outs) {
    std::fill(seen_.begin(), seen_.end(), 0);
    size_t expected = 0;  // writers keep one order of features: try the one after the last found first
    WireReader example(record.bytes());
    while (const auto features = example.Next()) {
      if (features->number != 1 || features->type != WireType::kBytes) continue;
      WireReader map(features->bytes);
      while (const auto entry = map.Next()) {
        if (entry->number != 1 || entry->type != WireType::kBytes) continue;
        std::string_view key;
        std::span<const uint8_t> value;
        WireReader pair(entry->bytes);
        while (const auto field = pair.Next()) {
          if (field->type != WireType::kBytes) continue;
          if (field->number == 1) key = AsText(field->bytes);
          if (field->number == 2) value = field->bytes;
        }
        if (pair.broken()) return Broken(record);
        const size_t c = Find(key, expected);
        if (c == columns_.size()) continue;
        expected = c + 1;
        // A feature whose oneof is not set is the same as none.
        uint8_t* const out = outs[c] + row * columns_[c].row_bytes;
        ASSIGN_OR_RETURN(seen_[c], columns_[c].ragged ? StoreRagged(record, columns_[c], value, out)
                                                      : Store(record, columns_[c], value, out));
      }
      if (map.broken()) return Broken(record);
    }
    if (example.broken()) return Broken(record);
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (seen_[c] != 0) continue;
      const Column& column = columns_[c];
      if (column.default_row.empty()) {
        return Corrupt(Where(record) + "feature \"" + column.feature.name +
                       "\" is missing; correct its name in spec.features or give it a default");
      }
      std::memcpy(outs[c] + row * column.row_bytes, column.default_row.data(), column.row_bytes);
    }
    return {};
  }

  size_t Find(std::string_view key, size_t expected) const {
    if (expected < columns_.size() && columns_[expected].feature.name == key) return expected;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].feature.name == key) return c;
    }
    return columns_.size();
  }

  // As many values as there are, in memory of their own.
  Result<char> StoreRagged(const Record& record, Column& column, std::span<const uint8_t> value, uint8_t* out) {
    column.values = value.size();  // no list of numbers has more values than bytes
    uint8_t* const values = ragged_values_.Take(column.values * column.value_bytes);
    column.found = 0;
    ASSIGN_OR_RETURN(const char stored, Store(record, column, value, values));
    const BytesRef row{values, column.found * column.value_bytes};
    std::memcpy(out, &row, sizeof row);
    return stored;
  }

  Result<char> Store(const Record& record, const Column& column, std::span<const uint8_t> value, uint8_t* out) const {
    char stored = 0;
    WireReader feature(value);
    if (column.unit > 0 && !column.ragged)
      std::memcpy(out, column.default_row.data(), column.row_bytes);  // what is left over stays
    Complaint complaint;
    while (const auto kind = feature.Next()) {
      if (kind->type != WireType::kBytes) continue;
      const WireReader list(kind->bytes);
      switch (kind->number) {
        case 1: complaint = StoreBytes(list, column, out); break;
        case 2: complaint = StoreFloats(list, column, out); break;
        case 3: complaint = StoreInts(list, column, out); break;
        default: continue;
      }
      stored = 1;
    }
    if (feature.broken()) return Broken(record);
    if (complaint.empty()) return stored;
    return Corrupt(Where(record) + "feature \"" + column.feature.name + "\" " + complaint +
                   "; correct it in spec.features");
  }

  static std::string Where(const Record& record) { return record.Place() + ": "; }
  static Status Broken(const Record& record) {
    return Corrupt(Where(record) + "its " + std::to_string(record.bytes().size()) +
                   " bytes are not a tf.train.Example; spec.source.files.paths may name files of another kind");
  }

  std::vector<Column> columns_;
  std::vector<std::string_view> names_;  // of columns_
  bool learns_ = true;
  int patience_ = kMostPatience;
  std::vector<ExampleShape> shapes_;
  std::vector<char> seen_;
  Arena ragged_values_;
};

}  // namespace

std::unique_ptr<Decoder> MakeExampleDecoder(const std::vector<Feature>& features) {
  return std::make_unique<ExampleDecoder>(features);
}

}  // namespace headrace::side
