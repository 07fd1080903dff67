#include "sidecar/source/arrow_columns.h"

#include <arrow/array/array_binary.h>
#include <arrow/array/array_decimal.h>
#include <arrow/array/array_dict.h>
#include <arrow/array/array_nested.h>
#include <arrow/buffer.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>

#include <cstdlib>
#include <cstring>

#include "common/spec/tensor_fields.h"

namespace headrace::side {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

class BoundedPool : public arrow::MemoryPool {
 public:
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    RETURN_NOT_OK(Check(size));
    return pool_.Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** memory) override {
    RETURN_NOT_OK(Check(new_size));
    return pool_.Reallocate(old_size, new_size, alignment, memory);
  }
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override { pool_.Free(buffer, size, alignment); }
  int64_t bytes_allocated() const override { return pool_.bytes_allocated(); }
  int64_t total_bytes_allocated() const override { return pool_.total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_.num_allocations(); }
  std::string backend_name() const override { return pool_.backend_name(); }

 private:
  static arrow::Status Check(int64_t size) {
    if (size <= kMostBytes) return arrow::Status::OK();
    return arrow::Status::OutOfMemory("one of its parts takes ", size, " bytes at once, more than 1 GiB");
  }
  arrow::MemoryPool& pool_ = *arrow::default_memory_pool();
};

// ---- Types

// Whether a row of it is no larger than a record can be.
bool IsRecord(const FileColumn& column) {
  constexpr int64_t kMostRecordBytes = int64_t{1} << 30;
  auto bytes = static_cast<int64_t>(DTypeSize(column.dtype));
  for (const int64_t dim : column.shape) {
    if (dim > 0 && __builtin_mul_overflow(bytes, dim, &bytes)) return false;
  }
  return column.shape.size() <= kMaxDims && bytes <= kMostRecordBytes;
}

// What a row of `type` is; false if it is nothing that is offered.
bool Describe(const arrow::DataType& type, FileColumn* column) {
  using Id = arrow::Type;
  const auto is = [&](DType dtype, std::vector<int64_t> shape = {}) {
    column->dtype = dtype;
    column->shape = std::move(shape);
    return true;
  };
  const auto list = [&](int64_t size, const arrow::DataType& values) {
    if (size == 0 || !Describe(values, column) || column->dtype == DType::kString || column->empty) return false;
    if (!column->shape.empty() && column->shape[0] < 0) return false;
    column->shape.insert(column->shape.begin(), size);
    return IsRecord(*column);
  };
  switch (type.id()) {
    case Id::NA: column->empty = true; return true;
    case Id::BOOL: return is(DType::kBool);
    case Id::INT8: return is(DType::kInt8);
    case Id::UINT8: return is(DType::kUint8);
    case Id::INT16: return is(DType::kInt16);
    case Id::UINT16: return is(DType::kUint16);
    case Id::INT32: return is(DType::kInt32);
    case Id::UINT32: return is(DType::kUint32);
    case Id::UINT64: return is(DType::kUint64);
    case Id::INT64:
    case Id::DATE32:  // units of time: all of them as int64, however they are stored
    case Id::DATE64:
    case Id::TIME32:
    case Id::TIME64:
    case Id::TIMESTAMP:
    case Id::DURATION: return is(DType::kInt64);
    case Id::HALF_FLOAT: return is(DType::kFloat16);
    case Id::FLOAT: return is(DType::kFloat32);
    case Id::DOUBLE:
    case Id::DECIMAL32:
    case Id::DECIMAL64:
    case Id::DECIMAL128:
    case Id::DECIMAL256: return is(DType::kFloat64);
    case Id::STRING:
    case Id::BINARY:
    case Id::LARGE_STRING:
    case Id::LARGE_BINARY:
    case Id::STRING_VIEW:
    case Id::BINARY_VIEW: return is(DType::kString);
    case Id::FIXED_SIZE_BINARY: {
      const int width = static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width();
      return width > 0 && is(DType::kUint8, {width}) && IsRecord(*column);
    }
    case Id::FIXED_SIZE_LIST: {
      const auto& fixed = static_cast<const arrow::FixedSizeListType&>(type);
      return list(fixed.list_size(), *fixed.value_type());
    }
    case Id::LIST:
    case Id::LARGE_LIST: return list(-1, *static_cast<const arrow::BaseListType&>(type).value_type());
    case Id::DICTIONARY:
      return Describe(*static_cast<const arrow::DictionaryType&>(type).value_type(), column) && column->shape.empty();
    case Id::EXTENSION: return Describe(*static_cast<const arrow::ExtensionType&>(type).storage_type(), column);
    default: return false;
  }
}

