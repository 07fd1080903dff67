// TFRecord files.
#pragma once

#include "sidecar/source/source.h"

namespace headrace::side {

Result<std::unique_ptr<Stream<Record>>> OpenTFRecord(SourceContext& context, uint32_t file);

}  // namespace headrace::side
