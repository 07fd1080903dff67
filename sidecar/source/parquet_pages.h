// The pages of a column, of which those that hold plain numbers need no decoding. Compiled into libheadrace_arrow.so
// only.
#pragma once

#include <arrow/buffer.h>
#include <parquet/column_page.h>
#include <parquet/column_reader.h>

#include <memory>
#include <optional>

namespace headrace::side {

// Of one column of a row group, in their order: each is either taken as it lies or read by the parquet::ColumnReader
// that this is made for. Throws what Parquet's readers throw.
class ColumnPages : public parquet::PageReader {
 public:
  // A page's values, one a row and none of them null.
  struct Plain {
    std::shared_ptr<arrow::Buffer> keeps;  // what they lie in; nothing: they are there until the next page is taken
    const uint8_t* values = nullptr;       // of any alignment
    int64_t rows = 0;
  };

  // `value_bytes`: of a value as pages hold it, one after another; 0: none is taken. `stay`: whether pages are there as
  // long as their buffers. REQUIRES: the column is not repeated, and outlives this.
  ColumnPages(std::unique_ptr<parquet::PageReader> pages, const parquet::ColumnDescriptor* column, size_t value_bytes,
              bool stay)
      : pages_(std::move(pages)), column_(*column), value_bytes_(value_bytes), stay_(stay) {}

  // Takes the next page, if it can be taken as it lies; nothing otherwise: NextPage has it.
  std::optional<Plain> TakePlain();
  // Of the last page of data that NextPage gave: its rows, and whether for certain none of them is null.
  int64_t rows() const { return rows_; }
  bool no_nulls() const { return no_nulls_; }

  std::shared_ptr<parquet::Page> NextPage() override;
  void set_max_page_header_size(uint32_t size) override { pages_->set_max_page_header_size(size); }

 private:
  const std::unique_ptr<parquet::PageReader> pages_;
  const parquet::ColumnDescriptor& column_;
  const size_t value_bytes_;
  const bool stay_;
  std::shared_ptr<parquet::Page> next_;   // that was looked at already
  std::shared_ptr<parquet::Page> taken_;  // by TakePlain, the last one
  int64_t rows_ = 0;
  bool no_nulls_ = false;
};

}  // namespace headrace::side
