#include "common/spec/pixel_maps.h"

#include <numeric>

#include "common/base/half.h"
#include "common/spec/components.h"
#include "common/spec/map.h"
#include "common/spec/tensor_fields.h"

namespace headrace {
namespace {

// Where the dimensions of an image stand: axes[d] is which one it was at first.
using Axes = std::vector<int64_t>;

Axes Kept(size_t rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Axes LastFirst(size_t rank) {
  Axes axes(rank);
  std::iota(axes.begin() + 1, axes.end(), 0);
  axes[0] = static_cast<int64_t>(rank) - 1;
  return axes;
}

// A run as it grows, map by map.
class Run {
 public:
  explicit Run(const TensorSpec& input) : axes_(Kept(input.shape.size())) {
    maps_.input = maps_.output = input;
    maps_.channels = input.shape.back();
    maps_.pixels = NumValues(input.shape) / maps_.channels;
  }

  // false: the map cannot be one of them.
  bool Take(size_t stage, const MapOperation& operation) {
    if (const auto* transpose = std::get_if<TransposeOp>(&operation)) {
      Axes axes;
      for (const int64_t axis : transpose->axes) axes.push_back(axes_[static_cast<size_t>(axis)]);
      axes_ = axes;
    } else if (std::holds_alternative<CastOp>(operation) || std::holds_alternative<AffineOp>(operation)) {
      const auto* affine = std::get_if<AffineOp>(&operation);
      const bool by_last = affine != nullptr && (!affine->scales.empty() || !affine->offsets.empty());
      // What is last now must be the channels still.
      const bool last_stays = axes_.back() == static_cast<int64_t>(axes_.size()) - 1;
      if (by_last && (!last_stays || maps_.channels > PixelMaps::kMaxDiffering)) return false;
      maps_.by_channel = maps_.by_channel || by_last;
      maps_.values.push_back(operation);
    } else {
      return false;
    }
    maps_.stages.push_back(stage);
    maps_.output = *MappedType(operation, maps_.output);
    return true;
  }

  // Whether it could end here.
  std::optional<PixelMaps> AsIs() const {
    PixelMaps maps = maps_;
    maps.channels_first = axes_ != Kept(axes_.size());
    const bool ends = !maps.channels_first || axes_ == LastFirst(axes_.size());
    return ends ? std::optional(maps) : std::nullopt;
  }

 private:
  PixelMaps maps_;
  Axes axes_;
};

bool ChangesComponents(const Transformation& transformation) {
  return std::holds_alternative<Enumerate>(transformation) || std::holds_alternative<Pack>(transformation);
}

float Rounded(double value, DType dtype) {
  const auto as_float = static_cast<float>(value);
  if (dtype == DType::kFloat16) return FromFloat16(ToFloat16(as_float));
  if (dtype == DType::kBfloat16) return FromBfloat16(ToBfloat16(as_float));
  return as_float;
}

bool CanHold(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

// One number for each channel of a program.
void Fill(const std::optional<double>& one, const std::vector<double>& several, double otherwise, DType dtype,
          float* out) {
  for (size_t c = 0; c < PixelProgram::kMaxChannels; ++c) {
    out[c] = Rounded(several.empty() ? one.value_or(otherwise) : several[c % several.size()], dtype);
  }
}

}  // namespace

std::optional<PixelMaps> FindPixelMaps(const InputSpec& spec, size_t first, size_t stages) {
  const auto* const begin = std::get_if<Map>(&spec.pipeline[first]);
  if (begin == nullptr) return std::nullopt;
  const std::vector<TensorSpec> components = RecordComponents(spec, first, nullptr);
  const TensorSpec& input = components[*FindComponent(components, begin->feature)];
  if (input.dtype != DType::kUint8 && input.dtype != DType::kFloat32) return std::nullopt;
  if (input.ragged || input.shape.empty()) return std::nullopt;
  const std::string name = begin->as.empty() ? input.name : begin->as;

  Run run(input);
  std::optional<PixelMaps> longest;
  for (size_t i = first; i < stages && !ChangesComponents(spec.pipeline[i]); ++i) {
    const auto* const map = std::get_if<Map>(&spec.pipeline[i]);
    if (map == nullptr) continue;
    if (i != first) {
      if (!map->feature.empty() && map->feature != name) continue;
      if (!map->as.empty()) break;  // what it acts on stays
    }
    if (!run.Take(i, map->operation)) break;
    if (auto maps = run.AsIs()) longest = std::move(maps);
  }
  return longest;
}

std::optional<PixelProgram> ProgramOf(const PixelMaps& maps) {
  if (maps.by_channel && maps.channels > PixelProgram::kMaxChannels) return std::nullopt;
  const auto* const cast = maps.values.empty() ? nullptr : std::get_if<CastOp>(&maps.values.front());
  const DType within = cast == nullptr ? maps.input.dtype : cast->dtype;
  if (!CanHold(within)) return std::nullopt;
  PixelProgram program{within, within, maps.channels_first, maps.pixels, maps.channels};
  for (size_t i = cast == nullptr ? 0 : 1; i < maps.values.size(); ++i) {
    if (const auto* affine = std::get_if<AffineOp>(&maps.values[i])) {
      if (program.steps == PixelProgram::kMaxSteps) return std::nullopt;
      Fill(affine->scale, affine->scales, 1, program.within, program.scale[program.steps]);
      Fill(affine->offset, affine->offsets, -0.0, program.within, program.offset[program.steps]);
      ++program.steps;
      continue;
    }
    program.result = std::get<CastOp>(maps.values[i]).dtype;
    const bool last = i + 1 == maps.values.size();
    const bool shortens = program.within == DType::kFloat32 || program.result == program.within;
    if (!last || !CanHold(program.result) || !shortens) return std::nullopt;
  }
  return program;
}

}  // namespace headrace
