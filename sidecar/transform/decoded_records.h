// Looks into records on their way to a batch, for the transformations that go by what they hold.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/core/record.h"
#include "sidecar/decode/decoder.h"

namespace headrace::side {

// Takes the error of a record that a decoder refused; ok: the record is to be left out.
using TakeError = std::function<Status(const Status& error)>;

// Where in a pipeline records are looked into.
struct LookSite {
  const InputSpec& spec;  // outlives what looks
  size_t stages = 0;      // of the pipeline, before it: it sees what they made of the components
  MakeDecoder source_decoder;
  TakeError take_error;
};

// A block of records, decoded. Used by one thread.
class DecodedRecords {
 public:
  explicit DecodedRecords(const LookSite& site);

  size_t most() const { return most_; }  // records in a block
  const std::vector<TensorSpec>& components() const { return components_; }
  // Of a record that ForEach calls for, while it does.
  const uint8_t* Row(size_t component, size_t row) const {
    return columns_[component].data() + row * row_bytes_[component];
  }

  // Calls `use(i, row)`, which gives a Status, for each record in turn that can be decoded; at most most() of them. It
  // may change records up to i. Errors: use's, and those of records that are not left out.
  template <typename Use>
  Status ForEach(std::span<const Record> records, Use&& use) {
    const Status decoded = decoder_->Decode(records, outs_);
    for (size_t i = 0; i < records.size(); ++i) {
      if (!decoded.ok()) {
        // One of the block is bad: each by itself then.
        if (const Status alone = decoder_->Decode(records.subspan(i, 1), outs_); !alone.ok()) {
          RETURN_IF_ERROR(take_error_(alone));
          continue;
        }
      }
      RETURN_IF_ERROR(use(i, decoded.ok() ? i : 0));
    }
    return {};
  }

 private:
  const TakeError take_error_;
  const std::vector<TensorSpec> components_;
  const std::unique_ptr<Decoder> decoder_;
  std::vector<size_t> row_bytes_;
  size_t most_ = 1;
  std::vector<std::vector<uint8_t>> columns_;
  std::vector<uint8_t*> outs_;
};

}  // namespace headrace::side