void AddFields(const arrow::FieldVector& fields, const std::string& prefix, const std::vector<int>& path,
               std::vector<SchemaColumn>* columns) {
  for (size_t i = 0; i < fields.size(); ++i) {
    SchemaColumn column;
    column.path = path;
    column.path.push_back(static_cast<int>(i));
    column.type = fields[i]->type();
    column.column.name = prefix + fields[i]->name();
    if (column.type->id() == arrow::Type::STRUCT) {
      AddFields(column.type->fields(), column.column.name + ".", column.path, columns);
      continue;
    }
    column.column.type = column.type->ToString();
    column.column.offered = Describe(*column.type, &column.column);
    columns->push_back(std::move(column));
  }
}

// ---- Arrays

// Takes views of arrays; memory that has to be made for that is the block's.
class Viewer {
 public:
  explicit Viewer(ColumnsBlock* block) : block_(*block) {}

  arrow::Result<ColumnView> View(const arrow::Array& array) {
    using Id = arrow::Type;
    ColumnView view;
    switch (array.type_id()) {
      case Id::NA: view.rows = ColumnView::Rows::kNone; return view;
      case Id::EXTENSION: return View(*static_cast<const arrow::ExtensionArray&>(array).storage());
      case Id::DICTIONARY: return Dictionary(static_cast<const arrow::DictionaryArray&>(array));
      default: break;
    }
    view.rows = ColumnView::Rows::kFixed;
    if (array.null_count() > 0) {
      view.valid = array.null_bitmap_data();
      view.valid_bit = array.offset();
    }
    switch (array.type_id()) {
      case Id::BOOL: RETURN_NOT_OK(Bools(static_cast<const arrow::BooleanArray&>(array), &view)); break;
      case Id::DECIMAL32: RETURN_NOT_OK(Decimals<arrow::Decimal32>(array, &view)); break;
      case Id::DECIMAL64: RETURN_NOT_OK(Decimals<arrow::Decimal64>(array, &view)); break;
      case Id::DECIMAL128: RETURN_NOT_OK(Decimals<arrow::Decimal128>(array, &view)); break;
      case Id::DECIMAL256: RETURN_NOT_OK(Decimals<arrow::Decimal256>(array, &view)); break;
      case Id::STRING:
      case Id::BINARY: RETURN_NOT_OK(Strings<arrow::BinaryArray>(array, &view)); break;
      case Id::LARGE_STRING:
      case Id::LARGE_BINARY: RETURN_NOT_OK(Strings<arrow::LargeBinaryArray>(array, &view)); break;
      case Id::STRING_VIEW:
      case Id::BINARY_VIEW: RETURN_NOT_OK(StringViews(static_cast<const arrow::BinaryViewArray&>(array), &view)); break;
      case Id::FIXED_SIZE_LIST: RETURN_NOT_OK(FixedLists(array, &view)); break;
      case Id::LIST: RETURN_NOT_OK(Lists<arrow::ListArray>(array, &view)); break;
      case Id::LARGE_LIST: RETURN_NOT_OK(Lists<arrow::LargeListArray>(array, &view)); break;
      default: Numbers(array, &view); break;
    }
    return view;
  }

 private:
  static DType StoredDType(const arrow::DataType& type) {
    switch (type.id()) {
      case arrow::Type::DATE32:
      case arrow::Type::TIME32: return DType::kInt32;
      default: break;
    }
    FileColumn column;
    Describe(type, &column);
    return column.dtype;
  }

  static void Numbers(const arrow::Array& array, ColumnView* view) {
    view->dtype = StoredDType(*array.type());
    if (array.type_id() == arrow::Type::FIXED_SIZE_BINARY) {
      view->unit = static_cast<const arrow::FixedSizeBinaryArray&>(array).byte_width();
    }
    const int64_t row_bytes = view->unit * static_cast<int64_t>(DTypeSize(view->dtype));
    view->values = Memory(array.data()->buffers[1]) + array.offset() * row_bytes;
  }

  // Of a buffer that may be left out where it is empty.
  static const uint8_t* Memory(const std::shared_ptr<arrow::Buffer>& buffer) {
    static constexpr uint8_t kNothing[64] = {};
    return buffer == nullptr || buffer->data() == nullptr ? kNothing : buffer->data();
  }

  arrow::Result<uint8_t*> Make(int64_t bytes) { return MakeMemory(bytes, &block_); }
  // Bits that say nothing.
  arrow::Result<uint8_t*> MakeBits(int64_t rows) {
    ARROW_ASSIGN_OR_RAISE(uint8_t* const bits, Make((rows + 7) / 8));
    std::memset(bits, 0, static_cast<size_t>((rows + 7) / 8));
    return bits;
  }

