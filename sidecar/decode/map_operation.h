// The operations of map, each on one column at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/spec/pixel_maps.h"
#include "common/spec/plan.h"
#include "sidecar/core/record.h"

namespace headrace::side {

class MapOperator {
 public:
  virtual ~MapOperator() = default;
  // `in` and `out` hold one row for each of `records`, and do not overlap. Errors name file, offset and value.
  virtual Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) = 0;
};

// One that acts value by value, and so on rows of any length.
class ValueOperator : public MapOperator {
 public:
  explicit ValueOperator(size_t values) : values_(values) {}
  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) final {
    ApplyValues(records.size() * values_, in, out);
    return {};
  }
  virtual void ApplyValues(size_t count, const uint8_t* in, uint8_t* out) = 0;

 private:
  const size_t values_;  // of one record, where that is known
};

// What an operation knows of its place.
struct MapSite {
  std::string field;  // "spec.pipeline[2].map"
  TensorSpec input;   // of one record
  TensorSpec output;
  bool read_next = false;  // by another operation, on the same thread

  size_t values() const;  // of one record's input
  // "path: record at byte 7: component \"x\": ", to begin a message about a value.
  std::string Where(const Record& record) const;
};

// Each in a file of its own, map_*.cc; map.cc has the table.
std::unique_ptr<MapOperator> MakeMapOperator(const CastOp& cast, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const AffineOp& affine, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const OneHotOp& one_hot, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const ReshapeOp& reshape, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const StringToNumberOp& to_number, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const DecodeImageOp& decode, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const DecodeRawOp& decode, const MapSite& site);
std::unique_ptr<MapOperator> MakeMapOperator(const TransposeOp& transpose, const MapSite& site);

// A run of maps, in one pass: pixels.cc. Null where that is no quicker than one map after the other.
std::unique_ptr<MapOperator> MakePixelsOperator(const PixelMaps& maps);

}  // namespace headrace::side
