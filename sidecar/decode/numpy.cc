#include "sidecar/decode/numpy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace headrace::side {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLeastBytes = 12;  // of a header: magic, version, length, and some of the dict

// What stands after 'key': in the dict; empty if there is none.
std::string_view ValueOf(std::string_view dict, const std::string& key) {
  const size_t at = dict.find("'" + key + "':");
  if (at == std::string_view::npos) return {};
  std::string_view value = dict.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

std::optional<NumPyHeader> ParseDict(std::string_view dict) {
  NumPyHeader header;
  const std::string_view descr = ValueOf(dict, "descr");
  const size_t descr_end = descr.size() > 1 && descr[0] == '\'' ? descr.find('\'', 1) : std::string_view::npos;
  if (descr_end == std::string_view::npos) return {};
  header.descr = descr.substr(1, descr_end - 1);
  const std::string_view order = ValueOf(dict, "fortran_order");
  header.fortran_order = order.starts_with("True");
  if (!header.fortran_order && !order.starts_with("False")) return {};
  std::string_view shape = ValueOf(dict, "shape");
  if (!shape.starts_with("(")) return {};
  shape.remove_prefix(1);
  while (true) {
    shape.remove_prefix(std::min(shape.find_first_not_of(", "), shape.size()));
    if (shape.starts_with(")")) return header;
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), dim);
    if (error != std::errc() || dim < 0) return {};
    header.shape.push_back(dim);
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
  }
}

}  // namespace

Result<NumPyHeader> ReadNumPyHeader(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < kLeastBytes) return Corrupt("not a .npy file");
  const size_t length_bytes = bytes[6] == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  const size_t begin = 8 + length_bytes + length;
  if (begin > text.size()) return Corrupt("a .npy header of " + std::to_string(length) + " bytes");
  auto header = ParseDict(text.substr(8 + length_bytes, length));
  if (!header) return Corrupt("a .npy header that cannot be read");
  header->bytes = begin;
  return *std::move(header);
}

std::string NumPyName(DType dtype) {
  const std::string size = std::to_string(DTypeSize(dtype));
  switch (dtype) {
    case DType::kBool: return "|b1";
    case DType::kInt8: return "|i1";
    case DType::kUint8: return "|u1";
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64: return "<i" + size;
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64: return "<u" + size;
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64: return "<f" + size;
    default: return "";
  }
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t dim : shape) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return "[" + text + "]";
}

}  // namespace headrace::side