  arrow::Status Bools(const arrow::BooleanArray& array, ColumnView* view) {
    ARROW_ASSIGN_OR_RAISE(uint8_t* const bytes, Make(array.length()));
    const uint8_t* const bits = Memory(array.values());
    for (int64_t row = 0; row < array.length(); ++row) bytes[row] = ColumnView::Bit(bits, array.offset() + row) ? 1 : 0;
    view->dtype = DType::kBool;
    view->values = bytes;
    return arrow::Status::OK();
  }

  template <typename Decimal>
  arrow::Status Decimals(const arrow::Array& array, ColumnView* view) {
    const int32_t scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
    // Arrow takes a file's word for it, and looks for its power of ten beyond its table.
    if (std::abs(scale) > Decimal::kMaxScale) {
      return arrow::Status::Invalid("a column is of decimals of scale ", scale, ", and the largest of ",
                                    array.type()->name(), " is ", Decimal::kMaxScale);
    }
    const uint8_t* const values = static_cast<const arrow::FixedSizeBinaryArray&>(array).raw_values();
    ARROW_ASSIGN_OR_RAISE(uint8_t* const made, Make(array.length() * static_cast<int64_t>(sizeof(double))));
    for (int64_t row = 0; row < array.length(); ++row) {
      const double value =
          array.IsNull(row) ? 0 : Decimal(values + row * static_cast<int64_t>(sizeof(Decimal))).ToDouble(scale);
      std::memcpy(made + row * static_cast<int64_t>(sizeof value), &value, sizeof value);
    }
    view->dtype = DType::kFloat64;
    view->values = made;
    return arrow::Status::OK();
  }

  // Offsets come from the file as they are, and are not believed.
  template <typename Offset>
  static arrow::Status CheckOffsets(const Offset* offsets, int64_t rows, int64_t limit) {
    bool rise = offsets[0] >= 0;
    for (int64_t row = 0; row < rows; ++row) rise &= offsets[row] <= offsets[row + 1];
    if (rise && offsets[rows] <= limit) return arrow::Status::OK();
    return arrow::Status::Invalid("offsets of a column do not rise from 0 to its ", limit, " values");
  }

  template <typename Array>
  arrow::Status Strings(const arrow::Array& array, ColumnView* view) {
    const auto& strings = static_cast<const Array&>(array);
    const auto& data = strings.value_data();
    RETURN_NOT_OK(CheckOffsets(strings.raw_value_offsets(), array.length(), data == nullptr ? 0 : data->size()));
    SetOffsets(strings.raw_value_offsets(), view);
    view->dtype = DType::kString;
    view->values = Memory(data);
    return arrow::Status::OK();
  }
  static void SetOffsets(const int32_t* offsets, ColumnView* view) {
    view->rows = ColumnView::Rows::kOffsets32;
    view->offsets = offsets;
  }
  static void SetOffsets(const int64_t* offsets, ColumnView* view) {
    view->rows = ColumnView::Rows::kOffsets64;
    view->offsets = offsets;
  }

  arrow::Status StringViews(const arrow::BinaryViewArray& array, ColumnView* view) {
    RETURN_NOT_OK(array.ValidateFull());
    ARROW_ASSIGN_OR_RAISE(uint8_t* const refs, Make(array.length() * static_cast<int64_t>(sizeof(BytesRef))));
    for (int64_t row = 0; row < array.length(); ++row) {
      BytesRef ref;
      if (!array.IsNull(row)) {
        const std::string_view text = array.GetView(row);
        ref = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
      }
      std::memcpy(refs + row * static_cast<int64_t>(sizeof ref), &ref, sizeof ref);
    }
    view->dtype = DType::kString;
    view->rows = ColumnView::Rows::kRefs;
    view->values = refs;
    return arrow::Status::OK();
  }

  arrow::Status FixedLists(const arrow::Array& array, ColumnView* view) {
    const int64_t size = static_cast<const arrow::FixedSizeListType&>(*array.type()).list_size();
    const auto values = static_cast<const arrow::FixedSizeListArray&>(array).values()->Slice(array.offset() * size,
                                                                                             array.length() * size);
    ARROW_ASSIGN_OR_RAISE(const ColumnView child, View(*values));
    view->dtype = child.dtype;
    view->values = child.values;
    view->unit = child.unit * size;
    return Holes(child, array.length(), view, [&](int64_t row) { return row * size; });
  }

  template <typename Array>
  arrow::Status Lists(const arrow::Array& array, ColumnView* view) {
    const auto& lists = static_cast<const Array&>(array);
    const auto* const offsets = lists.raw_value_offsets();
    RETURN_NOT_OK(CheckOffsets(offsets, array.length(), lists.values()->length()));
    ARROW_ASSIGN_OR_RAISE(const ColumnView child, View(*lists.values()));
    SetOffsets(offsets, view);
    view->dtype = child.dtype;
    view->values = child.values;
    view->unit = child.unit;
    return Holes(child, array.length(), view, [&](int64_t row) { return static_cast<int64_t>(offsets[row]); });
  }

