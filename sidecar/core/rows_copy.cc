#include "sidecar/core/rows_copy.h"

#include <algorithm>

#include "sidecar/core/prefetch.h"

namespace headrace::side {
namespace {

using Rows = ColumnView::Rows;

// As many rows are turned at a time, so that what is written stays in the first cache from column to column.
constexpr size_t kRowsAtATime = 128;

// However the length of a row is told.
bool Varies(const ColumnView& view) { return view.rows != Rows::kFixed && view.rows != Rows::kNone; }

template <size_t Bytes>
void CopyValues(const uint8_t* from, size_t from_step, size_t rows, uint8_t* out, size_t step) {
  for (size_t r = 0; r < rows; ++r) std::memcpy(out + r * step, from + r * from_step, Bytes);
}

void CopyValues(const uint8_t* from, size_t from_step, size_t bytes, size_t rows, uint8_t* out, size_t step) {
  switch (bytes) {
    case 1: return CopyValues<1>(from, from_step, rows, out, step);
    case 2: return CopyValues<2>(from, from_step, rows, out, step);
    case 4: return CopyValues<4>(from, from_step, rows, out, step);
    case 8: return CopyValues<8>(from, from_step, rows, out, step);
    default:
      for (size_t r = 0; r < rows; ++r) std::memcpy(out + r * step, from + r * from_step, bytes);
  }
}

// Rows that follow one another in their block.
struct Run {
  const ColumnsBlock* block = nullptr;
  int64_t first = 0;
  size_t rows = 0;
};

std::vector<Run> RunsOf(std::span<const RowAt> rows) {
  std::vector<Run> runs;
  for (const RowAt& at : rows) {
    const bool follows = !runs.empty() && runs.back().block == at.block && runs.back().rows < kRowsAtATime &&
                         at.row == runs.back().first + static_cast<int64_t>(runs.back().rows);
    if (follows) {
      ++runs.back().rows;
    } else {
      runs.push_back({at.block, at.row, 1});
    }
  }
  return runs;
}

class Copy {
 public:
  Copy(std::span<const Run> runs, size_t rows, ColumnsBlock* to) : runs_(runs), rows_(rows), to_(*to) {
    const std::vector<ColumnView>& like = runs[0].block->columns;
    to_.rows = static_cast<int64_t>(rows);
    for (const ColumnView& view : like) to_.row_stride += view.rows == Rows::kFixed ? view.row_bytes() : 0;
    uint8_t* const side_by_side = Make(to_.row_stride * rows);
    to_.rows_begin = to_.row_stride > 0 ? side_by_side : nullptr;
    size_t offset = 0;
    for (size_t c = 0; c < like.size(); ++c) {
      ColumnView view;
      view.dtype = like[c].dtype;
      view.unit = like[c].unit;
      if (like[c].rows == Rows::kFixed) {
        view.rows = Rows::kFixed;
        view.values = side_by_side + offset;
        view.stride = to_.row_stride;
        offset += view.row_bytes();
      } else if (Varies(like[c])) {
        CopyVarying(c, &view);
      }
      if (like[c].rows != Rows::kNone) CopyBits(c, &view);
      to_.columns.push_back(view);
    }
    if (to_.row_stride > 0) CopyFixed(side_by_side);
  }

 private:
  void CopyFixed(uint8_t* out) {
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (i + kPrefetchAhead < runs_.size()) runs_[i + kPrefetchAhead].block->Prefetch(runs_[i + kPrefetchAhead].first);
      CopyFixed(runs_[i], out);
      out += runs_[i].rows * to_.row_stride;
    }
  }

  void CopyFixed(const Run& run, uint8_t* out) {
    const size_t stride = to_.row_stride;
    if (run.block->rows_begin != nullptr) {  // laid out like this one
      std::memcpy(out, run.block->rows_begin + static_cast<size_t>(run.first) * stride, run.rows * stride);
      return;
    }
    for (const ColumnView& from : run.block->columns) {
      if (from.rows != Rows::kFixed) continue;
      const size_t bytes = from.row_bytes();
      if (from.valid == nullptr) {
        CopyValues(from.Row(run.first).data, from.step(), bytes, run.rows, out, stride);
      } else {
        for (size_t r = 0; r < run.rows; ++r) {
          const int64_t row = run.first + static_cast<int64_t>(r);
          if (from.IsNull(row)) {
            std::memset(out + r * stride, 0, bytes);
          } else {
            std::memcpy(out + r * stride, from.Row(row).data, bytes);
          }
        }
      }
      out += bytes;
    }
  }

