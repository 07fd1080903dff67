#include "cli/step_print.h"

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

ReplicaBatch Batch(const std::vector<int64_t>& values) {
  const auto rows = static_cast<int64_t>(values.size());
  return {rows, {{"x", DType::kInt64, {rows}, values.data()}}};
}

// The guide's own lines for range(9).batch(4) over two replicas.
TEST(StepPrintTest, OneWorkerAsInTheGuide) {
  const std::vector<int64_t> a = {0, 1}, b = {2, 3}, c = {8}, none;
  EXPECT_EQ(PrintStep({0, 0, 1, 2}, {Batch(a), Batch(b)}), "step 0  ([0 1], [2 3])\n");
  EXPECT_EQ(PrintStep({2, 0, 1, 2}, {Batch(c), Batch(none)}), "step 2  ([8], [])\n");
}

TEST(StepPrintTest, OneReplicaHasNoParentheses) {
  const std::vector<int64_t> a = {0, 1};
  EXPECT_EQ(PrintStep({0, 0, 1, 1}, {Batch(a)}), "step 0  [0 1]\n");
}

TEST(StepPrintTest, SeveralWorkersStandBelowEachOther) {
  const std::vector<int64_t> a = {0, 1}, b = {2, 3};
  EXPECT_EQ(PrintStep({10, 0, 2, 2}, {Batch(a), Batch(b)}), "step 10  worker 0  ([0 1], [2 3])\n");
  EXPECT_EQ(PrintStep({10, 1, 2, 2}, {}), "         worker 1  ([], [])\n");
}

TEST(StepPrintTest, ComponentsTakeALineEach) {
  const std::vector<int64_t> x = {0, 1}, label = {7};
  ReplicaBatch batch;
  batch.rows = 1;
  batch.tensors = {{"x", DType::kInt64, {1, 2}, x.data()}, {"label", DType::kInt64, {1}, label.data()}};
  EXPECT_EQ(PrintStep({0, 0, 1, 1}, {batch}),
            "step 0  x      [[0 1]]\n"
            "        label  [7]\n");
}

TEST(StepPrintTest, StringsAndRaggedTensorsAsTensorFlowPrintsThem) {
  const std::vector<int64_t> text_splits = {0, 1, 3}, token_splits = {0, 2, 2}, tokens = {7, 8};
  ReplicaBatch batch;
  batch.rows = 2;
  batch.tensors = {{"text", DType::kString, {2}, "abc", text_splits.data()},
                   {"tokens", DType::kInt64, {2, -1}, tokens.data(), token_splits.data()}};
  EXPECT_EQ(PrintStep({0, 0, 1, 1}, {batch}),
            "step 0  text    tf.Tensor([b'a' b'bc'], shape=(2,), dtype=string)\n"
            "        tokens  <tf.RaggedTensor [[7, 8], []]>\n");
}

}  // namespace
}  // namespace headrace::cli
