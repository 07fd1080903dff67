// Rows of tables, whose blocks hold them column by column. Records mostly come in runs of rows, which are copied as
// such: a column of the right type by one memcpy.
#include <algorithm>
#include <cstring>

#include "common/spec/padding.h"
#include "sidecar/core/arena.h"
#include "sidecar/core/columns_block.h"
#include "sidecar/core/prefetch.h"
#include "sidecar/decode/column_cast.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/default_row.h"

namespace headrace::side {
namespace {

// Several columns are brought into one type this many rows at a time.
constexpr int64_t kStepRows = 256;

struct Target {
  enum class Form {
    kScalars,  // of several columns, which become one row
    kFixed,    // as many values in each row
    kPadded,   // at most so many
    kVaries,   // a BytesRef to as many as there are
    kString,   // a BytesRef
  };
  Feature feature;
  Form form = Form::kFixed;
  size_t columns = 1;
  int64_t values = 1;  // of a row; kPadded: at most
  int64_t unit = 1;    // a row's values come in multiples of it
  size_t value_bytes = 0;
  size_t row_bytes = 0;
  std::vector<uint8_t> default_row;  // empty: a null is an error

  // Of what one of its columns gives.
  int64_t column_values() const { return form == Form::kScalars ? 1 : values; }
  std::span<const uint8_t> DefaultOf(size_t column) const {
    if (form != Form::kScalars || default_row.empty()) return default_row;
    return std::span(default_row).subspan(column * value_bytes, value_bytes);
  }
};

Target MakeTarget(const Feature& feature) {
  Target target;
  target.feature = feature;
  target.columns = std::max<size_t>(feature.columns.size(), 1);
  target.value_bytes = DTypeSize(feature.dtype);
  target.row_bytes = sizeof(BytesRef);
  for (size_t d = 1; d < feature.shape.size(); ++d) target.unit *= feature.shape[d];
  if (feature.dtype == DType::kString) {
    target.form = Target::Form::kString;
  } else if (IsVarying(feature)) {
    target.form = Target::Form::kVaries;
  } else {
    target.form = feature.padding       ? Target::Form::kPadded
                  : target.columns == 1 ? Target::Form::kFixed
                                        : Target::Form::kScalars;
    target.values = NumValues(feature.shape);
    target.row_bytes = static_cast<size_t>(target.values) * target.value_bytes;
    target.default_row = DefaultRow(feature);
  }
  return target;
}

// A column that a target is made of.
struct Source {
  const Target& target;
  const ColumnsBlock& block;
  const ColumnView& view;
  const std::string* column = nullptr;  // its name, where the target has several

  // The type of a row's values: the bytes of strings are numbers to those who ask for such.
  DType dtype() const { return view.dtype == DType::kString ? DType::kUint8 : view.dtype; }
  size_t value_bytes() const { return DTypeSize(dtype()); }