  // Marks the rows that hold nulls; row r holds those of `child` from begin(r) to begin(r + 1).
  template <typename Begin>
  arrow::Status Holes(const ColumnView& child, int64_t rows, ColumnView* view, Begin begin) {
    if (child.valid == nullptr && child.holes == nullptr) return arrow::Status::OK();
    uint8_t* holes = nullptr;
    for (int64_t row = 0; row < rows; ++row) {
      if (view->IsNull(row)) continue;
      for (int64_t at = begin(row); at < begin(row + 1); ++at) {
        if (!child.IsNull(at) && !child.HasHole(at)) continue;
        if (holes == nullptr) {
          ARROW_ASSIGN_OR_RAISE(holes, MakeBits(rows));
        }
        holes[row >> 3] = static_cast<uint8_t>(holes[row >> 3] | 1 << (row & 7));
        break;
      }
    }
    view->holes = holes;
    return arrow::Status::OK();
  }

  // Each row's entry of the dictionary.
  arrow::Result<ColumnView> Dictionary(const arrow::DictionaryArray& array) {
    ARROW_ASSIGN_OR_RAISE(const ColumnView entries, View(*array.dictionary()));
    const int64_t rows = array.length();
    ColumnView view;
    view.dtype = entries.dtype;
    if (entries.rows == ColumnView::Rows::kNone) return view;
    const bool strings = entries.dtype == DType::kString;
    view.rows = strings ? ColumnView::Rows::kRefs : ColumnView::Rows::kFixed;
    const size_t bytes = DTypeSize(entries.dtype);  // of a string: of the reference to it
    ARROW_ASSIGN_OR_RAISE(uint8_t* const made, Make(rows * static_cast<int64_t>(bytes)));
    view.values = made;
    uint8_t* valid = nullptr;
    if (array.null_count() > 0 || entries.valid != nullptr) {
      ARROW_ASSIGN_OR_RAISE(valid, MakeBits(rows));
    }
    view.valid = valid;
    const int64_t known = array.dictionary()->length();
    for (int64_t row = 0; row < rows; ++row) {
      uint8_t* const out = made + static_cast<size_t>(row) * bytes;
      std::memset(out, 0, bytes);
      if (array.IsNull(row)) continue;
      const int64_t entry = array.GetValueIndex(row);
      if (entry < 0 || entry >= known) {
        return arrow::Status::Invalid("entry ", entry, " of a dictionary of ", known);
      }
      if (entries.IsNull(entry)) continue;
      const BytesRef found = entries.Row(entry);
      std::memcpy(out, strings ? reinterpret_cast<const uint8_t*>(&found) : found.data, bytes);
      if (valid != nullptr) valid[row >> 3] = static_cast<uint8_t>(valid[row >> 3] | 1 << (row & 7));
    }
    return view;
  }

  ColumnsBlock& block_;
};

size_t BytesOf(const arrow::ArrayData& data) {
  size_t bytes = 0;
  for (const auto& buffer : data.buffers) bytes += buffer == nullptr ? 0 : static_cast<size_t>(buffer->size());
  for (const auto& child : data.child_data) bytes += BytesOf(*child);
  return bytes + (data.dictionary == nullptr ? 0 : BytesOf(*data.dictionary));
}

}  // namespace

arrow::MemoryPool* ArrowMemory() {
  static BoundedPool pool;
  return &pool;
}

arrow::Result<uint8_t*> MakeMemory(int64_t bytes, ColumnsBlock* block) {
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> made, arrow::AllocateBuffer(bytes, ArrowMemory()));
  block->bytes += static_cast<size_t>(bytes);
  uint8_t* const memory = made->mutable_data();
  block->keeps.push_back(std::move(made));
  return memory;
}

std::vector<SchemaColumn> ColumnsOf(const arrow::Schema& schema) {
  std::vector<SchemaColumn> columns;
  AddFields(schema.fields(), "", {}, &columns);
  return columns;
}

arrow::Status AddColumn(const std::shared_ptr<arrow::Array>& array, std::span<const int> path_within,
                        ColumnsBlock* block) {
  std::shared_ptr<arrow::Array> column = array;
  for (const int field : path_within) {
    ARROW_ASSIGN_OR_RAISE(column,
                          static_cast<const arrow::StructArray&>(*column).GetFlattenedField(field, ArrowMemory()));
  }
  RETURN_NOT_OK(column->Validate());
  ARROW_ASSIGN_OR_RAISE(const ColumnView view, Viewer(block).View(*column));
  block->columns.push_back(view);
  block->bytes += BytesOf(*column->data());
  block->keeps.push_back(std::move(column));
  return arrow::Status::OK();
}

}  // namespace headrace::side
