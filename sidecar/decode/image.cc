#include "sidecar/decode/image.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

// jpeglib.h needs size_t and FILE before it.
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "sidecar/core/stream_copy.h"

namespace headrace::side {
namespace {

constexpr uint64_t kMaxPixelBytes = uint64_t{1} << 28;  // a few bytes can claim to be any size
constexpr JDIMENSION kJpegRows = MAX_SAMP_FACTOR;       // the most that libjpeg gives at once
constexpr size_t kStoreBytes = 32;                      // of libjpeg-turbo's widest

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

// Where rows go, and on what way.
struct JpegRows {
  uint8_t* pixels = nullptr;
  size_t row_bytes = 0;
  uint8_t* some = nullptr;  // for kJpegRows, if they are not to be decoded where they belong
  bool streamed = false;    // from there
};

// Reads the header (rows null), or all rows. false: error->message says why.
bool RunJpeg(jpeg_decompress_struct* jpeg, JpegError* error, const JpegRows* rows) {
  if (setjmp(error->jump) != 0) return false;
  if (rows == nullptr) {
    jpeg_read_header(jpeg, TRUE);
    return true;
  }
  jpeg_start_decompress(jpeg);
  uint8_t* row[kJpegRows];
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t* const next = rows->pixels + jpeg->output_scanline * rows->row_bytes;
    uint8_t* const into = rows->some != nullptr ? rows->some : next;
    for (JDIMENSION i = 0; i < kJpegRows; ++i) row[i] = into + i * rows->row_bytes;
    const JDIMENSION most = std::min(kJpegRows, jpeg->output_height - jpeg->output_scanline);
    const size_t bytes = jpeg_read_scanlines(jpeg, row, most) * rows->row_bytes;
    if (into == next) continue;
    if (rows->streamed) {
      StreamBytes(next, into, bytes);
    } else {
      std::memcpy(next, into, bytes);
    }
  }
  jpeg_finish_decompress(jpeg);
  EndStreaming();
  return true;
}

// Made once: libjpeg keeps its tables and its memory for the next image. All that decides about pixels is left at its
// default, the accurate integer DCT and smooth upsampling, so that they are those of any other decoder that does so.
class JpegReader {
 public:
  JpegReader() {
    jpeg_.err = jpeg_std_error(&error_.manager);
    error_.manager.error_exit = JpegFails;
    error_.manager.emit_message = JpegWarns;
    jpeg_create_decompress(&jpeg_);
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Result<ImageSize> Open(std::span<const uint8_t> bytes, int channels) {
    if (channels == 4) return Corrupt("is a JPEG image, which has no fourth channel; give the shape 1 or 3 channels");
    jpeg_abort_decompress(&jpeg_);  // the last one, if it was not read to its end
    jpeg_mem_src(&jpeg_, bytes.data(), bytes.size());
    if (!RunJpeg(&jpeg_, &error_, nullptr)) return Broken();
    jpeg_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    row_bytes_ = size_t{jpeg_.image_width} * static_cast<size_t>(channels);
    if (uint64_t{row_bytes_} * jpeg_.image_height > kMaxPixelBytes) {
      return TooLarge(jpeg_.image_width, jpeg_.image_height);
    }
    return ImageSize{jpeg_.image_height, jpeg_.image_width};
  }

  // libjpeg-turbo turns colours into rows of RGB by stores that pass the caches by, if a row's place allows it: half a
  // line of 64 bytes at a time, with a fence behind each row. So it is given a place that does not; to a slot of the
  // ring, which nobody reads soon, the rows are streamed from there, in whole lines and with one fence.
  Status Read(uint8_t* pixels, bool read_soon) {
    JpegRows rows{pixels, row_bytes_};
    if (jpeg_.out_color_space == JCS_RGB) {
      rows.some = SomeRows();
      rows.streamed =
          !read_soon && row_bytes_ % kStoreBytes == 0 && reinterpret_cast<uintptr_t>(pixels) % kStoreBytes == 0;
    }
    return RunJpeg(&jpeg_, &error_, &rows) ? Status() : Broken();
  }

 private:
  // The first of them is half of kStoreBytes beside what would allow whole ones.
  uint8_t* SomeRows() {
    rows_.resize(std::max(rows_.size(), kJpegRows * row_bytes_ + 2 * kStoreBytes));
    const size_t beyond = reinterpret_cast<uintptr_t>(rows_.data()) % kStoreBytes;
    return rows_.data() + kStoreBytes - beyond + kStoreBytes / 2;
  }

  Status Broken() const { return Corrupt(std::string("is a broken JPEG image: ") + error_.message); }

  JpegError error_{};
  jpeg_decompress_struct jpeg_{};
  size_t row_bytes_ = 0;
  std::vector<uint8_t> rows_;
};

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

class PngReader {
 public:
  PngReader() = default;
  ~PngReader() { Close(); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Result<ImageSize> Open(std::span<const uint8_t> bytes, int channels) {
    Close();
    input_ = {bytes.data(), bytes.size(), {}};
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, PngFails, PngWarns);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return Exhausted("has no memory to be decoded in");
    png_set_read_fn(png_, &input_, ReadPng);
    if (!RunPng(png_, info_, channels, nullptr)) return Broken();
    const uint64_t width = png_get_image_width(png_, info_);
    const uint64_t height = png_get_image_height(png_, info_);
    row_bytes_ = width * static_cast<uint64_t>(channels);
    if (row_bytes_ * height > kMaxPixelBytes) return TooLarge(width, height);
    if (png_get_rowbytes(png_, info_) != row_bytes_) {
      return Corrupt("is a PNG image of a kind that cannot be decoded");
    }
    rows_.resize(height);
    return ImageSize{static_cast<int64_t>(height), static_cast<int64_t>(width)};
  }

  Status Read(uint8_t* pixels) {
    for (size_t y = 0; y < rows_.size(); ++y) rows_[y] = pixels + y * row_bytes_;
    return RunPng(png_, info_, 0, rows_.data()) ? Status() : Broken();
  }

 private:
  Status Broken() const { return Corrupt(std::string("is a broken PNG image: ") + input_.message); }
  void Close() { png_destroy_read_struct(&png_, &info_, nullptr); }

  PngInput input_{};
  png_structp png_ = nullptr;  // of one image
  png_infop info_ = nullptr;
  size_t row_bytes_ = 0;
  std::vector<png_bytep> rows_;
};

}  // namespace

struct ImageDecoder::Readers {
  JpegReader jpeg;
  PngReader png;
};

ImageDecoder::ImageDecoder() : readers_(std::make_unique<Readers>()) {}
ImageDecoder::~ImageDecoder() = default;

Result<ImageSize> ImageDecoder::Open(std::span<const uint8_t> bytes, int channels) {
  is_png_ = bytes.size() > 8 && png_sig_cmp(bytes.data(), 0, 8) == 0;
  if (is_png_) return readers_->png.Open(bytes, channels);
  if (bytes.size() > 2 && bytes[0] == 0xff && bytes[1] == 0xd8) return readers_->jpeg.Open(bytes, channels);
  return Corrupt("is neither a JPEG nor a PNG image; its " + std::to_string(bytes.size()) + " bytes begin otherwise");
}

Status ImageDecoder::Read(uint8_t* pixels, bool read_soon) {
  return is_png_ ? readers_->png.Read(pixels) : readers_->jpeg.Read(pixels, read_soon);
}

}  // namespace headrace::side
