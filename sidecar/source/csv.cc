#include "sidecar/source/csv.h"

#include <algorithm>
#include <cstring>

#include "common/base/words.h"
#include "sidecar/core/arena.h"
#include "sidecar/decode/csv_fields.h"
#include "sidecar/decode/number_text.h"
#include "sidecar/source/lines.h"

namespace headrace::side {
namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr size_t kMostNamesShown = 20;

size_t Find(const uint8_t* data, char c, size_t begin, size_t end) {
  const void* const found = begin < end ? std::memchr(data + begin, c, end - begin) : nullptr;
  return found == nullptr ? kNone : static_cast<size_t>(static_cast<const uint8_t*>(found) - data);
}

std::string Shown(const std::vector<std::string_view>& names) {
  std::string shown;
  for (size_t i = 0; i < std::min(names.size(), kMostNamesShown); ++i) {
    shown += (i > 0 ? ", " : "") + ShownText(names[i]);
  }
  if (names.size() > kMostNamesShown) shown += " and " + std::to_string(names.size() - kMostNamesShown) + " more";
  return shown;
}

// Which of the columns that `features` read each of a file's is, or -1. Errors: InvalidArgument if one is missing.
Result<std::vector<int32_t>> Arrange(const std::vector<std::string_view>& names, const std::vector<Feature>& features) {
  const std::vector<std::string> wanted = CsvColumns(features);
  std::vector<int32_t> columns(names.size(), -1);
  size_t next = 0;
  for (size_t f = 0; f < features.size(); ++f) {
    for (size_t i = 0; i < std::max<size_t>(features[f].columns.size(), 1); ++i) {
      const std::string& column = wanted[next++];
      const std::string field = "spec.features[" + std::to_string(f) + "]." +
                                (features[f].columns.empty() ? "name" : "columns[" + std::to_string(i) + "]");
      const auto it = std::find(names.begin(), names.end(), column);
      if (it == names.end()) {
        const std::string nearest = NearestName(column, names);
        return InvalidArgument("the header has no column \"" + column + "\", which " + field + " names; " +
                               (nearest.empty() ? "" : "did you mean \"" + nearest + "\"? ") + "It holds " +
                               Shown(names));
      }
      if (std::find(it + 1, names.end(), column) != names.end()) {
        return InvalidArgument("the header names column \"" + column + "\", which " + field +
                               " names, twice; name each column once");
      }
      columns[static_cast<size_t>(it - names.begin())] = static_cast<int32_t>(next - 1);
    }
  }
  return columns;
}

class CsvFramer : public Framer {
 public:
  explicit CsvFramer(SourceContext& context)
      : csv_(std::get<FilesSource>(context.spec->source).csv), features_(context.spec->features), context_(context) {}

  Outcome Frame(BytesBlock* block, size_t size, bool last) override {
    block->origin.first_line = line_;
    size_t at = block->origin.offset == 0 ? ByteOrderMark(block->data(), size) : 0;
    if (columns_ == nullptr) {
      const Outcome header = ReadHeader(block->data(), at, size, last);
      if (columns_ == nullptr) return header;
      at = header.consumed;
    }
    block->origin.columns = columns_;
    if (Find(block->data(), '"', at, size) == kNone) {
      return FrameLines(block, at, size, last, BlankLines::kArePassedOverIfEmpty, &line_);
    }
    while (at < size) {
      const Line line = NextLine(block->data(), at, size, last);
      if (line.end == kNone) return Unfinished(at, size, last, line);
      const size_t bytes = LineSize(block->data(), at, line.end);
      if (bytes > 0) block->Add(at, bytes);
      at = Pass(line, size);
    }
    return {at, {}, 0};
  }

 private:
  // A record, with its quoted line ends.
  struct Line {
    size_t end = kNone;         // where its line end is, or the data's end; kNone: it is not whole
    uint64_t lines = 0;         // line ends up to there, its own left out
    size_t open_quote = kNone;  // whose closing one is not there
  };

