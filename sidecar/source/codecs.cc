// The compressions that are read; no_codecs.cc is the counterpart.
#include "sidecar/source/codec.h"

namespace headrace::side {

std::span<const Codec* const> Codecs() {
  static constexpr const Codec* kCodecs[] = {&kGzipCodec, &kZstdCodec, &kLz4Codec, &kBzip2Codec, &kSnappyCodec};
  return kCodecs;
}

}  // namespace headrace::side
