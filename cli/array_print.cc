#include "cli/array_print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>

namespace headrace::cli {
namespace {

template <typename T>
T Load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

double Bfloat16ToDouble(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// The shortest decimal text that reads back as the same value of the tensor's own type.
std::string Shortest(DType dtype, double value, std::chars_format format) {
  char text[400];
  const auto end = dtype == DType::kFloat64
                       ? std::to_chars(text, text + sizeof text, value, format).ptr
                       : std::to_chars(text, text + sizeof text, static_cast<float>(value), format).ptr;
  return std::string(text, end);
}

constexpr int kPrecision = 8;  // numpy's: digits after the point

std::string Fixed(DType dtype, double value) {
  std::string text = Shortest(dtype, value, std::chars_format::fixed);
  const size_t point = text.find('.');
  if (point == std::string::npos) return text + ".";
  if (text.size() - point - 1 > kPrecision) {
    char rounded[400];
    text.assign(rounded,
                std::to_chars(rounded, rounded + sizeof rounded, value, std::chars_format::fixed, kPrecision).ptr);
  }
  while (text.back() == '0') text.pop_back();
  return text;
}

std::string Scientific(DType dtype, double value) {
  std::string text = Shortest(dtype, value, std::chars_format::scientific);
  const size_t point = text.find('.');
  if (point == std::string::npos || text.find('e') - point - 1 <= kPrecision) return text;
  char rounded[64];
  const auto end =
      std::to_chars(rounded, rounded + sizeof rounded, value, std::chars_format::scientific, kPrecision).ptr;
  return std::string(rounded, end);
}

// numpy's choice between 1234.5 and 1.2345e+03 looks at all values that are shown.
bool NeedsExponent(const std::vector<double>& values) {
  double largest = 0;
  double smallest = INFINITY;
  for (double value : values) {
    const double magnitude = std::fabs(value);
    if (!std::isfinite(value) || magnitude == 0) continue;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  return largest > 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
}

std::string FloatText(DType dtype, double value, bool exponent) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return exponent ? Scientific(dtype, value) : Fixed(dtype, value);
}

// "1e-01" to "1.0000e-01": as many digits in all, as numpy does.
void EqualMantissas(std::vector<std::string>* cells) {
  size_t digits = 0;
  const auto fraction = [](const std::string& cell) {
    const size_t point = cell.find('.');
    return point == std::string::npos ? 0 : cell.find('e') - point - 1;
  };
  for (const std::string& cell : *cells) digits = std::max(digits, fraction(cell));
  for (std::string& cell : *cells) {
    const size_t exponent = cell.find('e');
    if (exponent == std::string::npos) continue;  // nan, inf
    const std::string point = cell.find('.') == std::string::npos ? "." : "";
    cell.insert(exponent, point + std::string(digits - fraction(cell), '0'));
  }
}

// Pads to one width with the points in one column, as numpy does; what has no point stands at the right.
void Align(std::vector<std::string>* cells) {
  size_t left = 0;
  size_t right = 0;
  for (const std::string& cell : *cells) {
    const size_t point = cell.find('.');
    if (point == std::string::npos) continue;
    left = std::max(left, point);
    right = std::max(right, cell.size() - point);
  }
  for (const std::string& cell : *cells) left = std::max(left, cell.size() > right ? cell.size() - right : 0);
  for (std::string& cell : *cells) {
    const size_t point = cell.find('.');
    if (point != std::string::npos) cell += std::string(right - (cell.size() - point), ' ');
    cell.insert(0, left + right - cell.size(), ' ');
  }
}

std::string IntegerText(const TensorView& tensor, int64_t i) {
  if (tensor.dtype == DType::kBool) return ValueAsInteger(tensor, i) != 0 ? "True" : "False";
  if (tensor.dtype == DType::kUint64) return std::to_string(Load<uint64_t>(tensor.data, i));
  return std::to_string(ValueAsInteger(tensor, i));
}

constexpr size_t kMostBytes = 60;   // of a string that is shown whole
constexpr size_t kShownBytes = 40;  // of a longer one

// As Python writes bytes.
std::string BytesLiteral(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const char quote = has_single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
  const bool elide = bytes.size() > kMostBytes;
  if (elide) bytes = bytes.substr(0, kShownBytes);
  std::string text = std::string("b") + quote;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      text += "\\t";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (byte < ' ' || byte > '~') {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      if (c == quote || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + quote + (elide ? "..." : "");
}

std::vector<std::string> Cells(const TensorView& tensor, const std::vector<int64_t>& shown) {
  std::vector<std::string> cells;
  if (tensor.dtype == DType::kString) {
    for (int64_t i : shown) cells.push_back(BytesLiteral(StringAt(tensor, i)));
    return cells;
  }
  if (IsFloating(tensor.dtype)) {
    std::vector<double> values;
    for (int64_t i : shown) values.push_back(ValueAsDouble(tensor, i));
    const bool exponent = NeedsExponent(values);
    for (double value : values) cells.push_back(FloatText(tensor.dtype, value, exponent));
    if (exponent) EqualMantissas(&cells);
  } else {
    for (int64_t i : shown) cells.push_back(IntegerText(tensor, i));
  }
  Align(&cells);
  return cells;
}

}  // namespace

int64_t TensorView::count() const {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

int64_t ValueAsInteger(const TensorView& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::kBool:
    case DType::kUint8: return Load<uint8_t>(tensor.data, i);
    case DType::kInt8: return Load<int8_t>(tensor.data, i);
    case DType::kInt16: return Load<int16_t>(tensor.data, i);
    case DType::kUint16: return Load<uint16_t>(tensor.data, i);
    case DType::kInt32: return Load<int32_t>(tensor.data, i);
    case DType::kUint32: return Load<uint32_t>(tensor.data, i);
    case DType::kInt64: return Load<int64_t>(tensor.data, i);
    case DType::kUint64: return static_cast<int64_t>(Load<uint64_t>(tensor.data, i));
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64: break;
    case DType::kString: return 0;  // the header requires a number
  }
  return static_cast<int64_t>(ValueAsDouble(tensor, i));
}

double ValueAsDouble(const TensorView& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::kFloat16: return HalfToDouble(Load<uint16_t>(tensor.data, i));
    case DType::kBfloat16: return Bfloat16ToDouble(Load<uint16_t>(tensor.data, i));
    case DType::kFloat32: return Load<float>(tensor.data, i);
    case DType::kFloat64: return Load<double>(tensor.data, i);
    default: return static_cast<double>(ValueAsInteger(tensor, i));
  }
}

std::string_view StringAt(const TensorView& tensor, int64_t i) {
  const auto* const begin = static_cast<const char*>(tensor.data) + tensor.row_splits[i];
  return {begin, static_cast<size_t>(tensor.row_splits[i + 1] - tensor.row_splits[i])};
}

std::string ValueText(const TensorView& tensor, int64_t i) {
  if (!IsFloating(tensor.dtype)) return IntegerText(tensor, i);
  const double value = ValueAsDouble(tensor, i);
  const double magnitude = std::fabs(value);
  if (!std::isfinite(value)) return FloatText(tensor.dtype, value, false);
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16)) {
    return Shortest(tensor.dtype, value, std::chars_format::scientific);
  }
  const std::string text = Shortest(tensor.dtype, value, std::chars_format::fixed);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string PrintArray(const TensorView& tensor, const PrintLimits& limits) {
  const bool elide = tensor.count() > limits.threshold;
  const size_t rank = tensor.shape.size();
  std::vector<int64_t> shown;
  // Walks the shown values twice: first to collect them (widths depend on all), then to write them.
  std::vector<std::string> cells;
  size_t next_cell = 0;
  std::string text;
  const std::function<void(size_t, int64_t, bool)> walk = [&](size_t dim, int64_t offset, bool write) {
    if (dim == rank) {
      if (write) {
        text += cells[next_cell++];
      } else {
        shown.push_back(offset);
      }
      return;
    }
    int64_t stride = 1;
    for (size_t d = dim + 1; d < rank; ++d) stride *= tensor.shape[d];
    const int64_t edge = dim + 1 == rank ? limits.edge_values : limits.edge_items;
    const int64_t size = tensor.shape[dim];
    if (write) text += "[";
    for (int64_t i = 0; i < size; ++i) {
      if (write && i > 0) text += " ";
      if (elide && size > 2 * edge && i == edge) {
        if (write) text += "... ";
        i = size - edge;
      }
      walk(dim + 1, offset + i * stride, write);
    }
    if (write) text += "]";
  };
  if (tensor.count() == 0) return "[]";
  walk(0, 0, false);
  cells = Cells(tensor, shown);
  walk(0, 0, true);
  return text;
}

}  // namespace headrace::cli
