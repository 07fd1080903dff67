// Base64 as RFC 4648 section 4 writes it, with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

std::string EncodeBase64(std::string_view bytes);
// Nothing if `text` is not base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace headrace
