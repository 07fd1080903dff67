// Any bytes as a CSV file, in blocks of any size: rows as a reader that goes byte by byte has them, until an error that
// says something. Nothing is touched outside the rows.
#include <bit>
#include <cmath>
#include <cstdlib>

#include "sidecar/source/csv.h"
#include "sidecar/source/lines.h"
#include "tests/fuzz/frame.h"
#include "tests/fuzz/target.h"

using namespace headrace;
using namespace headrace::side;

namespace {

// The records that are whole and right as far as quotes go, up to the first that is not.
std::vector<std::vector<std::string>> RecordsOf(std::string bytes) {
  if (bytes.rfind(kByteOrderMark, 0) == 0) bytes.erase(0, kByteOrderMark.size());
  if (!bytes.empty() && bytes.back() != '\n') bytes += '\n';
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> fields(1);
  enum { kBegin, kPlain, kQuoted, kClosed } state = kBegin;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool line_end = c == '\n' || (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n');
    if (state == kQuoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < bytes.size() && bytes[i + 1] == '"') {
        fields.back() += bytes[++i];
      } else {
        state = kClosed;
      }
    } else if (line_end) {
      if (c == '\r') ++i;
      if (fields.size() > 1 || !fields[0].empty() || state == kClosed) records.push_back(fields);
      fields.assign(1, "");
      state = kBegin;
    } else if (c == ',') {
      fields.emplace_back();
      state = kBegin;
    } else if (state == kClosed) {
      return records;
    } else if (state == kBegin && c == '"') {
      state = kQuoted;
    } else {
      fields.back() += c;
      state = kPlain;
    }
  }
  return records;
}

InputSpec SpecOf() {
  InputSpec spec;
  FilesSource files;
  files.format = FileFormat::kCsv;
  files.csv.header = false;
  files.csv.columns = {"a", "s", "b", "n", "skipped"};
  spec.source = files;
  Feature x;
  x.name = "x";
  x.shape = {2};
  x.columns = {"a", "b"};
  x.has_default = true;
  x.default_value = {0.5};
  Feature s;
  s.name = "s";
  s.dtype = DType::kString;
  Feature n;
  n.name = "n";
  n.dtype = DType::kInt64;
  spec.features = {x, s, n};
  return spec;
}

bool IsFloatOf(float value, const std::string& text) {
  const float expected = text.empty() ? 0.5F : std::strtof(text.c_str(), nullptr);
  return std::isnan(value) ? std::isnan(expected) : std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const InputSpec spec = SpecOf();
  static const auto decoder = FormatOf(FileFormat::kCsv).decoder(spec);
  static SourceContext context;
  context.spec = &spec;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const fuzz::Framed all = fuzz::FrameAll(MakeCsvFramer(context).get(), &context.blocks, bytes, 3 + data[0]);
  const auto expected = RecordsOf(bytes);
  const auto x = std::make_unique<float[]>(2);
  const auto s = std::make_unique<BytesRef>();
  const auto n = std::make_unique<int64_t>();
  uint8_t* const columns[] = {reinterpret_cast<uint8_t*>(x.get()), reinterpret_cast<uint8_t*>(s.get()),
                              reinterpret_cast<uint8_t*>(n.get())};
  for (size_t i = 0; i < all.records.size(); ++i) {
    const Status status = decoder->Decode({&all.records[i], 1}, columns);
    if (!status.ok()) {
      if (status.message().find("fuzz: line ") != 0) std::abort();  // does not say where
      return 0;
    }
    if (i >= expected.size() || expected[i].size() != 5) std::abort();
    const std::string text(reinterpret_cast<const char*>(s->data), s->size);
    if (text != expected[i][1] || !IsFloatOf(x[0], expected[i][0]) || !IsFloatOf(x[1], expected[i][2])) std::abort();
    if (*n != std::strtoll(expected[i][3].c_str(), nullptr, 10)) std::abort();
  }
  if (all.error.ok() && all.records.size() != expected.size()) std::abort();
  return 0;
}

const int headrace::fuzz::kMutations = 100000;

std::vector<std::string> headrace::fuzz::Seeds() {
  return {
      "\x04"
      "1.5,text,-0.25,7,x\n2,,3e5,-8,\n",
      "\x40"
      "1,\"a,\"\"b\"\"\n\",2,3,\r\n\r\n,\"\",,4,\"\"\n",
      "\xff"
      "-1.0399841062404955,6\" x,nan,9223372036854775807,\"z\"",
      "\x10"
      "\xef\xbb\xbf"
      "+1 , s,inf,0,0\n0.000001,s,16777217,1,1\n"};
}
