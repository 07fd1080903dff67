#include "sidecar/transform/pack.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "common/spec/pack.h"
#include "sidecar/core/packed_block.h"

namespace headrace::side {
namespace {

// How long each sequence of a record is that is packed.
class Lengths {
 public:
  Lengths(const Pack& pack, const DecodedRecords& decoded)
      : decoded_(decoded), components_(*PackedComponents(pack, decoded.components())) {  // ParseInputSpec has found them
    for (const size_t c : components_) value_bytes_.push_back(DTypeSize(decoded.components()[c].dtype));
    lengths_.resize(components_.size());
  }

  // Of the record at `row`; until the next call.
  std::span<const int64_t> Of(size_t row) {
    for (size_t f = 0; f < components_.size(); ++f) {
      BytesRef values;
      std::memcpy(&values, decoded_.Row(components_[f], row), sizeof values);
      lengths_[f] = static_cast<int64_t>(values.size / value_bytes_[f]);
    }
    return lengths_;
  }
  const std::string& name(size_t f) const { return decoded_.components()[components_[f]].name; }
  size_t count() const { return components_.size(); }

 private:
  const DecodedRecords& decoded_;
  const std::vector<size_t> components_;
  std::vector<size_t> value_bytes_;
  std::vector<int64_t> lengths_;
};

class PackDataset : public Dataset<Record> {
 public:
  PackDataset(DatasetPtr<Record> input, Pack pack, LookSite site, std::string field)
      : input_(std::move(input)), pack_(std::move(pack)), site_(std::move(site)), field_(std::move(field)) {}

  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override;

 private:
  class PackStream;
  const DatasetPtr<Record> input_;
  const Pack pack_;
  const LookSite site_;
  const std::string field_;
};

class PackDataset::PackStream : public Stream<Record> {
 public:
  PackStream(const PackDataset& dataset, std::unique_ptr<Stream<Record>> input)
      : dataset_(dataset),
        input_(std::move(input)),
        decoded_(dataset.site_),
        lengths_(dataset.pack_, decoded_),
        block_(decoded_.most()),
        used_(lengths_.count()) {}

  Result<size_t> Read(std::span<Record> out) override {
    // What stands before an error is delivered before it.
    while (ready_.empty() && failed_.ok() && !ended_) failed_ = Fill();
    if (ready_.empty()) {
      RETURN_IF_ERROR(failed_);
      return size_t{0};
    }
    const size_t read = std::min(out.size(), ready_.size());
    for (size_t i = 0; i < read; ++i) {
      out[i] = std::move(ready_.front());
      ready_.pop_front();
    }
    return read;
  }

 private:
  int64_t length() const { return dataset_.pack_.length; }

  // Reads a block of records, and finishes the rows that they fill.
  Status Fill() {
    ASSIGN_OR_RETURN(const size_t read, input_->Read(block_));
    if (read == 0) {
      ended_ = true;
      FinishRow();
      return {};
    }
    return decoded_.ForEach(std::span(block_).first(read), [&](size_t i, size_t row) -> Status {
      const std::span<const int64_t> lengths = lengths_.Of(row);
      const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
      if (longest == 0) return {};  // it would take a number and no room
      if (const Status fits = Check(block_[i], lengths); !fits.ok()) return dataset_.site_.take_error(fits);
      if (dataset_.pack_.split) {
        Split(block_[i], longest);
      } else {
        Put(std::move(block_[i]), lengths);
      }
      return {};
    });
  }

  // Whether a record can be packed at all.
  Status Check(const Record& record, std::span<const int64_t> lengths) const {
    for (size_t f = 0; f < lengths.size(); ++f) {
      const auto refuse = [&](const std::string& why) {
        return Corrupt(record.Place() + ": component \"" + lengths_.name(f) + "\" holds " + std::to_string(lengths[f]) +
                       " values, and " + why);
      };
      if (!dataset_.pack_.split && lengths[f] > length()) {
        return refuse("rows have room for " + std::to_string(length()) + "; raise " + dataset_.field_ +
                      ".length, or set split: true there");
      }
      if (dataset_.pack_.split && lengths[f] != lengths[0]) {
        return refuse("\"" + lengths_.name(0) + "\" " + std::to_string(lengths[0]) + ", so that " + dataset_.field_ +
                      " cannot split them at one place; pack one of them, or set split: false");
      }
    }
    return {};
  }

  // The whole record, into this row if all of its sequences fit, else into the next.
  void Put(Record record, std::span<const int64_t> lengths) {
    for (size_t f = 0; f < lengths.size(); ++f) {
      if (used_[f] + lengths[f] <= length()) continue;
      FinishRow();
      break;
    }
    for (size_t f = 0; f < lengths.size(); ++f) used_[f] += lengths[f];
    Row().Add({std::move(record), 0, length()});
  }

  // The record's values, over as many rows as they take.
  void Split(const Record& record, int64_t values) {
    for (int64_t begin = 0; begin < values;) {
      const int64_t count = std::min(values - begin, length() - used_[0]);
      Row().Add({record, begin, count});
      begin += count;
      used_[0] += count;
      if (used_[0] == length()) FinishRow();
    }
  }

  PackedBlock& Row() {
    if (row_ == nullptr) {
      row_ = new PackedBlock;
      held_ = BlockRef(row_);
    }
    return *row_;
  }

  void FinishRow() {
    std::fill(used_.begin(), used_.end(), 0);
    if (row_ == nullptr) return;
    row_ = nullptr;
    ready_.push_back({std::move(held_), 0, 0});
  }

  const PackDataset& dataset_;
  std::unique_ptr<Stream<Record>> input_;
  DecodedRecords decoded_;
  Lengths lengths_;
  std::vector<Record> block_;
  PackedBlock* row_ = nullptr;  // that is being filled
  BlockRef held_;               // it
  std::vector<int64_t> used_;   // of its length, by sequence
  std::deque<Record> ready_;
  Status failed_;
  bool ended_ = false;
};

std::unique_ptr<Stream<Record>> PackDataset::Iterate(Pass pass) const {
  return std::make_unique<PackStream>(*this, input_->Iterate(pass));
}

}  // namespace

DatasetPtr<Record> MakePack(DatasetPtr<Record> input, const Pack& pack, LookSite site, std::string field) {
  return std::make_unique<PackDataset>(std::move(input), pack, std::move(site), std::move(field));
}

}  // namespace headrace::side
