#include "sidecar/decode/example_shape.h"

#include <algorithm>
#include <cstring>

#include "sidecar/decode/wire.h"

namespace headrace::side {
namespace {

// The only field of `message`, if that is a string of bytes with that number.
std::optional<std::span<const uint8_t>> OnlyField(std::span<const uint8_t> message, uint32_t number) {
  WireReader reader(message);
  const auto field = reader.Next();
  if (!field || field->number != number || field->type != WireType::kBytes || !reader.AtEnd()) return std::nullopt;
  return field->bytes;
}

}  // namespace

std::optional<ExampleShape> ExampleShape::Of(std::span<const uint8_t> message,
                                             const std::vector<std::string_view>& names) {
  ExampleShape shape;
  shape.size_ = message.size();
  const auto features = OnlyField(message, 1);
  if (!features) return std::nullopt;
  size_t end = 0;  // of the last values
  const auto leave_out = [&](std::span<const uint8_t> values) {
    const auto begin = static_cast<size_t>(values.data() - message.data());
    shape.between_.push_back({end, begin - end});
    end = begin + values.size();
    return begin;
  };
  std::vector<bool> seen(names.size());
  WireReader map(*features);
  while (const auto entry = map.Next()) {
    if (entry->number != 1 || entry->type != WireType::kBytes) return std::nullopt;
    WireReader pair(entry->bytes);
    const auto key = pair.Next();
    const auto value = pair.Next();
    if (!key || key->number != 1 || key->type != WireType::kBytes) return std::nullopt;
    if (!value || value->number != 2 || value->type != WireType::kBytes || !pair.AtEnd()) return std::nullopt;
    const std::string_view name(reinterpret_cast<const char*>(key->bytes.data()), key->bytes.size());
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      leave_out(value->bytes);
      continue;
    }
    Values values;
    values.feature = static_cast<size_t>(found - names.begin());
    if (seen[values.feature]) return std::nullopt;
    seen[values.feature] = true;
    WireReader feature(value->bytes);
    const auto list = feature.Next();
    if (!list || list->number < 1 || list->number > 3 || list->type != WireType::kBytes || !feature.AtEnd()) {
      return std::nullopt;
    }
    values.kind = list->number == 1 ? Kind::kBytes : list->number == 2 ? Kind::kFloats : Kind::kInts;
    const auto packed = OnlyField(list->bytes, 1);
    if (!packed) return std::nullopt;
    values.begin = leave_out(*packed);
    values.size = packed->size();
    shape.values_.push_back(values);
  }
  if (map.broken()) return std::nullopt;
  shape.between_.push_back({end, message.size() - end});
  for (const Part& part : shape.between_) {
    shape.bytes_.insert(shape.bytes_.end(), message.begin() + static_cast<ptrdiff_t>(part.begin),
                        message.begin() + static_cast<ptrdiff_t>(part.begin + part.size));
  }
  return shape;
}

bool ExampleShape::Fits(std::span<const uint8_t> message) const {
  if (message.size() != size_) return false;
  const uint8_t* bytes = bytes_.data();
  for (const Part& part : between_) {
    if (std::memcmp(message.data() + part.begin, bytes, part.size) != 0) return false;
    bytes += part.size;
  }
  return true;
}

}  // namespace headrace::side
