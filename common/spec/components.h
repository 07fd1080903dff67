// The components of a record on its way through the pipeline.
#pragma once

#include <vector>

#include "common/spec/plan.h"

namespace headrace {

// Whether the spec alone says which components its records have. false: their files do, and RecordComponents knows of
// none until the spec has been given their features.
bool KnowsComponents(const InputSpec& spec);

// The types of one record, without batch dimensions, after the first `stages` transformations of the pipeline.
// `errors` (may be null) receives what is wrong with the transformations up to there: a component that is not there, or
// that an operation cannot take.
std::vector<TensorSpec> RecordComponents(const InputSpec& spec, size_t stages, std::vector<FieldError>* errors);

// The place of `name` in `components`; of the only one for "". Errors: InvalidArgument, naming the nearest.
Result<size_t> FindComponent(const std::vector<TensorSpec>& components, const std::string& name);

// All that is wrong with the components of the pipeline, and with their delivery; nothing where they are not known.
void CheckComponents(const InputSpec& spec, std::vector<FieldError>* errors);

}  // namespace headrace
