// The code lies in this library as it is in the file that nvcc made, HEADRACE_IMAGE_CODE (no_image_code.cc is the
// counterpart).
#include "sidecar/device/image_code.h"

// The driver reads words of eight bytes.
asm(R"(
  .pushsection .rodata
  .balign 16
headrace_image_code:
  .incbin ")" HEADRACE_IMAGE_CODE R"("
headrace_image_code_end:
  .popsection
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const uint8_t headrace_image_code[];      // NOLINT: the assembler's names
[[gnu::visibility("hidden")]] extern const uint8_t headrace_image_code_end[];  // NOLINT
}

namespace headrace::device {

std::span<const uint8_t> ImageCode() { return {headrace_image_code, headrace_image_code_end}; }

}  // namespace headrace::device
