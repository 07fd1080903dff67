// tf.io.decode_image, then tf.image.resize: half-pixel centres, no antialiasing. Bilinear gives float32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "sidecar/decode/image.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

// Between which two lines of the input one of the output lies, and how far from the first.
struct Between {
  int64_t lower = 0;
  int64_t upper = 0;
  float part = 0;
};

constexpr size_t kLanes = 4;
using Four = float __attribute__((vector_size(kLanes * sizeof(float))));

Four LoadFour(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
void StoreFour(Four four, float* to) { std::memcpy(to, &four, sizeof four); }

float Scale(int64_t in, int64_t out) { return static_cast<float>(in) / static_cast<float>(out); }

std::vector<Between> Lines(int64_t in, int64_t out) {
  std::vector<Between> lines;
  for (int64_t i = 0; i < out; ++i) {
    const float place = (static_cast<float>(i) + 0.5f) * Scale(in, out) - 0.5f;
    const float floor = std::floor(place);
    lines.push_back({std::max<int64_t>(static_cast<int64_t>(floor), 0),
                     std::min<int64_t>(static_cast<int64_t>(std::ceil(place)), in - 1), place - floor});
  }
  return lines;
}

class DecodeImageOperator : public MapOperator {
 public:
  DecodeImageOperator(const DecodeImageOp& decode, const MapSite& site)
      : decode_(decode), site_(site), values_(static_cast<size_t>(decode.height * decode.width * decode.channels)) {}

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const BytesRef*>(in);
    for (size_t i = 0; i < records.size(); ++i) {
      const Status decoded = DecodeOne({from[i].data, from[i].size}, i, out);
      if (!decoded.ok()) return Status(decoded.code(), site_.Where(records[i]) + decoded.message());
    }
    return {};
  }

 private:
  // Errors follow the image's place.
  Status DecodeOne(std::span<const uint8_t> bytes, size_t row, uint8_t* out) {
    ASSIGN_OR_RETURN(const ImageSize size, decoder_.Open(bytes, static_cast<int>(decode_.channels)));
    if (decode_.resize == ResizeMethod::kNone) {
      if (size.height != decode_.height || size.width != decode_.width) return WrongShape(size);
      return decoder_.Read(out + row * values_);
    }
    const auto bytes_wanted = static_cast<size_t>(size.height * size.width * decode_.channels);
    if (pixels_.size() < bytes_wanted) pixels_.resize(bytes_wanted);
    RETURN_IF_ERROR(decoder_.Read(pixels_.data()));
    if (decode_.resize == ResizeMethod::kNearest) {
      Nearest(size, out + row * values_);
    } else {
      Bilinear(size, reinterpret_cast<float*>(out) + row * values_);
    }
    return {};
  }

  Status WrongShape(ImageSize size) const {
    const auto text = [](int64_t height, int64_t width) {
      return std::to_string(height) + " x " + std::to_string(width);
    };
    return Corrupt("is " + text(size.height, size.width) + " pixels and the shape takes " +
                   text(decode_.height, decode_.width) + "; set " + site_.field +
                   ".decodeImage.resize to Bilinear or Nearest, or correct its shape");
  }

  const uint8_t* Row(ImageSize size, int64_t y) const {
    return &pixels_[static_cast<size_t>(y * RowValues(size.width))];
  }
  int64_t RowValues(int64_t width) const { return width * decode_.channels; }

  void Nearest(ImageSize size, uint8_t* out) {
    const auto line = [](int64_t i, int64_t in, int64_t size) {
      return std::min(static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * Scale(in, size))), in - 1);
    };
    nearest_.resize(static_cast<size_t>(decode_.width));
    for (int64_t x = 0; x < decode_.width; ++x) {
      nearest_[static_cast<size_t>(x)] = RowValues(line(x, size.width, decode_.width));
    }
    for (int64_t y = 0; y < decode_.height; ++y) {
      const uint8_t* const row = Row(size, line(y, size.height, decode_.height));
      switch (decode_.channels) {
        case 1: out = CopyPixels<1>(row, out); break;
        case 3: out = CopyPixels<3>(row, out); break;
        default: out = CopyPixels<4>(row, out); break;
      }
    }
  }

  template <size_t Channels>
  uint8_t* CopyPixels(const uint8_t* row, uint8_t* out) const {
    for (const int64_t x : nearest_) {
      std::memcpy(out, row + x, Channels);
      out += Channels;
    }
    return out;
  }

  // First between the columns, each row of the input once; then between two rows, value by value.
  void Bilinear(ImageSize size, float* out) {
    if (size.height != in_.height || size.width != in_.width) Prepare(size);
    int64_t made[2] = {-1, -1};  // which rows of the input made_rows_[0] and made_rows_[1] are of
    for (const Between& y : rows_) {
      if (made[1] == y.lower) {
        std::swap(made_rows_[0], made_rows_[1]);
        std::swap(made[0], made[1]);
      }
      for (const int k : {0, 1}) {
        const int64_t from = k == 0 ? y.lower : y.upper;
        if (made[k] == from) continue;
        BetweenColumns(Row(size, from), RowValues(size.width), made_rows_[k].data());
        made[k] = from;
      }
      out = BetweenRows(y.part, out);
    }
  }

  // The pixels of a row, each between two of the input's row, four channels at a time: what a pixel has fewer of is
  // written over by the next.
  void BetweenColumns(const uint8_t* in, int64_t values, float* out) {
    float* const row = in_row_.data();
    for (int64_t i = 0; i < values; ++i) row[i] = static_cast<float>(in[i]);
    for (const Between& x : columns_) {
      const Four lower = LoadFour(&in_row_[static_cast<size_t>(RowValues(x.lower))]);
      const Four upper = LoadFour(&in_row_[static_cast<size_t>(RowValues(x.upper))]);
      StoreFour(lower + (upper - lower) * x.part, out);
      out += decode_.channels;
    }
  }

  float* BetweenRows(float part, float* out) const {
    const float* const top = made_rows_[0].data();
    const float* const bottom = made_rows_[1].data();
    const auto values = static_cast<size_t>(RowValues(decode_.width));
    for (size_t i = 0; i < values; ++i) out[i] = top[i] + (bottom[i] - top[i]) * part;
    return out + values;
  }

  void Prepare(ImageSize size) {
    in_ = size;
    rows_ = Lines(size.height, decode_.height);
    columns_ = Lines(size.width, decode_.width);
    in_row_.resize(static_cast<size_t>(RowValues(size.width)) + kLanes);
    for (auto& row : made_rows_) row.resize(static_cast<size_t>(RowValues(decode_.width)) + kLanes);
  }

  const DecodeImageOp decode_;
  const MapSite site_;
  const size_t values_;  // of one image
  ImageDecoder decoder_;
  std::vector<uint8_t> pixels_;   // of an image to be resized
  std::vector<int64_t> nearest_;  // by column, the first value of the pixel that it takes
  ImageSize in_;                  // for which rows_ and columns_ are
  std::vector<Between> rows_;
  std::vector<Between> columns_;
  std::vector<float> in_row_;        // a row of the input
  std::vector<float> made_rows_[2];  // two rows of the input, with the output's columns
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const DecodeImageOp& decode, const MapSite& site) {
  return std::make_unique<DecodeImageOperator>(decode, site);
}

}  // namespace headrace::side
