// Samples of a tar archive as rows: each feature from the file of its name.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "common/spec/sample_features.h"
#include "sidecar/core/arena.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/decode/default_row.h"
#include "sidecar/decode/number_text.h"
#include "sidecar/decode/numpy.h"
#include "sidecar/decode/tar_member.h"

namespace headrace::side {
namespace {

using Bytes = std::span<const uint8_t>;

// A feature, and what of it is found in the sample at hand.
struct Target {
  Feature feature;
  std::vector<std::string> fields;  // in lower case; the first that a sample has is taken. None: the key
  size_t value_bytes = 0;
  size_t unit = 1;  // values of one entry of the first dimension
  size_t row_bytes = 0;
  bool ragged = false;
  bool varies = false;               // ragged or padded
  std::vector<uint8_t> default_row;  // empty: the feature is required

  size_t found = 0;  // which of `fields`; fields.size(): none so far
  Bytes content;
};

// What is wrong with a value; empty if nothing is.
using Complaint = std::string;

std::string_view AsText(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool SameField(std::string_view lower, std::string_view field) {
  return lower.size() == field.size() && std::equal(lower.begin(), lower.end(), field.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

class SampleDecoder : public Decoder {
 public:
  explicit SampleDecoder(const std::vector<Feature>& features) {
    for (const Feature& feature : features) {
      Target target{feature, SampleFields(feature)};
      target.value_bytes = DTypeSize(feature.dtype);
      for (size_t d = 1; d < feature.shape.size(); ++d) target.unit *= static_cast<size_t>(feature.shape[d]);
      target.ragged = !feature.shape.empty() && feature.shape[0] < 0;
      target.varies = target.ragged || feature.padding.has_value();
      if (feature.dtype == DType::kString) {
        target.row_bytes = sizeof(BytesRef);
      } else if (target.ragged) {
        target.row_bytes = sizeof(BytesRef);
        target.default_row.resize(sizeof(BytesRef));
      } else {
        target.row_bytes = static_cast<size_t>(NumValues(feature.shape)) * target.value_bytes;
        target.default_row = DefaultRow(feature);
      }
      targets_.push_back(std::move(target));
    }
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    made_.Reset();
    for (size_t row = 0; row < records.size(); ++row) {
      RETURN_IF_ERROR(Find(records[row]));
      for (size_t c = 0; c < targets_.size(); ++c) {
        RETURN_IF_ERROR(Write(records[row], targets_[c], columns[c] + row * targets_[c].row_bytes));
      }
    }
    return {};
  }

 private:
  // Finds the features' files in a sample.
  Status Find(const Record& record) {
    for (Target& target : targets_) target.found = target.fields.size();
    key_.clear();
    const Bytes sample = record.bytes();
    for (size_t at = 0; at < sample.size(); at = member_.end()) {
      const auto found = member_.Read(sample, at);
      if (!found.ok() || *found != TarMember::Found::kMember) {
        return Internal(record.Place() + ": the sample's members are not what they were when it was found");
      }
      const SampleName name = member_.is_file() ? SampleNameOf(member_.path()) : SampleName{};
      if (name.key.empty()) continue;
      if (key_.empty()) key_ = name.key;
      for (Target& target : targets_) {
        for (size_t i = 0; i <= target.found && i < target.fields.size(); ++i) {
          if (!SameField(target.fields[i], name.field)) continue;
          if (i == target.found) {
            return Corrupt(About(record) + "holds \"" + std::string(name.field) +
                           "\" twice; leave one of them out, or write the archive again");
          }
          target.found = i;
          target.content = sample.subspan(member_.begin(), member_.size());
        }
      }
    }
    return {};
  }

  Status Write(const Record& record, const Target& target, uint8_t* out) {
    if (target.fields.empty()) {
      WriteKey(out);
      return {};
    }
    if (target.found == target.fields.size()) return WriteDefault(record, target, out);
    if (target.feature.dtype == DType::kString) {
      WriteReference(target.content, out);
      return {};
    }
    Complaint complaint;
    switch (SampleKindOf(target.fields[target.found])) {
      case SampleKind::kText: complaint = WriteText(target, out); break;
      case SampleKind::kRaw: complaint = WriteValues(target, target.content, out); break;
      case SampleKind::kNumPy: complaint = WriteNumPy(target, out); break;
    }
    if (complaint.empty()) return {};
    return Corrupt(About(record) + "\"" + target.fields[target.found] + "\" " + complaint +
                   "; correct the data, or the feature in spec.features");
  }

  void WriteKey(uint8_t* out) {
    uint8_t* const key = made_.Take(key_.size());
    std::memcpy(key, key_.data(), key_.size());
    WriteReference({key, key_.size()}, out);
  }

  static void WriteReference(Bytes bytes, uint8_t* out) {
    const BytesRef reference{bytes.data(), bytes.size()};
    std::memcpy(out, &reference, sizeof reference);
  }

  Status WriteDefault(const Record& record, const Target& target, uint8_t* out) const {
    if (target.default_row.empty()) {
      return Corrupt(About(record) + "has no \"" + target.feature.name + "\"; correct the feature's name" +
                     (target.feature.dtype == DType::kString ? "" : ", or give it a default,") + " in spec.features");
    }
    std::memcpy(out, target.default_row.data(), target.default_row.size());
    return {};
  }

  // Numbers with blanks between them.
  Complaint WriteText(const Target& target, uint8_t* out) {
    constexpr std::string_view kBlanks = " \t\r\n";
    std::string_view text = AsText(target.content);
    const auto wanted = static_cast<size_t>(NumValues(target.feature.shape));
    size_t count = 0;
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
      if (text.empty()) break;
      const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
      text.remove_prefix(word.size());
      if (count++ >= wanted) continue;
      if (!StoreNumberText(target.feature.dtype, word, out)) {
        return "holds " + ShownText(word) + ", which is no " + std::string(DTypeName(target.feature.dtype));
      }
      out += target.value_bytes;
    }
    if (count == wanted) return {};
    return "holds " + std::to_string(count) + " numbers, and its shape takes " + std::to_string(wanted);
  }

  Complaint WriteNumPy(const Target& target, uint8_t* out) {
    const auto header = ReadNumPyHeader(target.content);
    if (!header.ok()) return "is " + header.status().message();
    const std::vector<int64_t>& shape = target.feature.shape;
    const bool same_shape =
        header->shape.size() == shape.size() && std::equal(shape.begin() + (target.varies ? 1 : 0), shape.end(),
                                                           header->shape.begin() + (target.varies ? 1 : 0));
    if (!same_shape || header->descr != NumPyName(target.feature.dtype)) {
      return "is an array of dtype " + header->descr + " and shape " + ShapeText(header->shape) +
             ", and the feature is " + std::string(DTypeName(target.feature.dtype)) + " of shape " + ShapeText(shape);
    }
    if (header->fortran_order && shape.size() > 1) {
      return "is an array in Fortran order, whose values lie otherwise; save it with numpy.ascontiguousarray";
    }
    const Bytes values = target.content.subspan(header->bytes);
    const size_t entry_bytes = target.unit * target.value_bytes;
    const auto entries = shape.empty() ? uint64_t{1} : static_cast<uint64_t>(header->shape[0]);
    if (values.size() % entry_bytes != 0 || values.size() / entry_bytes != entries) {
      return "is an array that takes " + std::to_string(entries) + " times " + std::to_string(entry_bytes) +
             " bytes, and holds " + std::to_string(values.size());
    }
    return WriteValues(target, values, out);
  }

  // Values as they lie in memory.
  Complaint WriteValues(const Target& target, Bytes values, uint8_t* out) {
    const size_t entry_bytes = target.unit * target.value_bytes;
    if (target.feature.dtype == DType::kBool &&
        std::any_of(values.begin(), values.end(), [](uint8_t value) { return value > 1; })) {
      return "holds other bytes than 0 and 1, and is bool";
    }
    if (target.ragged && values.size() % entry_bytes == 0) {
      WriteReference(values, out);
      return {};
    }
    const bool fits = values.size() == target.row_bytes ||
                      (target.varies && values.size() < target.row_bytes && values.size() % entry_bytes == 0);
    if (!fits) {
      return "holds " + std::to_string(values.size()) + " bytes, and its shape takes " +
             (target.ragged ? "a multiple of " + std::to_string(entry_bytes)
                            : (target.varies ? "at most " : "") + std::to_string(target.row_bytes));
    }
    if (!values.empty()) std::memcpy(out, values.data(), values.size());
    if (values.size() < target.row_bytes) {  // padded
      std::memcpy(out + values.size(), target.default_row.data() + values.size(), target.row_bytes - values.size());
    }
    return {};
  }

  std::string About(const Record& record) const { return record.Place() + ": sample \"" + key_ + "\" "; }

  std::vector<Target> targets_;
  TarMember member_;
  std::string key_;  // of the sample at hand
  Arena made_;
};

}  // namespace

std::unique_ptr<Decoder> MakeSampleDecoder(const std::vector<Feature>& features) {
  return std::make_unique<SampleDecoder>(features);
}

}  // namespace headrace::side
