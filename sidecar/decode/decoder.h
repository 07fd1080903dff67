// Turns records into rows of tensors, straight into the slot that the trainer will read.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/spec/pixel_maps.h"
#include "common/spec/plan.h"
#include "sidecar/core/record.h"

namespace headrace::side {

class MapOperator;

// Used by one thread: each that decodes has one of its own.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Writes record i as row i of every component: columns[c] + i * row bytes of component c. Every byte of the rows is
  // written. A row of a component of variable length is a BytesRef to its values, which live as long as the records or
  // until the next Decode. Errors: Corrupt or InvalidArgument, naming file, offset, feature, and what was found
  // instead.
  virtual Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) = 0;
};

using MakeDecoder = std::function<std::unique_ptr<Decoder>()>;

// A record's bytes as one string.
std::unique_ptr<Decoder> MakeBytesDecoder();
// Decodes tf.train.Example.
std::unique_ptr<Decoder> MakeExampleDecoder(const std::vector<Feature>& features);
// Decodes lines of CSV, whose blocks say in BytesBlock::Origin which of CsvColumns (csv_fields.h) each field is.
std::unique_ptr<Decoder> MakeCsvDecoder(const std::vector<Feature>& features, char delimiter);
// Decodes JSON texts, by the features' paths.
std::unique_ptr<Decoder> MakeJsonDecoder(const std::vector<Feature>& features);
// Of rows of a ColumnsBlock, whose columns are those of `features` and of types that CheckColumn lets pass.
std::unique_ptr<Decoder> MakeColumnsDecoder(const std::vector<Feature>& features);
// Decodes samples of tar archives (source/tar.h), by the names of their files.
std::unique_ptr<Decoder> MakeSampleDecoder(const std::vector<Feature>& features);
std::unique_ptr<Decoder> MakeRangeDecoder(DType dtype);
std::unique_ptr<Decoder> MakeTensorsDecoder(const TensorsSource& source);
// The component "index" of enumerate, before those of `rest`.
std::unique_ptr<Decoder> MakeIndexDecoder(std::unique_ptr<Decoder> rest);

// The rows that pack makes of records: three components for each that it packs (common/spec/pack.h). `components`: of a
// record, as `rest` decodes them.
std::unique_ptr<Decoder> MakePackedDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components,
                                           const Pack& pack);

// What map makes of the components of `rest`, whose types are `components`. `field` is the map's, for messages;
// `read_next`: another map acts on what it makes.
std::unique_ptr<Decoder> MakeMapDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components,
                                        const Map& map, const std::string& field, bool read_next);
// The same of a run of maps, the first of which is `first`, in one pass, which is `run`.
std::unique_ptr<Decoder> MakePixelsDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components,
                                           const Map& first, const PixelMaps& maps, std::unique_ptr<MapOperator> run);
// Decodes as `rest` does, a few records at a time, so that what it holds between its stages stays small and in cache.
std::unique_ptr<Decoder> MakeBlockDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components);

// The decoder of the first `stages` transformations of a spec's pipeline, on top of that of its source: of the
// components that RecordComponents (common/spec/components.h) gives for them.
std::unique_ptr<Decoder> MakePipelineDecoder(const InputSpec& spec, size_t stages, std::unique_ptr<Decoder> source);

// The bytes of one record's row of a component: its values, or a BytesRef to them where their number varies.
size_t RowBytes(const TensorSpec& component);

}  // namespace headrace::side
