#include "sidecar/collective/wire.h"

#include <type_traits>

namespace headrace::side::wire {
namespace {

constexpr uint32_t kMagic = 0x50415248;  // "HRAP"
constexpr size_t kLengthBytes = 4;

class Writer {
 public:
  void Field(uint64_t value) { Number(value, 8); }
  void Field(int64_t value) { Number(static_cast<uint64_t>(value), 8); }
  void Field(uint32_t value) { Number(value, 4); }
  void Field(uint16_t value) { Number(value, 2); }
  void Field(bool value) { Number(value ? 1 : 0, 1); }
  void Field(const std::string& text) {
    const std::string_view cut = std::string_view(text).substr(0, kMaxTextBytes);
    Field(static_cast<uint16_t>(cut.size()));
    bytes_ += cut;
  }
  std::string Frame(uint8_t kind) && {
    Writer head;
    head.Field(static_cast<uint32_t>(bytes_.size() + 1));
    head.Number(kind, 1);
    return std::move(head.bytes_) + bytes_;
  }

 private:
  void Number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  std::string bytes_;
};

// Reads past the end read as zero, and spoil the whole.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  void Field(uint64_t& value) { value = Number(8); }
  void Field(int64_t& value) {
    value = static_cast<int64_t>(Number(8));
    good_ = good_ && value >= 0;  // all of ours are counts
  }
  void Field(uint32_t& value) { value = static_cast<uint32_t>(Number(4)); }
  void Field(uint16_t& value) { value = static_cast<uint16_t>(Number(2)); }
  void Field(bool& value) {
    const uint64_t number = Number(1);
    good_ = good_ && number <= 1;
    value = number == 1;
  }
  void Field(std::string& text) {
    const size_t size = Number(2);
    good_ = good_ && size <= kMaxTextBytes && size <= bytes_.size();
    if (!good_) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  uint64_t Number(size_t size) {
    good_ = good_ && size <= bytes_.size();
    if (!good_) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    bytes_.remove_prefix(size);
    return value;
  }
  std::string_view bytes_;
  bool good_ = true;
};

// Each kind's fields in their order, for reading and writing alike.
template <typename Archive, typename Fields>
void Visit(Archive& archive, Fields& fields) {
  using Kind = std::remove_const_t<Fields>;
  const auto all = [&](auto&... field) { (archive.Field(field), ...); };
  if constexpr (std::is_same_v<Kind, Hello>) {
    all(fields.num_workers, fields.worker, fields.was_complete, fields.run_id, fields.plan_hash, fields.host);
  } else if constexpr (std::is_same_v<Kind, Welcome>) {
    all(fields.host);
  } else if constexpr (std::is_same_v<Kind, Refusal>) {
    all(fields.why);
  } else if constexpr (std::is_same_v<Kind, Final>) {
    all(fields.epoch, fields.steps);
  } else if constexpr (std::is_same_v<Kind, Report>) {
    all(fields.epoch, fields.steps, fields.ended, fields.leaving, fields.waits_until);
  } else if constexpr (std::is_same_v<Kind, News>) {
    all(fields.complete, fields.leaving, fields.watched_until, fields.floor, fields.stuck_from, fields.why);
  } else if constexpr (std::is_same_v<Kind, Known>) {
    all(fields.epoch, fields.steps, fields.closed);
  } else if constexpr (std::is_same_v<Kind, Failure>) {
    all(fields.status);
  } else if constexpr (std::is_same_v<Kind, Ready>) {
    all(fields.round, fields.epoch, fields.delivery, fields.seed);
  } else if constexpr (std::is_same_v<Kind, Go>) {
    all(fields.round, fields.epoch, fields.delivery, fields.bytes, fields.ended, fields.id);
  } else {
    static_assert(std::is_same_v<Kind, Over>);
    all(fields.status);
  }
}

Status Malformed(const std::string& what) { return Corrupt("malformed message between loaders: " + what); }

template <typename Kind>
Result<std::optional<Message>> Read(Reader reader) {
  Kind fields;
  if constexpr (std::is_same_v<Kind, Hello>) {
    uint32_t magic = 0;
    reader.Field(magic);
    reader.Field(fields.version);
    if (!reader.good() || magic != kMagic) return Malformed("not a loader's greeting");
    if (fields.version != kVersion) return std::optional<Message>(std::move(fields));
  }
  Visit(reader, fields);
  if (!reader.good()) return Malformed("a field is out of range, or cut off");
  if (!reader.at_end()) return Malformed("bytes after the last field");
  return std::optional<Message>(std::move(fields));
}

template <size_t Index = 0>
Result<std::optional<Message>> ReadKind(uint8_t kind, Reader reader) {
  if constexpr (Index == std::variant_size_v<Message>) {
    return Malformed("unknown kind " + std::to_string(kind));
  } else {
    if (kind == Index + 1) return Read<std::variant_alternative_t<Index, Message>>(reader);
    return ReadKind<Index + 1>(kind, reader);
  }
}

}  // namespace

std::string Encode(const Message& message) {
  Writer writer;
  std::visit(
      [&](const auto& fields) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(fields)>, Hello>) {
          writer.Field(kMagic);
          writer.Field(fields.version);
        }
        Visit(writer, fields);
      },
      message);
  return std::move(writer).Frame(static_cast<uint8_t>(message.index() + 1));
}

Result<std::optional<Message>> Decode(std::string_view* bytes) {
  Reader head(*bytes);
  uint32_t length = 0;
  head.Field(length);
  if (!head.good()) return std::optional<Message>();
  if (length == 0 || length > kMaxFrameBytes) return Malformed("a frame of " + std::to_string(length) + " bytes");
  if (bytes->size() < kLengthBytes + length) return std::optional<Message>();
  const std::string_view frame = bytes->substr(kLengthBytes, length);
  bytes->remove_prefix(kLengthBytes + length);
  return ReadKind(static_cast<uint8_t>(frame[0]), Reader(frame.substr(1)));
}

}  // namespace headrace::side::wire
