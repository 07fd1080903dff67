// What libheadrace_nccl.so exports. Seen by nccl.cc and nccl_module.cc only.
#pragma once

extern "C" {

// Null on success, else NCCL's message, which lives as long as the process.
__attribute__((visibility("default"))) const char* headrace_nccl_version(int* version);
}
