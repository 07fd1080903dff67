// Reading protocol buffers' wire format without generated code: bounds-checked, no allocation.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace headrace::side {

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A field as it stands: its number, type, and value (varint, or the bytes of the others).
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;
  std::span<const uint8_t> bytes;
};

class WireReader {
 public:
  explicit WireReader(std::span<const uint8_t> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // nullopt at the end, or where the bytes are not a message: see broken().
  std::optional<WireField> Next() {
    if (at_ == end_) return std::nullopt;
    WireField field;
    const uint64_t key = Varint();
    field.number = static_cast<uint32_t>(key >> 3);
    field.type = static_cast<WireType>(key & 7);
    switch (field.type) {
      case WireType::kVarint: field.varint = Varint(); break;
      case WireType::kFixed64: field.bytes = Bytes(8); break;
      case WireType::kFixed32: field.bytes = Bytes(4); break;
      case WireType::kBytes: field.bytes = Bytes(Varint()); break;
      default: broken_ = true;  // groups, and types 6 and 7
    }
    if (broken_ || key >> 32 != 0 || field.number == 0) {
      broken_ = true;
      return std::nullopt;
    }
    return field;
  }

  // A varint outside a field (packed lists). 0 and broken() if there is none.
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const uint8_t byte = *at_++;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    at_ = end_;
    return 0;
  }

  bool AtEnd() const { return at_ == end_; }
  bool broken() const { return broken_; }

 private:
  std::span<const uint8_t> Bytes(uint64_t count) {
    if (count > static_cast<uint64_t>(end_ - at_)) {
      broken_ = true;
      at_ = end_;
      return {};
    }
    const std::span<const uint8_t> bytes(at_, static_cast<size_t>(count));
    at_ += count;
    return bytes;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  bool broken_ = false;
};

}  // namespace headrace::side
