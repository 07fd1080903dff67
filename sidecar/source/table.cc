#include "sidecar/source/source.h"
#include "sidecar/source/tfrecord.h"

namespace headrace::side {

OpenRecords ReaderOf(FileFormat format) {
  switch (format) {
    case FileFormat::kTFRecord: return OpenTFRecord;
  }
  return OpenTFRecord;
}

}  // namespace headrace::side
