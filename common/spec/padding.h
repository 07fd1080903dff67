// Features of varying length, and what the pipeline's paddedBatch makes of them.
#pragma once

#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

inline bool IsVarying(const Feature& feature) { return !feature.shape.empty() && feature.shape[0] < 0; }

// The features as batches have them: those that are padded with their padded shape, and with `padding` set. The others
// of varying length stay so: ragged.
std::vector<Feature> PaddedFeatures(const InputSpec& spec);

// What is wrong with them: one that a paddedBatch leaves out, or that is used before it is padded; a padding of
// nothing.
void CheckPadding(const InputSpec& spec, std::vector<FieldError>* errors);

}  // namespace headrace
