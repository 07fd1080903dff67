#include "sidecar/source/arrow_module.h"

#include <arrow/config.h>

#include "sidecar/source/arrow_ipc.h"
#include "sidecar/source/arrow_parallel.h"
#include "sidecar/source/parquet.h"

const char* headrace_arrow_version() { return arrow::GetBuildInfo().version_string.c_str(); }

const headrace::side::ColumnsReaders* headrace_arrow_readers() {
  static constexpr headrace::side::ColumnsReaders kReaders = {
      headrace::side::OpenParquet, headrace::side::OpenArrowFile, headrace::side::OpenArrowStream};
  headrace::side::LimitArrowThreads();
  return &kReaders;
}
