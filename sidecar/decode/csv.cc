// Records of CSV as rows. A line that is plain goes the quick way; one with quotes, or one that the quick way refuses,
// is split and looked at field by field, which also finds the words for what is wrong with it.
#include <algorithm>
#include <cstring>

#include "sidecar/core/arena.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/decode/convert.h"
#include "sidecar/decode/csv_fields.h"
#include "sidecar/decode/csv_line.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/number_text.h"

namespace headrace::side {
namespace {

CsvCell::Kind KindOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return CsvCell::Kind::kFloat32;
    case DType::kFloat64: return CsvCell::Kind::kFloat64;
    case DType::kString: return CsvCell::Kind::kString;
    case DType::kBool:
    case DType::kFloat16:
    case DType::kBfloat16: return CsvCell::Kind::kOther;
    default: return CsvCell::Kind::kInteger;
  }
}

// A column that a feature is read from.
struct Target {
  const Feature* feature = nullptr;
  std::string column;
  size_t component = 0;
  size_t offset = 0;     // of its value in the feature's row
  size_t row_bytes = 0;  // of the feature
  std::vector<uint8_t> default_value;
};

class CsvDecoder : public Decoder {
 public:
  CsvDecoder(const std::vector<Feature>& features, char delimiter)
      : features_(features), delimiter_(delimiter), quick_(QuickCsvLine()) {
    for (size_t c = 0; c < features_.size(); ++c) {
      const Feature& feature = features_[c];
      const std::vector<std::string> columns = CsvColumns({feature});
      const size_t value_bytes = DTypeSize(feature.dtype);
      for (size_t i = 0; i < columns.size(); ++i) {
        Target& target =
            targets_.emplace_back(Target{&feature, columns[i], c, i * value_bytes, columns.size() * value_bytes, {}});
        if (!feature.has_default) continue;
        target.default_value.resize(value_bytes);
        StoreAs(feature.dtype, feature.default_value[feature.default_value.size() == 1 ? 0 : i],
                target.default_value.data());
      }
    }
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    unquoted_.Reset();
    columns_ = columns;
    arranged_ = nullptr;
    for (size_t row = 0; row < records.size(); ++row) {
      Arrange(static_cast<const BytesBlock*>(records[row].block.get())->origin.columns);
      const std::span<const uint8_t> line = records[row].bytes();
      if (quick_ != nullptr && quick_(cells_, delimiter_, line.data(), line.size(), row)) continue;
      RETURN_IF_ERROR(DecodeLine(records[row], row));
    }
    return {};
  }

 private:
  // Makes cells_ those of a file, as its framer found them.
  void Arrange(const std::vector<int32_t>* file_columns) {
    if (file_columns == arranged_) return;
    arranged_ = file_columns;
    cells_.assign(file_columns->size(), {});
    for (size_t i = 0; i < cells_.size(); ++i) {
      if ((*file_columns)[i] < 0) continue;
      const auto t = static_cast<size_t>((*file_columns)[i]);
      const Target& target = targets_[t];
      const DType dtype = target.feature->dtype;
      cells_[i] = {KindOf(dtype),
                   dtype,
                   t,
                   columns_[target.component] + target.offset,
                   target.row_bytes,
                   target.feature->has_default ? &target.default_value : nullptr};
    }
  }

  Status DecodeLine(const Record& record, size_t row) {
    const std::span<const uint8_t> line = record.bytes();
    const std::string complaint =
        SplitCsv({reinterpret_cast<const char*>(line.data()), line.size()}, delimiter_, &unquoted_, &fields_);
    if (!complaint.empty()) return Corrupt(record.Place() + ": " + complaint + "; quote as RFC 4180 does");
    if (fields_.size() != cells_.size()) {
      return Corrupt(record.Place() + ": " + std::to_string(fields_.size()) + " fields, and the file has " +
                     std::to_string(cells_.size()) +
                     " columns; correct the line, or spec.source.files.csv.delimiter, which is " +
                     ShownText({&delimiter_, 1}));
    }
    for (size_t i = 0; i < cells_.size(); ++i) {
      const CsvCell& cell = cells_[i];
      if (cell.kind == CsvCell::Kind::kPassedOver) continue;
      if (StoreCsvField(cell, fields_[i], cell.out + row * cell.row_bytes)) continue;
      const Target& target = targets_[cell.target];
      const std::string begin = record.Place() + ": column \"" + target.column + "\" ";
      const std::string name = "feature \"" + target.feature->name + "\"";
      if (fields_[i].empty()) return Corrupt(begin + "is empty; give " + name + " a default, or correct the line");
      return Corrupt(begin + "holds " + ShownText(fields_[i]) + ", which is no " + std::string(DTypeName(cell.dtype)) +
                     "; correct the line, or the dtype of " + name);
    }
    return {};
  }

  const std::vector<Feature> features_;
  const char delimiter_;
  const CsvLine quick_;
  std::vector<Target> targets_;
  // Of the records at hand:
  std::span<uint8_t* const> columns_;
  const std::vector<int32_t>* arranged_ = nullptr;
  std::vector<CsvCell> cells_;
  std::vector<std::string_view> fields_;
  Arena unquoted_;
};

}  // namespace

bool StoreCsvField(const CsvCell& cell, std::string_view text, uint8_t* out) {
  if (cell.kind == CsvCell::Kind::kString) {
    const BytesRef value{reinterpret_cast<const uint8_t*>(text.data()), text.size()};
    std::memcpy(out, &value, sizeof value);
    return true;
  }
  if (text.empty()) {
    if (cell.default_value != nullptr) std::memcpy(out, cell.default_value->data(), cell.default_value->size());
    return cell.default_value != nullptr;
  }
  return StoreNumberText(cell.dtype, text, out);
}

std::unique_ptr<Decoder> MakeCsvDecoder(const std::vector<Feature>& features, char delimiter) {
  return std::make_unique<CsvDecoder>(features, delimiter);
}

}  // namespace headrace::side
