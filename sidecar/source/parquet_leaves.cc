#include "sidecar/source/parquet_leaves.h"

#include <algorithm>

#include "sidecar/source/parquet_numbers.h"

namespace headrace::side {
namespace {

using parquet::arrow::SchemaField;

void AddLeaves(const SchemaField& field, std::vector<int>* leaves) {
  if (field.is_leaf()) leaves->push_back(field.column_index);
  for (const SchemaField& child : field.children) AddLeaves(child, leaves);
}

const SchemaField& FieldAt(const parquet::arrow::SchemaManifest& manifest, std::span<const int> path) {
  const SchemaField* field = &manifest.schema_fields[static_cast<size_t>(path[0])];
  for (const int within : path.subspan(1)) field = &field->children[static_cast<size_t>(within)];
  return *field;
}

bool ReadsAnyOf(const SchemaField& field, const std::vector<int>& leaves) {
  std::vector<int> own;
  AddLeaves(field, &own);
  return std::any_of(own.begin(), own.end(),
                     [&](int leaf) { return std::binary_search(leaves.begin(), leaves.end(), leaf); });
}

// Where a column lies in batches that hold those leaves only, and of structs those fields only that have some.
std::vector<int> PathIn(const std::vector<SchemaField>& fields, std::span<const int> path,
                        const std::vector<int>& leaves) {
  const auto at = static_cast<size_t>(path[0]);
  std::vector<int> found = {0};
  for (size_t before = 0; before < at; ++before) found[0] += ReadsAnyOf(fields[before], leaves) ? 1 : 0;
  if (path.size() == 1) return found;
  const std::vector<int> within = PathIn(fields[at].children, path.subspan(1), leaves);
  found.insert(found.end(), within.begin(), within.end());
  return found;
}

void SortUnique(std::vector<int>* leaves) {
  std::sort(leaves->begin(), leaves->end());
  leaves->erase(std::unique(leaves->begin(), leaves->end()), leaves->end());
}

}  // namespace

ParquetLeaves LeavesOf(const parquet::SchemaDescriptor& schema, const parquet::arrow::SchemaManifest& manifest,
                       const std::vector<SchemaColumn>& chosen) {
  ParquetLeaves leaves;
  for (const SchemaColumn& column : chosen) {
    std::vector<int> own;
    AddLeaves(FieldAt(manifest, column.path), &own);
    leaves.all.insert(leaves.all.end(), own.begin(), own.end());
    const bool number = own.size() == 1 && NumberColumn::Reads(*schema.Column(own[0]), *column.type);
    if (!number) leaves.by_arrow.insert(leaves.by_arrow.end(), own.begin(), own.end());
    leaves.columns.push_back({column.type, number ? own[0] : -1, -1, {}});
  }
  SortUnique(&leaves.all);
  SortUnique(&leaves.by_arrow);
  for (size_t c = 0; c < chosen.size(); ++c) {
    ParquetLeaves::Column& column = leaves.columns[c];
    if (column.number >= 0) continue;
    column.path_within = PathIn(manifest.schema_fields, chosen[c].path, leaves.by_arrow);
    column.batch_column = column.path_within.front();
    column.path_within.erase(column.path_within.begin());
  }
  return leaves;
}

}  // namespace headrace::side
