// Writes TFRecord files of tf.train.Example with one int64 feature "x": the data of conformance cases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace headrace::cli {

Status WriteExamples(const std::string& path, const std::vector<int64_t>& values);

// One framed record: length, masked CRC of the length, data, masked CRC of the data.
std::string FrameRecord(const std::string& data);

}  // namespace headrace::cli
