// SHA-256 (FIPS 180-4), which names plans. Here rather than OpenSSL's, so that a spec can be read where there is no
// library but JSON's (cmake/HeadraceParts.cmake). For names: what is secret or signed goes by OpenSSL.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headrace {

std::array<uint8_t, 32> Sha256(std::string_view text);

}  // namespace headrace
