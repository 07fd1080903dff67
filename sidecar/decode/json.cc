// JSON texts, by simdjson's on-demand interface: one pass through each text, along a tree of the features' paths, in
// whatever order its fields stand. What no feature asks for is passed over without being parsed.
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "common/spec/text_formats.h"
#include "sidecar/core/arena.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/decode/convert.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/default_row.h"
#include "sidecar/decode/number_text.h"

namespace headrace::side {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;
using simdjson::SUCCESS;

static_assert(BytesBlock::kPadding >= simdjson::SIMDJSON_PADDING);

// A feature, and what of it is found in the record at hand.
struct Leaf {
  Feature feature;
  std::string path;
  size_t component = 0;
  size_t value_bytes = 0;
  size_t unit = 1;  // values of one entry of the first dimension
  size_t row_bytes = 0;
  bool ragged = false;
  std::vector<uint8_t> default_row;  // empty: the feature is required

  bool seen = false;
  bool null = false;
  uint8_t* next = nullptr;  // where its next value goes
};

// A place in a text: a feature's, or one on the way to some.
struct Node {
  std::string name;                // in the object around it
  std::optional<uint64_t> number;  // in the array around it, if the name is one
  std::optional<size_t> leaf;
  std::vector<Node> children;
};

Node* ChildOf(Node* node, const std::string& name) {
  const auto it =
      std::find_if(node->children.begin(), node->children.end(), [&](const Node& child) { return child.name == name; });
  if (it != node->children.end()) return &*it;
  Node& child = node->children.emplace_back();
  child.name = name;
  uint64_t number;
  if (ParseNumber(name, &number) && std::to_string(number) == name) child.number = number;
  return &child;
}

std::string_view WithoutSpaces(std::string_view token) {
  const size_t last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

class JsonDecoder : public Decoder {
 public:
  explicit JsonDecoder(const std::vector<Feature>& features) {
    for (const Feature& feature : features) {
      Leaf leaf{feature, JsonPointerOf(feature)};
      leaf.component = leaves_.size();
      leaf.value_bytes = DTypeSize(feature.dtype);
      for (size_t d = 1; d < feature.shape.size(); ++d) leaf.unit *= static_cast<size_t>(feature.shape[d]);
      leaf.ragged = !feature.shape.empty() && feature.shape[0] < 0;
      const size_t entries = feature.shape.empty() || leaf.ragged ? 1 : static_cast<size_t>(feature.shape[0]);
      leaf.row_bytes = leaf.ragged ? sizeof(BytesRef) : entries * leaf.unit * leaf.value_bytes;
      leaf.default_row = leaf.ragged ? std::vector<uint8_t>(sizeof(BytesRef)) : DefaultRow(feature);
      Node* node = &root_;
      for (const std::string& word : JsonPointerWords(leaf.path)) node = ChildOf(node, word);
      node->leaf = leaves_.size();
      leaves_.push_back(std::move(leaf));
    }
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    made_.Reset();
    for (size_t row = 0; row < records.size(); ++row) {
      for (Leaf& leaf : leaves_) {
        leaf.seen = leaf.null = false;
        leaf.next = columns[leaf.component] + row * leaf.row_bytes;
      }
      record_ = &records[row];
      if (!DecodeRecord()) return std::move(status_);
    }
    return {};
  }

 private:
  // All of these return false with status_ set.

  bool DecodeRecord() {
    const std::span<const uint8_t> text = record_->bytes();
    end_ = reinterpret_cast<const char*>(text.data() + text.size());
    // Rounded up, so that a text that is a little longer than all before it costs no allocation.
    if (text.size() > parser_.capacity()) {
      const error_code error = parser_.allocate(std::bit_ceil(std::max(text.size(), kLeastCapacity)));
      if (error != SUCCESS) return Broken(error);
    }
    ondemand::document document;
    const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + BytesBlock::kPadding);
    if (const error_code error = parser_.iterate(padded).get(document); error != SUCCESS) return Broken(error);
    ondemand::json_type type;
    if (const error_code error = document.type().get(type); error != SUCCESS) return Broken(error);
    if (type != ondemand::json_type::object && type != ondemand::json_type::array) {
      return Fail("is no JSON object or array; spec.source.files.paths may name files of another kind");
    }
    if (!Walk(root_, type, document)) return false;
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      return Fail("holds more than one JSON text; write each on a line of its own");
    }
    for (const Leaf& leaf : leaves_) {
      if (!leaf.seen && !FillIn(leaf)) return false;
    }
    return true;
  }

  // `value` is an ondemand::document or ::value of that type.
  template <typename T>
  bool Walk(Node& node, ondemand::json_type type, T& value) {
    if (type == ondemand::json_type::object) {
      ondemand::object object;
      if (const error_code error = value.get_object().get(object); error != SUCCESS) return Broken(error);
      return WalkObject(node, object);
    }
    if (type == ondemand::json_type::array) {
      ondemand::array array;
      if (const error_code error = value.get_array().get(array); error != SUCCESS) return Broken(error);
      return WalkArray(node, array);
    }
    return true;  // what lies deeper is missing
  }