  Status Wrong(int64_t row, const std::string& what, const std::string& remedy) const {
    return Corrupt(block.Place(row) + ": feature \"" + target.feature.name + '"' +
                   (column == nullptr ? "" : ", column \"" + *column + '"') + " " + what + "; " + remedy);
  }
};

// How many rows from `row` on, up to `end`, are alike: all null, or none.
int64_t Alike(const ColumnView& view, int64_t row, int64_t end) {
  if (view.rows == ColumnView::Rows::kNone || view.valid == nullptr) return end - row;
  const bool null = view.IsNull(row);
  int64_t next = row + 1;
  while (next < end && view.IsNull(next) == null) ++next;
  return next - row;
}

Status IsNull(const Source& from, int64_t row) {
  return from.Wrong(row, "is null", "give it a default in spec.features, or write the file without nulls");
}

Status CheckHole(const Source& from, int64_t row) {
  if (!from.view.HasHole(row)) return {};
  return from.Wrong(row, "holds a null among its values", "write the file without");
}

// That the rows, none of them null, hold as many values as the target takes.
Status CheckRows(const Source& from, int64_t row, int64_t rows) {
  const int64_t wanted = from.target.column_values();
  const auto check = [&](int64_t at, int64_t count) {
    if (count == wanted) return Status();
    return from.Wrong(at, "holds " + std::to_string(count) + " values and its shape takes " + std::to_string(wanted),
                      "correct it in spec.features, or let its first dimension be -1");
  };
  if (from.view.rows == ColumnView::Rows::kFixed && from.view.holes == nullptr) return check(row, from.view.unit);
  for (int64_t r = row; r < row + rows; ++r) {
    RETURN_IF_ERROR(CheckHole(from, r));
    RETURN_IF_ERROR(check(r, static_cast<int64_t>(from.view.Row(r).size / from.value_bytes())));
  }
  return {};
}

// Values, one after another, in the target's type; `row_values` of them are those of a row, the first those of `row`.
Status Cast(const Source& from, const uint8_t* values, size_t count, int64_t row, int64_t row_values, uint8_t* out) {
  const DType dtype = from.target.feature.dtype;
  if (from.dtype() == dtype) {
    if (count > 0) std::memcpy(out, values, count * from.target.value_bytes);
    return {};
  }
  const size_t fit = CastOf(from.dtype(), dtype)(values, count, out);
  if (fit == count) return {};
  const std::string value = WithType(from.dtype(), [&](auto type) {
    typename decltype(type)::type wrong;
    std::memcpy(&wrong, values + fit * sizeof wrong, sizeof wrong);
    return std::to_string(wrong);
  });
  return from.Wrong(row + static_cast<int64_t>(fit) / row_values,
                    "holds " + value + ", which is no " + std::string(DTypeName(dtype)),
                    "give it a larger integer dtype, or a float");
}

// Rows that hold as many values each; nulls become `default_row`.
Status FixedRows(const Source& from, int64_t row, int64_t rows, std::span<const uint8_t> default_row, uint8_t* out) {
  // Rows that lie apart are copied one by one.
  const int64_t most = from.view.rows == ColumnView::Rows::kRefs || from.view.stride > 0 ? 1 : rows;
  const int64_t values = from.target.column_values();
  const size_t row_bytes = static_cast<size_t>(values) * from.target.value_bytes;
  for (const int64_t end = row + rows; row < end;) {
    const int64_t alike = std::min(Alike(from.view, row, end), most);
    const auto bytes = static_cast<size_t>(alike) * row_bytes;
    if (!from.view.IsNull(row)) {
      RETURN_IF_ERROR(CheckRows(from, row, alike));
      const auto count = static_cast<size_t>(alike * values);
      RETURN_IF_ERROR(Cast(from, from.view.Row(row).data, count, row, values, out));
    } else if (default_row.empty()) {
      return IsNull(from, row);
    } else {
      for (size_t at = 0; at < bytes; at += row_bytes) std::memcpy(out + at, default_row.data(), row_bytes);
    }
    row += alike;
    out += bytes;
  }
  return {};
}

// How many values a row holds that may hold several.
Result<size_t> CountOf(const Source& from, int64_t row) {
  RETURN_IF_ERROR(CheckHole(from, row));
  const size_t count = from.view.Row(row).size / from.value_bytes();
  const std::string holds = "holds " + std::to_string(count) + " values";
  if (count % static_cast<size_t>(from.target.unit) != 0) {
    return from.Wrong(row, holds + ", which is no multiple of " + std::to_string(from.target.unit),
                      "correct its shape in spec.features");
  }
  if (from.target.form == Target::Form::kPadded && static_cast<int64_t>(count) > from.target.values) {
    return from.Wrong(row, holds + " and paddedBatch pads to " + std::to_string(from.target.values),
                      "give paddedShapes more");
  }
  return count;
}

Status PaddedRows(const Source& from, int64_t row, int64_t rows, uint8_t* out) {
  for (const int64_t end = row + rows; row < end; ++row, out += from.target.row_bytes) {
    std::memcpy(out, from.target.default_row.data(), from.target.row_bytes);
    if (from.view.IsNull(row)) continue;
    ASSIGN_OR_RETURN(const size_t count, CountOf(from, row));
    RETURN_IF_ERROR(Cast(from, from.view.Row(row).data, count, row, from.target.values, out));
  }
  return {};
}

Status Strings(const Source& from, int64_t row, int64_t rows, BytesRef* out) {
  for (const int64_t end = row + rows; row < end; ++row, ++out) {
    if (from.view.IsNull(row)) return from.Wrong(row, "is null", "write the file with an empty string");
    RETURN_IF_ERROR(CheckHole(from, row));
    *out = from.view.Row(row);
  }
  return {};
}

class ColumnsDecoder : public Decoder {
 public:
  explicit ColumnsDecoder(const std::vector<Feature>& features) {
    for (const Feature& feature : features) targets_.push_back(MakeTarget(feature));
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    values_.Reset();
    for (size_t row = 0; row < records.size();) {
      Block* const block = records[row].block.get();
      const int64_t first = records[row].value;
      size_t end = row + 1;
      while (end < records.size() && records[end].block.get() == block &&
             records[end].value == first + static_cast<int64_t>(end - row)) {
        ++end;
      }
      if (end == row + 1 && row + kPrefetchAhead < records.size()) {  // after a shuffle each lies elsewhere
        const Record& ahead = records[row + kPrefetchAhead];
        ahead.block->Prefetch(ahead.value);
      }
      size_t column = 0;
      for (size_t t = 0; t < targets_.size(); ++t) {
        const Target& target = targets_[t];
        RETURN_IF_ERROR(DecodeRows(target, static_cast<const ColumnsBlock&>(*block), column, first,
                                   static_cast<int64_t>(end - row), columns[t] + row * target.row_bytes));
        column += target.columns;
      }
      row = end;
    }
    return {};
  }

