// tf.transpose of each record.
#include <cstring>

#include "sidecar/decode/decoder.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

// A dimension of the result, and how far apart in the input, in bytes, those lie that are neighbours in it.
struct Axis {
  size_t size;
  size_t stride;
};

// Those that the result needs: neighbours that stay neighbours become one.
std::vector<Axis> AxesOf(const TransposeOp& transpose, const TensorSpec& input) {
  std::vector<size_t> strides(input.shape.size());
  size_t stride = DTypeSize(input.dtype);
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<size_t>(input.shape[d]);
  }
  std::vector<Axis> axes;
  for (const int64_t from : transpose.axes) {
    const Axis axis{static_cast<size_t>(input.shape[static_cast<size_t>(from)]), strides[static_cast<size_t>(from)]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().stride == axis.size * axis.stride) {
      axes.back() = {axes.back().size * axis.size, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

template <typename T>
void Gather(const uint8_t* in, const Axis& axis, uint8_t* out) {
  for (size_t i = 0; i < axis.size; ++i) std::memcpy(out + i * sizeof(T), in + i * axis.stride, sizeof(T));
}

class TransposeOperator : public MapOperator {
 public:
  TransposeOperator(const TransposeOp& transpose, const TensorSpec& input)
      : row_bytes_(RowBytes(input)), axes_(AxesOf(transpose, input)), unit_(DTypeSize(input.dtype)) {
    if (axes_.empty() || axes_.back().stride != unit_) return;
    unit_ *= axes_.back().size;
    axes_.pop_back();
  }

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    for (size_t i = 0; i < records.size(); ++i) out = Copy(in + i * row_bytes_, 0, out);
    return {};
  }

 private:
  // What `in` and the axes from `first` on make; returns the place after it.
  uint8_t* Copy(const uint8_t* in, size_t first, uint8_t* out) {
    if (first == axes_.size()) {
      std::memcpy(out, in, unit_);
      return out + unit_;
    }
    const Axis& axis = axes_[first];
    if (first + 1 < axes_.size() || unit_ > sizeof(uint64_t)) {
      for (size_t i = 0; i < axis.size; ++i) out = Copy(in + i * axis.stride, first + 1, out);
      return out;
    }
    switch (unit_) {
      case 1: Gather<uint8_t>(in, axis, out); break;
      case 2: Gather<uint16_t>(in, axis, out); break;
      case 4: Gather<uint32_t>(in, axis, out); break;
      case 8: Gather<uint64_t>(in, axis, out); break;
      default:
        for (size_t i = 0; i < axis.size; ++i) std::memcpy(out + i * unit_, in + i * axis.stride, unit_);
    }
    return out + axis.size * unit_;
  }

  const size_t row_bytes_;
  std::vector<Axis> axes_;  // the outermost first
  size_t unit_;             // bytes that stay together
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const TransposeOp& transpose, const MapSite& site) {
  return std::make_unique<TransposeOperator>(transpose, site.input);
}

}  // namespace headrace::side
