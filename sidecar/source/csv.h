// CSV files (RFC 4180), also with other delimiters.
#pragma once

#include <memory>

#include "sidecar/source/block_reader.h"
#include "sidecar/source/source.h"

namespace headrace::side {

// A record's one field is its line, or lines where line ends are quoted. Empty lines are passed over. The columns that
// features are read from are found in the file's header; context.spec says which.
std::unique_ptr<Framer> MakeCsvFramer(SourceContext& context);

}  // namespace headrace::side
