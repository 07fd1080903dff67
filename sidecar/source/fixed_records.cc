#include "sidecar/source/fixed_records.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/spec/components.h"
#include "common/spec/features.h"
#include "sidecar/decode/numpy.h"

namespace headrace::side {
namespace {

static_assert(std::endian::native == std::endian::little, "values are delivered as they lie in the file");

constexpr size_t kScratchBytes = 128 << 10;  // about half of a level-2 cache

class FixedBlock : public StoredBlock {
 public:
  FixedBlock(SourceContext& context, uint32_t file, uint64_t begin, uint64_t record_bytes, int64_t records)
      : StoredBlock(context, file), begin_(begin), record_bytes_(record_bytes), records_(records) {}
  int64_t records() const override { return records_; }
  Extent Find(int64_t row) const override {
    return {begin_ + static_cast<uint64_t>(row) * record_bytes_, record_bytes_};
  }

 private:
  const uint64_t begin_;
  const uint64_t record_bytes_;
  const int64_t records_;
};

class FixedDecoder : public Decoder {
 public:
  FixedDecoder(const std::vector<TensorSpec>& features, size_t record_bytes) : record_bytes_(record_bytes) {
    for (const TensorSpec& feature : features) {
      row_bytes_.push_back(RowBytes(feature));
      bools_.push_back(feature.dtype == DType::kBool);
    }
    scratch_records_ = std::max<size_t>(kScratchBytes / record_bytes, 1);
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    if (row_bytes_.size() == 1 && row_bytes_[0] == record_bytes_) {
      RETURN_IF_ERROR(ReadStored(records, columns[0]));
    } else {
      RETURN_IF_ERROR(Split(records, columns));
    }
    for (size_t c = 0; c < columns.size(); ++c) {
      if (!bools_[c]) continue;  // a bool of another value than 0 and 1 is nobody's
      for (size_t i = 0; i < records.size() * row_bytes_[c]; ++i) columns[c][i] = columns[c][i] != 0 ? 1 : 0;
    }
    return {};
  }

 private:
  Status Split(std::span<const Record> records, std::span<uint8_t* const> columns) {
    scratch_.resize(scratch_records_ * record_bytes_);
    for (size_t begin = 0; begin < records.size(); begin += scratch_records_) {
      const size_t count = std::min(scratch_records_, records.size() - begin);
      RETURN_IF_ERROR(ReadStored(records.subspan(begin, count), scratch_.data()));
      const uint8_t* from = scratch_.data();
      for (size_t c = 0; c < columns.size(); from += row_bytes_[c++]) {
        uint8_t* out = columns[c] + begin * row_bytes_[c];
        for (size_t i = 0; i < count; ++i, out += row_bytes_[c]) {
          std::memcpy(out, from + i * record_bytes_, row_bytes_[c]);
        }
      }
    }
    return {};
  }

  const size_t record_bytes_;
  std::vector<size_t> row_bytes_;
  std::vector<bool> bools_;
  size_t scratch_records_ = 1;
  std::vector<uint8_t> scratch_;
};

std::vector<TensorSpec> FeatureTypes(const InputSpec& spec) { return RecordComponents(spec, 0, nullptr); }

size_t FeatureBytes(const InputSpec& spec) {
  size_t bytes = 0;
  for (const TensorSpec& feature : FeatureTypes(spec)) bytes += RowBytes(feature);
  return bytes;
}

size_t RecordBytes(const InputSpec& spec) {
  const auto& files = std::get<FilesSource>(spec.source);
  if (files.format == FileFormat::kFixedLength && files.fixed_length.record_bytes) {
    return static_cast<size_t>(*files.fixed_length.record_bytes);
  }
  return FeatureBytes(spec);
}

Status CheckNumPyType(const NumPyHeader& header, const TensorSpec& feature, const std::string& path) {
  const std::string found = "an array of dtype " + header.descr + " and shape " + ShapeText(header.shape);
  if (header.fortran_order && header.shape.size() > 1) {
    return InvalidArgument(path + ": " + found +
                           " is in Fortran order, whose rows lie scattered; save it with "
                           "numpy.ascontiguousarray");
  }
  const bool same_shape = !header.shape.empty() && std::equal(header.shape.begin() + 1, header.shape.end(),
                                                              feature.shape.begin(), feature.shape.end());
  if (same_shape && header.descr == NumPyName(feature.dtype)) return {};
  return InvalidArgument(path + ": it holds " + found + ", and feature \"" + feature.name + "\" of spec.features is " +
                         std::string(DTypeName(feature.dtype)) + " of shape " + ShapeText(feature.shape) +
                         " for each row; correct the feature" +
                         (header.descr.starts_with(">") ? ", and save the array little-endian" : ""));
}

}  // namespace

Result<std::unique_ptr<StoredBlock>> IndexFixedLength(SourceContext& context, uint32_t file) {
  const FixedLength& options = std::get<FilesSource>(context.spec->source).fixed_length;
  ASSIGN_OR_RETURN(const auto stored, OpenStored(context.files, file, &context.bytes_read));
  const uint64_t record_bytes = RecordBytes(*context.spec);
  const auto around = static_cast<uint64_t>(options.header_bytes + options.footer_bytes);
  const uint64_t size = stored->size();
  if (size < around || (size - around) % record_bytes != 0) {
    return Corrupt(stored->path() + ": its " + std::to_string(size) + " bytes are no whole number of records of " +
                   std::to_string(record_bytes) + " bytes" +
                   (around > 0 ? " beside a header of " + std::to_string(options.header_bytes) + " and a footer of " +
                                     std::to_string(options.footer_bytes)
                               : "") +
                   "; correct spec.source.files.fixedLength or spec.features, or take the file out of "
                   "spec.source.files.paths");
  }
  const auto records = static_cast<int64_t>((size - around) / record_bytes);
  return std::unique_ptr<StoredBlock>(
      std::make_unique<FixedBlock>(context, file, static_cast<uint64_t>(options.header_bytes), record_bytes, records));
}

Result<std::unique_ptr<StoredBlock>> IndexNumPy(SourceContext& context, uint32_t file) {
  ASSIGN_OR_RETURN(const auto stored, OpenStored(context.files, file, &context.bytes_read));
  uint8_t bytes[4096];
  ASSIGN_OR_RETURN(const size_t read, stored->ReadAt(0, bytes));
  const Result<NumPyHeader> header = ReadNumPyHeader({bytes, read});
  if (!header.ok()) {
    return Corrupt(stored->path() + ": at byte 0: " + header.status().message() +
                   "; write it again with numpy.save or take it out of spec.source.files.paths");
  }
  RETURN_IF_ERROR(CheckNumPyType(*header, FeatureTypes(*context.spec)[0], stored->path()));
  const uint64_t record_bytes = FeatureBytes(*context.spec);
  const uint64_t room = (stored->size() - header->bytes) / record_bytes;
  if (static_cast<uint64_t>(header->shape[0]) > room) {
    return Corrupt(stored->path() + ": at byte " + std::to_string(header->bytes) + ": the file holds " +
                   std::to_string(room) + " whole rows and its header says " + std::to_string(header->shape[0]) +
                   ": it was truncated; write it again or take it out of spec.source.files.paths");
  }
  return std::unique_ptr<StoredBlock>(
      std::make_unique<FixedBlock>(context, file, header->bytes, record_bytes, header->shape[0]));
}

std::unique_ptr<Decoder> MakeFixedDecoder(const InputSpec& spec) {
  return std::make_unique<FixedDecoder>(FeatureTypes(spec), RecordBytes(spec));
}

}  // namespace headrace::side
