#include "sidecar/decode/image.h"

#include <csetjmp>
#include <cstdio>
#include <cstring>

// jpeglib.h needs size_t and FILE before it.
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

namespace headrace::side {
namespace {

constexpr uint64_t kMaxPixelBytes = uint64_t{1} << 28;  // a few bytes can claim to be any size

Status TooLarge(uint64_t width, uint64_t height) {
  return Corrupt("says that it is " + std::to_string(height) + " x " + std::to_string(width) +
                 " pixels, more than 256 MiB decoded");
}

// Both libraries report errors by a jump, over which no C++ object may live: each has one function of plain values that
// jumps, and its caller owns all memory.

struct JpegError {
  jpeg_error_mgr manager;  // first: libjpeg gives this back
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void JpegFails(j_common_ptr info) {
  auto* const error = reinterpret_cast<JpegError*>(info->err);
  info->err->format_message(info, error->message);
  std::longjmp(error->jump, 1);
}

// A file that ends early is filled up with grey by libjpeg, which only warns; TensorFlow refuses it, and so do we.
void JpegWarns(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) JpegFails(info);
}

// Reads the header (pixels null), or all rows. false: error->message says why.
bool RunJpeg(jpeg_decompress_struct* jpeg, JpegError* error, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(error->jump) != 0) return false;
  if (pixels == nullptr) {
    jpeg_read_header(jpeg, TRUE);
    return true;
  }
  jpeg_start_decompress(jpeg);
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t* row = pixels + jpeg->output_scanline * row_bytes;
    jpeg_read_scanlines(jpeg, &row, 1);
  }
  jpeg_finish_decompress(jpeg);
  return true;
}

Status DecodeJpeg(std::span<const uint8_t> bytes, int channels, Image* image) {
  if (channels == 4) return Corrupt("is a JPEG image, which has no fourth channel; give the shape 1 or 3 channels");
  JpegError error{};
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&error.manager);
  error.manager.error_exit = JpegFails;
  error.manager.emit_message = JpegWarns;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  Status status;
  if (!RunJpeg(&jpeg, &error, nullptr, 0)) {
    status = Corrupt(std::string("is a broken JPEG image: ") + error.message);
  } else if (uint64_t{jpeg.image_width} * jpeg.image_height * static_cast<uint64_t>(channels) > kMaxPixelBytes) {
    status = TooLarge(jpeg.image_width, jpeg.image_height);
  } else {
    jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    image->height = jpeg.image_height;
    image->width = jpeg.image_width;
    const size_t row_bytes = size_t{jpeg.image_width} * static_cast<size_t>(channels);
    image->pixels.resize(row_bytes * jpeg.image_height);
    if (!RunJpeg(&jpeg, &error, image->pixels.data(), row_bytes)) {
      status = Corrupt(std::string("is a broken JPEG image: ") + error.message);
    }
  }
  jpeg_destroy_decompress(&jpeg);
  return status;
}

struct PngInput {
  const uint8_t* at;
  size_t left;
  char message[128];
};

void PngFails(png_structp png, png_const_charp message) {
  auto* const input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::snprintf(input->message, sizeof input->message, "%s", message);
  png_longjmp(png, 1);
}

void PngWarns(png_structp, png_const_charp) {}

void ReadPng(png_structp png, png_bytep out, size_t size) {
  auto* const input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (size > input->left) png_error(png, "it ends too early");
  std::memcpy(out, input->at, size);
  input->at += size;
  input->left -= size;
}

// Reads the header (rows null) and sets what turns any PNG into 8 bits of `channels`; or reads all rows.
bool RunPng(png_structp png, png_infop info, int channels, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  if (rows != nullptr) {
    png_read_image(png, rows);
    png_read_end(png, nullptr);
    return true;
  }
  png_read_info(png, info);
  const int color = png_get_color_type(png, info);
  const bool has_transparency = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  png_set_expand(png);  // palettes, fewer than 8 bits, and transparent colours as alpha
  png_set_strip_16(png);
  if (channels == 1 && (color & PNG_COLOR_MASK_COLOR) != 0) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
  if (channels > 1 && (color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  if (channels < 4) {
    png_set_strip_alpha(png);
  } else if ((color & PNG_COLOR_MASK_ALPHA) == 0 && !has_transparency) {
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

Status DecodePng(std::span<const uint8_t> bytes, int channels, Image* image) {
  PngInput input{bytes.data(), bytes.size(), {}};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, PngFails, PngWarns);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return Exhausted("has no memory to be decoded in");
  }
  png_set_read_fn(png, &input, ReadPng);
  Status status;
  std::vector<png_bytep> rows;
  if (RunPng(png, info, channels, nullptr)) {
    const uint64_t width = png_get_image_width(png, info);
    const uint64_t height = png_get_image_height(png, info);
    const size_t row_bytes = width * static_cast<uint64_t>(channels);
    if (row_bytes * height > kMaxPixelBytes) {
      status = TooLarge(width, height);
    } else if (png_get_rowbytes(png, info) != row_bytes) {
      status = Corrupt("is a PNG image of a kind that cannot be decoded");
    } else {
      image->height = static_cast<int64_t>(height);
      image->width = static_cast<int64_t>(width);
      image->pixels.resize(row_bytes * height);
      for (uint64_t y = 0; y < height; ++y) rows.push_back(&image->pixels[y * row_bytes]);
      if (!RunPng(png, info, channels, rows.data())) status = Corrupt("");
    }
  } else {
    status = Corrupt("");
  }
  png_destroy_read_struct(&png, &info, nullptr);
  if (!status.ok() && status.message().empty()) {
    return Corrupt(std::string("is a broken PNG image: ") + input.message);
  }
  return status;
}

}  // namespace

Status DecodeImage(std::span<const uint8_t> bytes, int channels, Image* image) {
  if (bytes.size() > 2 && bytes[0] == 0xff && bytes[1] == 0xd8) return DecodeJpeg(bytes, channels, image);
  if (bytes.size() > 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) return DecodePng(bytes, channels, image);
  return Corrupt("is neither a JPEG nor a PNG image; its " + std::to_string(bytes.size()) + " bytes begin otherwise");
}

}  // namespace headrace::side
