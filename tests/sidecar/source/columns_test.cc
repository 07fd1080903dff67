#include "sidecar/source/columns.h"

#include <gmock/gmock.h>

#include "tests/sidecar/tables.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Columns = OneParquetFile;

TEST_F(Columns, WithoutFeaturesAllColumnsThatAreOffered) {
  Write({{"n", arrow::int32(), "[1]"},
         {"m", arrow::map(arrow::utf8(), arrow::int32()), R"([[["k", 1]]])"},
         {"s", arrow::utf8(), R"(["a"])"},
         {"v", arrow::fixed_size_list(arrow::float32(), 2), "[[1, 2]]"},
         {"l", arrow::list(arrow::float64()), "[[0.5]]"},
         {"in", arrow::struct_({arrow::field("d", arrow::date32())}), R"([{"d": 3}])"}});
  auto run = folder_.Run("[]");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().ToString();
  std::string spec;
  for (const TensorSpec& component : run.pipeline().element_spec()) {
    spec += component.name + " " + component.ToString() + "\n";
  }
  EXPECT_EQ(spec,
            "n TensorSpec(shape=(None,), dtype=tf.int32, name=None)\n"
            "s TensorSpec(shape=(None,), dtype=tf.string, name=None)\n"
            "v TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)\n"
            "l RaggedTensorSpec(TensorShape([None, None]), tf.float64, 1, tf.int64)\n"
            "in.d TensorSpec(shape=(None,), dtype=tf.int64, name=None)\n");
  EXPECT_THAT(all[0].Values<int64_t>(4), ElementsAre(3));
}

TEST_F(Columns, WithoutFeaturesThePipelineIsHeldToTheColumns) {
  Write({{"n", arrow::int32(), "[1, 2, 3]"}});
  auto run = folder_.Run(
      "[]",
      R"([{"filter": {"expression": "n > 1"}}, {"map": {"feature": "n", "cast": "float32"}}, {"batch": {"size": 2}}])");
  EXPECT_THAT(run.Values<float>(), ElementsAre(2, 3));
  const auto wrong = folder_.Run("[]", R"([{"map": {"feature": "m", "cast": "float32"}}])");
  EXPECT_THAT(wrong.status().message(),
              HasSubstr("spec.pipeline[0].map: there is no component \"m\" here; did you mean \"n\"?"));
}

struct Mismatch {
  const char* feature;
  const char* says;
};

class ColumnsMismatch : public testing::TestWithParam<Mismatch> {};

INSTANTIATE_TEST_SUITE_P(
    All, ColumnsMismatch,
    testing::Values(
        Mismatch{
            R"({"name": "pric"})",
            R"(a.parquet: feature "pric": there is no column "pric" in the file; did you mean "price"? It has price: double, id: int64, text: string, v: fixed_size_list<element: float>[3], m: map<string, int32)"},
        Mismatch{R"({"name": "zebra"})", R"(there is no column "zebra" in the file; It has price: double)"},
        Mismatch{R"({"name": "price", "dtype": "int64"})",
                 R"(column "price" is double, and would lose its fractions as int64; give the feature dtype float64)"},
        Mismatch{R"({"name": "text"})", R"(column "text" is string, and no number; give the feature dtype string)"},
        Mismatch{R"({"name": "id", "dtype": "string"})", R"(column "id" is int64, and no string)"},
        Mismatch{R"({"name": "id", "shape": [2]})",
                 R"(column "id" is int64, which is 1 value a row, and the feature's shape takes 2)"},
        Mismatch{R"({"name": "v", "shape": [2]})", "which is 3 values a row, and the feature's shape takes 2"},
        Mismatch{R"({"name": "w", "shape": [2], "columns": ["v", "id"]})", "takes one value a row of each"},
        Mismatch{R"({"name": "m"})", "which is not offered: numbers, strings"}));

TEST_P(ColumnsMismatch, IsFoundBeforeAnythingIsRead) {
  const TableFolder folder("Parquet");
  folder.Write("a.parquet", ParquetOf(TableOf({{"price", arrow::float64(), "[1]"},
                                               {"id", arrow::int64(), "[1]"},
                                               {"text", arrow::utf8(), R"(["a"])"},
                                               {"v", arrow::fixed_size_list(arrow::float32(), 3), "[[1, 2, 3]]"},
                                               {"m", arrow::map(arrow::utf8(), arrow::int32()), R"([[["k", 1]]])"}})));
  const std::string error = folder.ErrorOf("[" + std::string(GetParam().feature) + "]");
  EXPECT_THAT(error, HasSubstr("InvalidArgument: "));
  EXPECT_THAT(error, HasSubstr(GetParam().says));
}

}  // namespace
}  // namespace headrace::side
