#include "sidecar/transform/compact_columns.h"

#include <map>

namespace headrace::side {

CompactColumns::CompactColumns(std::span<const RowAt> rows) {
  CopyRows(rows, this);
  std::map<Part, uint32_t> known;
  for (const RowAt& at : rows) {
    Origin is = at.block->OriginOf(at.row);
    Part part(is.path, std::move(is.part));
    // Neighbours mostly are of one part.
    if (part_of_.empty() || parts_[part_of_.back()] != part) {
      const auto [found, fresh] = known.try_emplace(std::move(part), static_cast<uint32_t>(parts_.size()));
      if (fresh) parts_.push_back(found->first);
      part_of_.push_back(found->second);
    } else {
      part_of_.push_back(part_of_.back());
    }
    row_of_.push_back(is.first_row);
  }
  bytes += rows.size() * (sizeof part_of_[0] + sizeof row_of_[0]);
}

ColumnsBlock::Origin CompactColumns::OriginOf(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  const auto& [path, part] = parts_[part_of_[at]];
  return {path, part, row_of_[at]};
}

}  // namespace headrace::side
