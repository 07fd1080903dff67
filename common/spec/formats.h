// The formats of files: their names, and the fields of spec.source.files that belong to one of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/input_spec.h"
#include "common/spec/object_reader.h"

namespace headrace {

// Whether the loader can know where each record of such a file lies: at once, or once the file was read.
bool IsIndexed(FileFormat format);

// `format` and its options, of the object spec.source.files; what does not belong to the format is an error.
void ParseFormat(ObjectReader& reader, FilesSource* files, std::vector<FieldError>* errors);
void FormatToJson(const FilesSource& files, nlohmann::json* out);

// The rules between the format and other fields. REQUIRES: spec.source is files.
void CheckFormat(const InputSpec& spec, std::vector<FieldError>* errors);
// Whether shuffle {scope: Global} can stand as transformation `position` of spec.pipeline, at `field`.
void CheckGlobalShuffle(const InputSpec& spec, size_t position, const std::string& field,
                        std::vector<FieldError>* errors);

}  // namespace headrace
