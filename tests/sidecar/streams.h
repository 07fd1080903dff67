// Streams of numbers for the tests of transformations and cuts.
#pragma once

#include <vector>

#include "sidecar/core/dataset.h"
#include "sidecar/source/source.h"

namespace headrace::side {

inline DatasetPtr<Record> Numbers(int64_t count) { return MakeRows(count); }

// Reads to the end, `block` elements at a time. REQUIRES: no error, fewer than 10,000 elements.
template <typename T>
std::vector<T> ReadAll(const Dataset<T>& dataset, Pass pass = {}, size_t block = 3) {
  const auto stream = dataset.Iterate(pass);
  std::vector<T> all;
  while (all.size() < 10000) {
    std::vector<T> out(block);
    const auto read = stream->Read(out);
    if (!read.ok() || *read == 0) break;
    for (size_t i = 0; i < *read; ++i) all.push_back(std::move(out[i]));
  }
  return all;
}

inline std::vector<int64_t> Values(const Dataset<Record>& dataset, Pass pass = {}, size_t block = 3) {
  std::vector<int64_t> values;
  for (const Record& record : ReadAll(dataset, pass, block)) values.push_back(record.value);
  return values;
}

inline std::vector<int64_t> Values(std::span<const Record> records) {
  std::vector<int64_t> values;
  for (const Record& record : records) values.push_back(record.value);
  return values;
}

}  // namespace headrace::side