  // Sets columns_, unless the header is not whole, or wrong, or the file empty.
  Outcome ReadHeader(const uint8_t* data, size_t at, size_t size, bool last) {
    std::vector<std::string_view> names(csv_.columns.begin(), csv_.columns.end());
    Arena unquoted;
    if (csv_.header) {
      Line line;
      size_t bytes = 0;
      while (bytes == 0) {
        if (at >= size) return {at, {}, 0};
        line = NextLine(data, at, size, last);
        if (line.end == kNone) return Unfinished(at, size, last, line);
        bytes = LineSize(data, at, line.end);
        if (bytes == 0) at = Pass(line, size);
      }
      const std::string complaint =
          SplitCsv({reinterpret_cast<const char*>(data + at), bytes}, csv_.delimiter, &unquoted, &names);
      if (!complaint.empty()) return {at, Corrupt("the header's " + complaint + "; quote as RFC 4180 does"), 0};
      const auto columns = Arrange(names, features_);
      if (!columns.ok()) return {at, columns.status(), 0};
      columns_ = context_.KeepColumns(*columns);
      return {Pass(line, size), {}, 0};
    }
    const auto columns = Arrange(names, features_);
    if (!columns.ok()) return {at, columns.status(), 0};
    columns_ = context_.KeepColumns(*columns);
    return {at, {}, 0};
  }

  // The record that begins at `at`.
  Line NextLine(const uint8_t* data, size_t at, size_t size, bool last) const {
    Line line;
    size_t from = at;
    size_t line_end = Find(data, '\n', from, size);
    while (true) {
      const size_t quote = Find(data, '"', from, std::min(line_end, size));
      if (quote == kNone) {
        line.end = line_end != kNone ? line_end : last ? size : kNone;
        return line;
      }
      from = quote + 1;
      // Only one that begins a field opens it.
      if (quote != at && data[quote - 1] != static_cast<uint8_t>(csv_.delimiter)) continue;
      const size_t closing = ClosingQuote(data, from, size, last);
      if (closing == kNone) {
        line.open_quote = quote;
        return line;
      }
      line.lines += static_cast<uint64_t>(std::count(data + from, data + closing, '\n'));
      from = closing + 1;
      if (line_end < from) line_end = Find(data, '\n', from, size);
    }
  }

  // kNone also if the data ends with a quote that may be the first of two.
  static size_t ClosingQuote(const uint8_t* data, size_t from, size_t size, bool last) {
    while (true) {
      const size_t quote = Find(data, '"', from, size);
      if (quote == kNone || (quote + 1 == size && !last)) return kNone;
      if (quote + 1 == size || data[quote + 1] != '"') return quote;
      from = quote + 2;
    }
  }

  // Goes on to the next line.
  size_t Pass(const Line& line, size_t size) {
    if (line.end == size) return size;
    line_ += line.lines + 1;
    return line.end + 1;
  }

  Outcome Unfinished(size_t at, size_t size, bool last, const Line& line) const {
    if (!last && size - at < kMaxLineBytes) return {at, {}, 0};
    const std::string where = "line " + std::to_string(line_) + ": ";
    if (line.open_quote == kNone) return {at, Corrupt(where + "is longer than 1 GiB"), 0};
    return {at,
            Corrupt(where + "a field begins with a quote, and no closing one follows; close it, or quote the field and "
                            "double the quotes in it"),
            0};
  }

  const CsvOptions& csv_;
  const std::vector<Feature>& features_;
  SourceContext& context_;
  const std::vector<int32_t>* columns_ = nullptr;  // of this file, once its header is read
  uint64_t line_ = 1;                              // that begins where the last call ended
};

}  // namespace

std::unique_ptr<Framer> MakeCsvFramer(SourceContext& context) { return std::make_unique<CsvFramer>(context); }

}  // namespace headrace::side
