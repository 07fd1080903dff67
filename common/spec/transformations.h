// The table of transformations: for each, how its field in the spec is read and written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

// Reads a pipeline (a list of objects with exactly one field each) and checks what concerns it alone.
// `on_file_names`: the pipeline on the list of files, which takes fewer transformations.
std::vector<Transformation> ParsePipeline(const nlohmann::json& list, const std::string& path, bool on_file_names,
                                          std::vector<FieldError>* errors);
nlohmann::json PipelineToJson(const std::vector<Transformation>& pipeline);

// Whether the pipeline numbers the records (enumerate), which takes the records of all files: sharding by file is out.
bool NumbersRecords(const std::vector<Transformation>& pipeline);

}  // namespace headrace