 private:
  // `column` is the target's first in the block.
  Status DecodeRows(const Target& target, const ColumnsBlock& block, size_t column, int64_t row, int64_t rows,
                    uint8_t* out) {
    const Source from{target, block, block.columns[column]};
    if (block.rows_begin != nullptr && LiesTogether(target, &from.view)) {
      for (int64_t r = 0; r < rows; ++r, out += target.row_bytes) {
        std::memcpy(out, from.view.Row(row + r).data, target.row_bytes);
      }
      return {};
    }
    switch (target.form) {
      case Target::Form::kScalars: return Scalars(target, block, column, row, rows, out);
      case Target::Form::kFixed: return FixedRows(from, row, rows, target.DefaultOf(0), out);
      case Target::Form::kPadded: return PaddedRows(from, row, rows, out);
      case Target::Form::kVaries: return VaryingRows(from, row, rows, reinterpret_cast<BytesRef*>(out));
      case Target::Form::kString: return Strings(from, row, rows, reinterpret_cast<BytesRef*>(out));
    }
    return {};
  }

  Status VaryingRows(const Source& from, int64_t row, int64_t rows, BytesRef* out) {
    for (const int64_t end = row + rows; row < end; ++row, ++out) {
      *out = {};  // a row that is null has no values
      if (from.view.IsNull(row)) continue;
      ASSIGN_OR_RETURN(const size_t count, CountOf(from, row));
      *out = from.view.Row(row);
      if (from.dtype() == from.target.feature.dtype) continue;
      uint8_t* const cast = values_.Take(count * from.target.value_bytes);
      RETURN_IF_ERROR(Cast(from, out->data, count, row, std::max<int64_t>(1, static_cast<int64_t>(count)), cast));
      *out = {cast, count * from.target.value_bytes};
    }
    return {};
  }

  // Several columns of one value a row.
  Status Scalars(const Target& target, const ColumnsBlock& block, size_t column, int64_t row, int64_t rows,
                 uint8_t* out) {
    sources_.resize(target.columns);
    const bool in_place = std::all_of(&block.columns[column], &block.columns[column] + target.columns,
                                      [&](const ColumnView& view) { return InPlace(target, view); });
    const int64_t step = in_place ? rows : kStepRows;
    if (!in_place) scratch_.resize(std::max(scratch_.size(), target.columns * kStepRows * target.value_bytes));
    for (const int64_t end = row + rows; row < end;) {
      const int64_t here = std::min(end - row, step);
      for (size_t c = 0; c < target.columns; ++c) {
        const ColumnView& view = block.columns[column + c];
        if (in_place) {
          sources_[c] = view.Row(row).data;
          continue;
        }
        uint8_t* const cast = &scratch_[c * kStepRows * target.value_bytes];
        const Source from{target, block, view, &target.feature.columns[c]};
        RETURN_IF_ERROR(FixedRows(from, row, here, target.DefaultOf(c), cast));
        sources_[c] = cast;
      }
      Interleave(sources_, static_cast<size_t>(here), target.value_bytes, out);
      row += here;
      out += static_cast<size_t>(here) * target.row_bytes;
    }
    return {};
  }

  // Whether the values of a column are those of the target as they lie.
  static bool InPlace(const Target& target, const ColumnView& view) {
    return view.dtype == target.feature.dtype && view.valid == nullptr && view.rows == ColumnView::Rows::kFixed &&
           view.stride == 0;
  }
  // Whether its columns are, of each row, the target's as they lie side by side.
  static bool LiesTogether(const Target& target, const ColumnView* views) {
    if (target.form != Target::Form::kScalars && target.form != Target::Form::kFixed) return false;
    return std::all_of(views, views + target.columns, [&](const ColumnView& view) {
      return view.stride > 0 && view.dtype == target.feature.dtype && view.valid == nullptr && view.holes == nullptr &&
             view.unit == target.column_values();
    });
  }

  std::vector<Target> targets_;
  std::vector<const uint8_t*> sources_;  // of several columns, those of one feature
  std::vector<uint8_t> scratch_;
  Arena values_;  // of varying length, where they were cast
};

}  // namespace

std::unique_ptr<Decoder> MakeColumnsDecoder(const std::vector<Feature>& features) {
  return std::make_unique<ColumnsDecoder>(features);
}

}  // namespace headrace::side