  bool WalkObject(Node& node, ondemand::object& object) {
    size_t expected = 0;  // writers keep one order of fields: try the one after the last found first
    for (auto result : object) {
      ondemand::field field;
      if (const error_code error = std::move(result).get(field); error != SUCCESS) return Broken(error);
      Node* const child = Find(node, field, expected);
      if (child == nullptr) continue;
      expected = static_cast<size_t>(child - node.children.data()) + 1;
      if (!Take(*child, field.value())) return false;
    }
    return true;
  }

  bool WalkArray(Node& node, ondemand::array& array) {
    uint64_t number = 0;
    for (auto result : array) {
      ondemand::value value;
      if (const error_code error = std::move(result).get(value); error != SUCCESS) return Broken(error);
      for (Node& child : node.children) {
        if (child.number == number && !Take(child, value)) return false;
      }
      ++number;
    }
    return true;
  }

  bool Take(Node& node, ondemand::value value) {
    ondemand::json_type type;
    if (!ReadType(value, &type)) return false;
    if (!node.leaf) return Walk(node, type, value);
    Leaf& leaf = leaves_[*node.leaf];
    leaf.null = type == ondemand::json_type::null;
    leaf.seen = !leaf.null;  // the last, where a name stands twice
    if (leaf.null) return true;
    if (leaf.feature.dtype == DType::kString) return TakeString(leaf, type, value);
    if (leaf.feature.shape.empty()) return TakeNumber(leaf, type, value, leaf.next);
    return TakeArray(leaf, type, value);
  }

  Node* Find(Node& node, ondemand::field& field, size_t expected) {
    std::vector<Node>& children = node.children;
    const char* const key = field.key().raw();
    const auto is = [&](const Node& child) {
      const size_t size = child.name.size();
      return size < static_cast<size_t>(end_ - key) && std::memcmp(key, child.name.data(), size) == 0 &&
             key[size] == '"';
    };
    if (expected < children.size() && is(children[expected])) return &children[expected];
    for (Node& child : children) {
      if (is(child)) return &child;
    }
    // Python's writer, for one, escapes all that is not ASCII.
    for (const char* c = key; *c != '"'; ++c) {
      if (*c == '\\') return FindEscaped(node, field);
    }
    return nullptr;
  }

  static Node* FindEscaped(Node& node, ondemand::field& field) {
    std::string_view key;
    if (field.unescaped_key().get(key) != SUCCESS) return nullptr;  // going on finds what is wrong
    for (Node& child : node.children) {
      if (child.name == key) return &child;
    }
    return nullptr;
  }

  // Without the spaces after it. Where a text ends early, this is its end, whose length simdjson does not know.
  std::string_view Token(ondemand::value& value) const {
    const std::string_view token = value.raw_json_token();
    const size_t left = token.data() < end_ ? static_cast<size_t>(end_ - token.data()) : 0;
    return WithoutSpaces({token.data(), std::min(token.size(), left)});
  }

  bool TakeString(Leaf& leaf, ondemand::json_type type, ondemand::value& value) {
    if (type != ondemand::json_type::string) return Refuse(leaf, type, value);
    std::string_view text = Token(value);
    text = text.substr(1, text.size() - 2);
    if (std::memchr(text.data(), '\\', text.size()) != nullptr) {
      ondemand::raw_json_string raw;
      if (const error_code error = value.get_raw_json_string().get(raw); error != SUCCESS) return Broken(error);
      uint8_t* out = made_.Take(text.size() + simdjson::SIMDJSON_PADDING);
      if (const error_code error = parser_.unescape(raw, out).get(text); error != SUCCESS) return Broken(error);
    }
    const BytesRef reference{reinterpret_cast<const uint8_t*>(text.data()), text.size()};
    std::memcpy(leaf.next, &reference, sizeof reference);
    return true;
  }

  bool TakeArray(Leaf& leaf, ondemand::json_type type, ondemand::value& value) {
    if (type != ondemand::json_type::array) return Refuse(leaf, type, value);
    ondemand::array array;
    if (const error_code error = value.get_array().get(array); error != SUCCESS) return Broken(error);
    uint8_t* const row = leaf.next;
    uint8_t* values = row;
    if (leaf.ragged) {
      size_t entries;
      if (const error_code error = array.count_elements().get(entries); error != SUCCESS) return Broken(error);
      const BytesRef reference{values = made_.Take(entries * leaf.unit * leaf.value_bytes),
                               entries * leaf.unit * leaf.value_bytes};
      std::memcpy(row, &reference, sizeof reference);
    } else if (leaf.feature.padding) {
      std::memcpy(row, leaf.default_row.data(), leaf.row_bytes);  // what is left over stays
    }
    return TakeEntries(leaf, array, 0, &values);
  }

