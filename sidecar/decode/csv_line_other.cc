// Processors without AVX2 have no quick way through lines of CSV.
#include "sidecar/decode/csv_line.h"

namespace headrace::side {

CsvLine QuickCsvLine() { return nullptr; }

}  // namespace headrace::side
