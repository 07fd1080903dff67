#include "sidecar/source/parquet_leaves.h"

#include <algorithm>
#include <map>

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
  std::map<int, std::vector<int>> by_arrow;  // by field
  for (const SchemaColumn& column : chosen) {
    std::vector<int> own;
    AddLeaves(FieldAt(manifest, column.path), &own);
    leaves.all.insert(leaves.all.end(), own.begin(), own.end());
    ParquetLeaves::Column& is = leaves.columns.emplace_back();
    if (own.size() == 1 && NumberColumn::Reads(*schema.Column(own[0]), *column.type)) {
      is.number = static_cast<int>(leaves.numbers.size());
      leaves.numbers.push_back({own[0], column.type});
    } else {
      std::vector<int>& of_field = by_arrow[column.path[0]];
      of_field.insert(of_field.end(), own.begin(), own.end());
    }
  }
  SortUnique(&leaves.all);
  for (auto& [field, own] : by_arrow) {
    SortUnique(&own);
    for (size_t c = 0; c < chosen.size(); ++c) {
      ParquetLeaves::Column& is = leaves.columns[c];
      if (is.number >= 0 || chosen[c].path[0] != field) continue;
      is.field = static_cast<int>(leaves.fields.size());
      is.path_within = PathIn(manifest.schema_fields, chosen[c].path, own);
      is.path_within.erase(is.path_within.begin());  // batches have this one field
    }
    leaves.fields.push_back(std::move(own));
  }
  return leaves;
}

}  // namespace headrace::side
