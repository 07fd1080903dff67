// What the names of features mean in format WebDataset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

inline constexpr char kSampleKey[] = "__key__";

// The names of files, without their sample's key and in lower case, that a feature is read from: "jpg;jpeg" is the
// first of two that a sample has. None: the feature is the key.
std::vector<std::string> SampleFields(const Feature& feature);

// How the numbers of a file lie in it, by the end of its name.
enum class SampleKind {
  kText,   // decimal, with blanks between them
  kRaw,    // "bin": as in memory, little-endian
  kNumPy,  // "npy"
};
SampleKind SampleKindOf(std::string_view field);

// REQUIRES: spec.source is files of format WebDataset.
void CheckSamples(const InputSpec& spec, std::vector<FieldError>* errors);

}  // namespace headrace
