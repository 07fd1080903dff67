// Images whose last maps a GPU can do (sidecar/device/images.h), so that their bytes cross the bus as they were
// decoded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/spec/pixel_program.h"
#include "common/spec/plan.h"

namespace headrace {

// One component of a pipeline, all of whose maps from some place on are a program that brings channels to the front.
struct GpuImages {
  size_t component = 0;        // its place in an element
  std::vector<size_t> stages;  // of spec.pipeline: these maps
  TensorSpec decoded;          // of one record, before them: uint8
  PixelProgram program;

  uint64_t image_bytes() const { return static_cast<uint64_t>(program.pixels * program.channels); }  // decoded
};

// None of pipelines that pack, and none that keep what they are made of (the first map's `as`). REQUIRES: the spec's
// components are known.
std::vector<GpuImages> FindGpuImages(const InputSpec& spec);

// The pipeline as the CPU does it: without these maps, and all transformations at their places. Its records have the
// same components, those of `images` as they are decoded.
InputSpec WithoutMapsOf(InputSpec spec, std::span<const GpuImages> images);

}  // namespace headrace
