// NCCL, where it is there. libnccl is some 340 MB, so no binary links it: the module libheadrace_nccl.so does, and is
// opened from beside the binary (../lib) or the system's library path by those who ask. An image without the module and
// libnccl works as before, so one binary serves both kinds of image.
#pragma once

#include <memory>

#include "sidecar/collective/exchange.h"

namespace headrace::device {

// Names the libnccl.so.2 to be opened: one that does not lie on the system's library path, or a stand-in for tests.
inline constexpr char kNcclLibraryEnv[] = "HEADRACE_LIBNCCL";

// The version of the NCCL library that this process can open, 23203 for 2.32.3. Opens it (tens of milliseconds) and
// keeps it open. Any thread. Errors: NotFound if module or library are not there, Unavailable with NCCL's message.
Result<int> NcclVersion();

// 23203 -> "2.32.3".
std::string NcclVersionText(int version);

// See MakeNcclExchange. Errors: also those of NcclVersion.
Result<std::unique_ptr<side::Exchange>> OpenNcclExchange(const side::ExchangeOptions& options);

}  // namespace headrace::device
