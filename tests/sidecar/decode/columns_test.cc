// Rows of columns as features, read from files that Arrow's own writer made.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/sidecar/tables.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using ColumnsDecoder = OneParquetFile;

TEST_F(ColumnsDecoder, CastsToWhatIsAskedFor) {
  Write({{"i64", arrow::int64(), "[1, -2, 300]"},
         {"u8", arrow::uint8(), "[1, 2, 3]"},
         {"f64", arrow::float64(), "[0.5, 0.1, 1e300]"},
         {"b", arrow::boolean(), "[true, false, true]"}});
  const Delivered all = All(R"([{"name": "i64", "dtype": "int16"}, {"name": "u8", "dtype": "float64"}, {"name": "f64"},
      {"name": "b", "dtype": "int32"}, {"name": "x", "dtype": "float32", "shape": [3], "columns": ["u8", "f64", "i64"]}])");
  EXPECT_THAT(all.Values<int16_t>(0), ElementsAre(1, -2, 300));
  EXPECT_THAT(all.Values<double>(1), ElementsAre(1, 2, 3));
  EXPECT_THAT(all.Values<float>(2), ElementsAre(0.5F, 0.1F, INFINITY));
  EXPECT_THAT(all.Values<int32_t>(3), ElementsAre(1, 0, 1));
  EXPECT_THAT(all.Values<float>(4), ElementsAre(1, 0.5F, 1, 2, 0.1F, -2, 3, INFINITY, 300));
}

TEST_F(ColumnsDecoder, PadsLists) {
  Write({{"any", arrow::list(arrow::float64()), "[[1, 2], [], null, [3, 4, 5]]"}});
  auto run =
      folder_.Run(R"([{"name": "any", "shape": [-1]}])",
                  R"([{"paddedBatch": {"size": 4, "paddedShapes": {"any": [3]}, "paddingValues": {"any": -1}}}])");
  EXPECT_THAT(run.Values<float>(), ElementsAre(1, 2, -1, -1, -1, -1, -1, -1, -1, 3, 4, 5));
}

TEST_F(ColumnsDecoder, NullsBecomeTheDefaultOrAnError) {
  Write({{"x", arrow::float32(), "[1, null, 3, null, null, 6]"}, {"y", arrow::int64(), "[1, 2, 3, 4, null, 6]"}}, 4);
  EXPECT_THAT(All(R"([{"name": "x", "default": [0.5]}])").Values<float>(), ElementsAre(1, 0.5, 3, 0.5, 0.5, 6));
  EXPECT_THAT(All(R"([{"name": "v", "shape": [2], "columns": ["x", "y"], "default": [-1, -2]}])").Values<float>(),
              ElementsAre(1, 1, -1, 2, 3, 3, -1, 4, -1, -2, 6, 6));
  EXPECT_EQ(folder_.ErrorOf(R"([{"name": "y"}])"),
            "Corrupt: " + folder_.path() +
                "/a.parquet: row group 1, row 0: feature \"y\" is null; give it a default in "
                "spec.features, or write the file without nulls");
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "v", "shape": [2], "columns": ["y", "x"]}])"),
              HasSubstr("row group 0, row 1: feature \"v\", column \"x\" is null"));
}

TEST_F(ColumnsDecoder, NullsWithinListsAndOfStringsAreErrors) {
  Write({{"l", arrow::list(arrow::int32()), "[[1, 2], [3, null], [null]]"},
         {"s", arrow::utf8(), R"(["a", null, "c"])"},
         {"n", arrow::null(), "[null, null, null]"}});
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "l", "dtype": "int32", "shape": [-1]}])"),
              HasSubstr("row group 0, row 1: feature \"l\" holds a null among its values"));
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "l", "dtype": "int32", "shape": [2]}])"),
              HasSubstr("row group 0, row 1: feature \"l\" holds a null among its values"));
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "s", "dtype": "string"}])"),
              HasSubstr("row group 0, row 1: feature \"s\" is null"));
  EXPECT_THAT(All(R"([{"name": "n", "dtype": "int32", "default": [4]}])").Values<int32_t>(), ElementsAre(4, 4, 4));
}

TEST_F(ColumnsDecoder, WhatDoesNotFitIsNamed) {
  Write({{"big", arrow::int64(), "[1, 2, 3000000000, 4]"},
         {"l", arrow::list(arrow::int32()), "[[1], [1, 2], [1], [1]]"}});
  EXPECT_THAT(
      folder_.ErrorOf(R"([{"name": "big", "dtype": "int32"}])"),
      HasSubstr(
          "a.parquet: row group 0, row 2: feature \"big\" holds 3000000000, which is no int32; give it a larger"));
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "v", "dtype": "uint8", "shape": [2], "columns": ["big", "big"]}])"),
              HasSubstr("row 2: feature \"v\", column \"big\" holds 3000000000, which is no uint8"));
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "l", "dtype": "int32", "shape": [1]}])"),
              HasSubstr("row 1: feature \"l\" holds 2 values and its shape takes 1"));
  EXPECT_THAT(folder_.ErrorOf(R"([{"name": "l", "dtype": "int32", "shape": [-1, 2]}])"),
              HasSubstr("row 0: feature \"l\" holds 1 values, which is no multiple of 2"));
}

TEST_F(ColumnsDecoder, ShufflesAndRepeats) {
  Write({{"x", arrow::int64(), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"},
         {"f", arrow::float32(), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"}},
        4);
  auto run =
      folder_.Run(R"([{"name": "x", "dtype": "int64"}, {"name": "v", "shape": [2], "columns": ["f", "x"]}])",
                  R"([{"shuffle": {"bufferSize": 5, "seed": 3}}, {"repeat": {"count": 3}}, {"batch": {"size": 30}}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().ToString();
  std::vector<int64_t> x = all[0].Values<int64_t>(0);
  const std::vector<float> v = all[0].Values<float>(1);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(v[2 * i], x[i]);
    EXPECT_EQ(v[2 * i + 1], x[i]);
  }
  EXPECT_FALSE(std::is_sorted(x.begin(), x.begin() + 10));
  std::sort(x.begin(), x.end());
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(x[i], static_cast<int64_t>(i / 3));
}

}  // namespace
}  // namespace headrace::side