  // The entries of dimension `d`, to *out and on.
  bool TakeEntries(Leaf& leaf, ondemand::array& array, size_t d, uint8_t** out) {
    const std::vector<int64_t>& shape = leaf.feature.shape;
    int64_t entries = 0;
    for (auto result : array) {
      ondemand::value value;
      if (const error_code error = std::move(result).get(value); error != SUCCESS) return Broken(error);
      if (entries++ == shape[d]) break;
      ondemand::json_type type;
      if (!ReadType(value, &type)) return false;
      if (d + 1 == shape.size()) {
        if (!TakeNumber(leaf, type, value, *out)) return false;
        *out += leaf.value_bytes;
      } else {
        if (type != ondemand::json_type::array) return Refuse(leaf, type, value);
        ondemand::array inner;
        if (const error_code error = value.get_array().get(inner); error != SUCCESS) return Broken(error);
        if (!TakeEntries(leaf, inner, d + 1, out)) return false;
      }
    }
    const bool varies = d == 0 && (leaf.ragged || leaf.feature.padding);
    if (shape[d] < 0 || entries == shape[d] || (varies && entries < shape[d])) return true;
    const std::string found = entries > shape[d] ? "more" : std::to_string(entries);
    return Fail(About(leaf) + "holds " + found + " entries in dimension " + std::to_string(d) +
                ", and its shape takes " + std::to_string(shape[d]) + "; correct the data, or its shape" +
                (varies ? " in paddedShapes" : ""));
  }

  bool TakeNumber(Leaf& leaf, ondemand::json_type type, ondemand::value& value, uint8_t* out) {
    const DType dtype = leaf.feature.dtype;
    if (IsFloat(dtype)) {
      double number;
      if (value.get_double().get(number) != SUCCESS && !ReadNotFinite(Token(value), &number)) {
        return Refuse(leaf, type, value);
      }
      StoreAs(dtype, number, out);
      return true;
    }
    if (dtype == DType::kBool && type == ondemand::json_type::boolean) {
      bool truth;
      if (const error_code error = value.get_bool().get(truth); error != SUCCESS) return Broken(error);
      *out = truth ? 1 : 0;
      return true;
    }
    if (dtype == DType::kUint64) {
      uint64_t number;
      if (value.get_uint64().get(number) != SUCCESS) return Refuse(leaf, type, value);
      std::memcpy(out, &number, sizeof number);
      return true;
    }
    int64_t number;
    if (value.get_int64().get(number) != SUCCESS || !Fits(dtype, number)) return Refuse(leaf, type, value);
    StoreAs(dtype, number, out);
    return true;
  }

  bool ReadType(ondemand::value& value, ondemand::json_type* type) {
    const error_code error = value.type().get(*type);
    if (error == SUCCESS) return true;
    double number;
    *type = ondemand::json_type::number;
    return ReadNotFinite(Token(value), &number) || Broken(error);
  }

  // Not JSON, but what Python's writer makes of such floats.
  static bool ReadNotFinite(std::string_view token, double* number) {
    if (token == "NaN") *number = std::numeric_limits<double>::quiet_NaN();
    if (token == "Infinity") *number = std::numeric_limits<double>::infinity();
    if (token == "-Infinity") *number = -std::numeric_limits<double>::infinity();
    return token == "NaN" || token == "Infinity" || token == "-Infinity";
  }

  bool FillIn(const Leaf& leaf) {
    if (leaf.default_row.empty()) {
      return Fail(About(leaf) + (leaf.null ? "is null" : "is missing") +
                  (leaf.feature.dtype == DType::kString ? "; correct its path, or the data"
                                                        : "; correct its path, or give it a default"));
    }
    std::memcpy(leaf.next, leaf.default_row.data(), leaf.default_row.size());
    return true;
  }

  static std::string About(const Leaf& leaf) { return "feature \"" + leaf.feature.name + "\" at " + leaf.path + " "; }
  bool Refuse(const Leaf& leaf, ondemand::json_type type, ondemand::value& value) {
    const std::vector<int64_t>& shape = leaf.feature.shape;
    const std::string token = type == ondemand::json_type::object  ? "an object"
                              : type == ondemand::json_type::array ? "an array"
                                                                   : ShownText(Token(value));
    std::string wanted(DTypeName(leaf.feature.dtype));
    if (!shape.empty()) wanted += " in " + std::to_string(shape.size()) + " dimensions of arrays";
    return Fail(About(leaf) + "holds " + token + ", which is no " + wanted +
                "; correct the data, or its dtype and shape in spec.features");
  }
  bool Broken(error_code error) {
    return Fail("is not JSON (" + std::string(simdjson::error_message(error)) +
                "); correct the line, or take the file out of spec.source.files.paths");
  }
  bool Fail(const std::string& what) {
    status_ = Corrupt(record_->Place() + ": " + what);
    return false;
  }

  static constexpr size_t kLeastCapacity = 16 << 10;

  std::vector<Leaf> leaves_;
  Node root_;
  ondemand::parser parser_;
  Arena made_;  // strings without their escapes, and ragged values
  const Record* record_ = nullptr;
  const char* end_ = nullptr;  // of its text
  Status status_;
};

}  // namespace

std::unique_ptr<Decoder> MakeJsonDecoder(const std::vector<Feature>& features) {
  return std::make_unique<JsonDecoder>(features);
}

}  // namespace headrace::side
