// tf.io.decode_image, then tf.image.resize: half-pixel centres, no antialiasing. Bilinear gives float32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "sidecar/decode/bilinear.h"
#include "sidecar/decode/image.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

constexpr size_t kBehind = 3;  // that Bilinear reads or writes behind a row

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
      return decoder_.Read(out + row * values_, site_.read_next);
    }
    const auto bytes_wanted = static_cast<size_t>(size.height * size.width * decode_.channels);
    if (pixels_.size() < bytes_wanted + kBehind) pixels_.resize(bytes_wanted + kBehind);
    RETURN_IF_ERROR(decoder_.Read(pixels_.data(), true));
    if (decode_.resize == ResizeMethod::kNearest) {
      Nearest(size, out + row * values_);
    } else {
      Interpolate(size, reinterpret_cast<float*>(out) + row * values_);
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
  void Interpolate(ImageSize size, float* out) {
    if (size.height != in_.height || size.width != in_.width) Prepare(size);
    const auto values = static_cast<size_t>(RowValues(decode_.width));
    int64_t made[2] = {-1, -1};  // which rows of the input made_rows_[0] and made_rows_[1] are of
    for (const Between& y : rows_) {
      if (made[1] == y.lower) {
        std::swap(made_rows_[0], made_rows_[1]);
        std::swap(made[0], made[1]);
      }
      for (const int k : {0, 1}) {
        const int64_t from = k == 0 ? y.lower : y.upper;
        if (made[k] == from) continue;
        bilinear_.columns(Row(size, from), columns_, decode_.channels, made_rows_[k].data());
        made[k] = from;
      }
      bilinear_.rows(made_rows_[0].data(), made_rows_[1].data(), y.part, values, out);
      out += values;
    }
  }

  void Prepare(ImageSize size) {
    in_ = size;
    rows_ = Lines(size.height, decode_.height);
    columns_ = Lines(size.width, decode_.width);
    for (Between& x : columns_) x = {RowValues(x.lower), RowValues(x.upper), x.part};
    for (auto& row : made_rows_) row.resize(static_cast<size_t>(RowValues(decode_.width)) + kBehind);
  }

  const Bilinear bilinear_ = BilinearFor();
  const DecodeImageOp decode_;
  const MapSite site_;
  const size_t values_;  // of one image
  ImageDecoder decoder_;
  std::vector<uint8_t> pixels_;   // of an image to be resized, and kBehind more
  std::vector<int64_t> nearest_;  // by column, the first value of the pixel that it takes
  ImageSize in_;                  // for which rows_ and columns_ are
  std::vector<Between> rows_;
  std::vector<Between> columns_;     // their places in a row
  std::vector<float> made_rows_[2];  // two rows of the input, with the output's columns
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const DecodeImageOp& decode, const MapSite& site) {
  return std::make_unique<DecodeImageOperator>(decode, site);
}

}  // namespace headrace::side
