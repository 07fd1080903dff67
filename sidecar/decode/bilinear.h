// The two steps of tf.image.resize with Bilinear: between the columns of a row, then between two rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::side {

// Between which two of the input a line of the output lies, and how far from the first.
struct Between {
  int64_t lower = 0;
  int64_t upper = 0;
  float part = 0;
};

// Each as lower + (upper - lower) * part, rounded after every operation, as TensorFlow's kernel does it.
struct Bilinear {
  // The pixels of a row, uint8[., channels], each between two of the input's: `columns` are their places in it, in
  // values. Reads up to 3 bytes and writes up to 3 floats behind the last pixel. REQUIRES: channels is 1, 3 or 4.
  void (*columns)(const uint8_t* in, std::span<const Between> columns, int64_t channels, float* out);
  // `values` of them, which may be of any alignment.
  void (*rows)(const float* top, const float* bottom, float part, size_t values, float* out);
};

// The quickest for this processor; all give the same bits.
Bilinear BilinearFor();
// Of any processor.
Bilinear PlainBilinear();

}  // namespace headrace::side
