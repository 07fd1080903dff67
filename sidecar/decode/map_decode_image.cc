// tf.io.decode_image, then tf.image.resize: half-pixel centres, no antialiasing. Bilinear gives float32.
#include <algorithm>
#include <cmath>
#include <cstring>

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
      const Status decoded = DecodeImage({from[i].data, from[i].size}, static_cast<int>(decode_.channels), &image_);
      if (!decoded.ok()) return Status(decoded.code(), site_.Where(records[i]) + decoded.message());
      switch (decode_.resize) {
        case ResizeMethod::kNone:
          if (image_.height != decode_.height || image_.width != decode_.width) return WrongShape(records[i]);
          std::memcpy(out + i * values_, image_.pixels.data(), values_);
          break;
        case ResizeMethod::kNearest: Nearest(out + i * values_); break;
        case ResizeMethod::kBilinear: Bilinear(reinterpret_cast<float*>(out) + i * values_); break;
      }
    }
    return {};
  }

 private:
  Status WrongShape(const Record& record) const {
    const auto text = [](int64_t height, int64_t width) {
      return std::to_string(height) + " x " + std::to_string(width);
    };
    return Corrupt(site_.Where(record) + "is " + text(image_.height, image_.width) + " pixels and the shape takes " +
                   text(decode_.height, decode_.width) + "; set " + site_.field +
                   ".decodeImage.resize to Bilinear or Nearest, or correct its shape");
  }

  const uint8_t* Pixel(int64_t y, int64_t x) const {
    return &image_.pixels[static_cast<size_t>((y * image_.width + x) * decode_.channels)];
  }

  void Nearest(uint8_t* out) const {
    const auto line = [](int64_t i, int64_t in, int64_t size) {
      return std::min(static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * Scale(in, size))), in - 1);
    };
    for (int64_t y = 0; y < decode_.height; ++y) {
      const int64_t from_y = line(y, image_.height, decode_.height);
      for (int64_t x = 0; x < decode_.width; ++x, out += decode_.channels) {
        const uint8_t* const pixel = Pixel(from_y, line(x, image_.width, decode_.width));
        std::copy_n(pixel, decode_.channels, out);
      }
    }
  }

  void Bilinear(float* out) {
    if (image_.height != in_height_ || image_.width != in_width_) {
      in_height_ = image_.height;
      in_width_ = image_.width;
      ys_ = Lines(in_height_, decode_.height);
      xs_ = Lines(in_width_, decode_.width);
    }
    for (const Between& y : ys_) {
      for (const Between& x : xs_) {
        const uint8_t* const corners[] = {Pixel(y.lower, x.lower), Pixel(y.lower, x.upper), Pixel(y.upper, x.lower),
                                          Pixel(y.upper, x.upper)};
        for (int64_t c = 0; c < decode_.channels; ++c) {
          const auto value = [&](int corner) { return static_cast<float>(corners[corner][c]); };
          const float top = value(0) + (value(1) - value(0)) * x.part;
          const float bottom = value(2) + (value(3) - value(2)) * x.part;
          *out++ = top + (bottom - top) * y.part;
        }
      }
    }
  }

  const DecodeImageOp decode_;
  const MapSite site_;
  const size_t values_;  // of one image
  Image image_;
  int64_t in_height_ = 0;  // for which ys_ and xs_ are
  int64_t in_width_ = 0;
  std::vector<Between> ys_;
  std::vector<Between> xs_;
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const DecodeImageOp& decode, const MapSite& site) {
  return std::make_unique<DecodeImageOperator>(decode, site);
}

}  // namespace headrace::side
