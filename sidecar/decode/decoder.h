// Turns records into rows of tensors, straight into the slot that the trainer will read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/core/record.h"

namespace headrace::side {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Writes record i as row i of every component: columns[c] + i * row bytes of component c. Every byte of the rows is
  // written. Errors: Corrupt or InvalidArgument, naming file, offset, feature, and what was found instead.
  virtual Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) = 0;
};

// Decodes tf.train.Example; `paths` (for messages) must outlive the decoder.
std::unique_ptr<Decoder> MakeExampleDecoder(const std::vector<Feature>& features,
                                            const std::vector<std::string>& paths);
std::unique_ptr<Decoder> MakeRangeDecoder(DType dtype);
std::unique_ptr<Decoder> MakeTensorsDecoder(const TensorsSource& source);
// The component "index" of enumerate, before those of `rest`.
std::unique_ptr<Decoder> MakeIndexDecoder(std::unique_ptr<Decoder> rest);

// The decoder of a plan's source and pipeline.
std::unique_ptr<Decoder> MakeDecoder(const Plan& plan, const std::vector<std::string>& paths);

}  // namespace headrace::side
