// Formats whose records are rows of columns.
#pragma once

#include <memory>
#include <vector>

#include "sidecar/source/columns_file.h"
#include "sidecar/source/source.h"

namespace headrace::side {

// Opens file `file` of `context`, in the format of its spec, for the spec's features. Errors: InvalidArgument where a
// column is not there, or is of a type that its feature cannot have, naming file, both, and the remedy; those of the
// file.
Result<std::unique_ptr<Stream<Record>>> OpenColumns(SourceContext& context, uint32_t file);
// A feature for each column of the file that is offered, of the column's own type. Errors: InvalidArgument if there are
// none, or too many; those of the file.
Result<std::vector<Feature>> FeaturesOfColumns(SourceContext& context, uint32_t file);

// Why a feature of PaddedFeatures cannot be made of `column`, or of it and others; empty if it can.
std::string WhyNotOf(const Feature& feature, const FileColumn& column);

}  // namespace headrace::side
