// Paths that are not of a mounted volume: s3://bucket/key, gs://bucket/key, http(s)://host/path.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Whether the path begins with a scheme and "://", known or not.
bool IsRemotePath(std::string_view path);

// Why a remote path or glob cannot be read, as the end of a message; "" if it can.
std::string RemotePathError(std::string_view path);

}  // namespace headrace
