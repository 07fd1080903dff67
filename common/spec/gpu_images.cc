#include "common/spec/gpu_images.h"

#include <algorithm>

#include "common/spec/components.h"
#include "common/spec/pixel_maps.h"

namespace headrace {
namespace {

bool Packs(const Transformation& transformation) { return std::holds_alternative<Pack>(transformation); }

// Whether a map behind `first` that is none of `stages` acts on the component.
bool ActsLater(const InputSpec& spec, const std::string& name, size_t first, const std::vector<size_t>& stages) {
  for (size_t i = first + 1; i < spec.pipeline.size(); ++i) {
    const auto* const map = std::get_if<Map>(&spec.pipeline[i]);
    if (map == nullptr || std::find(stages.begin(), stages.end(), i) != stages.end()) continue;
    if (map->feature.empty() || map->feature == name) return true;
  }
  return false;
}

}  // namespace

std::vector<GpuImages> FindGpuImages(const InputSpec& spec) {
  std::vector<GpuImages> found;
  if (std::any_of(spec.pipeline.begin(), spec.pipeline.end(), Packs)) return found;
  const std::vector<TensorSpec> element = RecordComponents(spec, spec.pipeline.size(), nullptr);
  for (size_t i = 0; i < spec.pipeline.size(); ++i) {
    const auto* const map = std::get_if<Map>(&spec.pipeline[i]);
    if (map == nullptr || !map->as.empty()) continue;
    const std::optional<PixelMaps> maps = FindPixelMaps(spec, i, spec.pipeline.size());
    if (!maps || maps->input.dtype != DType::kUint8 || !maps->channels_first) continue;
    if (ActsLater(spec, maps->input.name, i, maps->stages)) continue;
    const std::optional<PixelProgram> program = ProgramOf(*maps);
    if (program) found.push_back({*FindComponent(element, maps->input.name), maps->stages, maps->input, *program});
  }
  return found;
}

InputSpec WithoutMapsOf(InputSpec spec, std::span<const GpuImages> images) {
  for (const GpuImages& image : images) {
    // A reshape to the shape that it has changes nothing, and is no work.
    for (const size_t stage : image.stages) {
      spec.pipeline[stage] = Map{image.decoded.name, "", ReshapeOp{image.decoded.shape}};
    }
  }
  return spec;
}

}  // namespace headrace