  // Calls fn(view, row in its block, row here) for each row.
  template <typename Fn>
  void ForEach(size_t column, Fn fn) {
    size_t at = 0;
    for (const Run& run : runs_) {
      const ColumnView& view = run.block->columns[column];
      for (size_t r = 0; r < run.rows; ++r) fn(view, run.first + static_cast<int64_t>(r), at++);
    }
  }

  // Nulls, and rows that hold some.
  void CopyBits(size_t column, ColumnView* view) {
    view->valid = CopyBits(column, &ColumnView::valid, 0xff,
                           [](const ColumnView& from, int64_t row) { return from.IsNull(row); });
    view->holes =
        CopyBits(column, &ColumnView::holes, 0, [](const ColumnView& from, int64_t row) { return from.HasHole(row); });
  }

  // Eight rows' bits are `usual`, but for rows that are not; nullptr where no block has such bits.
  template <typename Differs>
  const uint8_t* CopyBits(size_t column, const uint8_t* ColumnView::*bits, int usual, Differs differs) {
    const bool any = std::any_of(runs_.begin(), runs_.end(),
                                 [&](const Run& run) { return run.block->columns[column].*bits != nullptr; });
    if (!any) return nullptr;
    uint8_t* const copied = Make((rows_ + 7) / 8);
    std::memset(copied, usual, (rows_ + 7) / 8);
    ForEach(column, [&](const ColumnView& from, int64_t row, size_t at) {
      if (differs(from, row)) copied[at >> 3] = static_cast<uint8_t>(copied[at >> 3] ^ 1 << (at & 7));
    });
    return copied;
  }

  void CopyVarying(size_t column, ColumnView* view) {
    auto* const offsets = reinterpret_cast<int64_t*>(Make((rows_ + 1) * sizeof(int64_t)));
    const size_t unit_bytes = std::max<size_t>(view->row_bytes(), 1);
    size_t size = 0;
    ForEach(column, [&](const ColumnView& from, int64_t row, size_t at) {
      offsets[at] = static_cast<int64_t>(size / unit_bytes);
      size += from.IsNull(row) ? 0 : from.Row(row).size;
    });
    offsets[rows_] = static_cast<int64_t>(size / unit_bytes);
    uint8_t* out = Make(size);
    view->rows = Rows::kOffsets64;
    view->offsets = offsets;
    view->values = out;
    ForEach(column, [&](const ColumnView& from, int64_t row, size_t) {
      const BytesRef bytes = from.IsNull(row) ? BytesRef() : from.Row(row);
      if (bytes.size > 0) std::memcpy(out, bytes.data, bytes.size);
      out += bytes.size;
    });
  }

  // Aligned for any value.
  uint8_t* Make(size_t size) {
    auto made = std::shared_ptr<uint8_t[]>(new uint8_t[size]);
    uint8_t* const memory = made.get();
    to_.keeps.push_back(std::move(made));
    to_.bytes += size;
    return memory;
  }

  const std::span<const Run> runs_;
  const size_t rows_;
  ColumnsBlock& to_;
};

}  // namespace

bool AreAlike(const ColumnsBlock& a, const ColumnsBlock& b) {
  const auto alike = [](const ColumnView& x, const ColumnView& y) {
    return x.dtype == y.dtype && x.unit == y.unit && (x.rows == y.rows || (Varies(x) && Varies(y)));
  };
  return &a == &b || std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(), alike);
}

void CopyRows(std::span<const RowAt> rows, ColumnsBlock* to) { Copy(RunsOf(rows), rows.size(), to); }

std::unique_ptr<ColumnsBlock> ByRow(std::unique_ptr<ColumnsBlock> block) {
  const bool fixed = std::any_of(block->columns.begin(), block->columns.end(),
                                 [](const ColumnView& view) { return view.rows == Rows::kFixed; });
  if (!fixed || block->rows == 0) return block;
  std::vector<Run> runs;
  for (int64_t row = 0; row < block->rows; row += kRowsAtATime) {
    runs.push_back({block.get(), row, static_cast<size_t>(std::min<int64_t>(kRowsAtATime, block->rows - row))});
  }
  auto by_row = std::make_unique<ColumnsBlock>();
  by_row->origin = block->origin;
  Copy(runs, static_cast<size_t>(block->rows), by_row.get());
  return by_row;
}

}  // namespace headrace::side
