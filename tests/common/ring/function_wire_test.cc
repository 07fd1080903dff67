#include "common/ring/function_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::ring {
namespace {

using ::testing::HasSubstr;

TEST(FunctionWire, RequestsComeThrough) {
  const auto start = DecodeFunctionRequest(Encode(FunctionRequest(StartEpoch{{3, 1, 2}, 7})));
  ASSERT_TRUE(start.ok()) << start.status().ToString();
  EXPECT_EQ(std::get<StartEpoch>(*start).epoch, 7u);
  EXPECT_EQ(std::get<StartEpoch>(*start).topology.replicas_in_sync(), 6);
  EXPECT_EQ(std::get<StartEpoch>(*start).topology.worker_index, 1);
  EXPECT_TRUE(std::holds_alternative<NextElement>(*DecodeFunctionRequest(Encode(FunctionRequest(NextElement{})))));
  EXPECT_EQ(std::get<MapRing>(*DecodeFunctionRequest(Encode(FunctionRequest(MapRing{5})))).replica, 5);
  const auto write = DecodeFunctionRequest(Encode(FunctionRequest(WriteElement{1, {4096, 8192}})));
  ASSERT_TRUE(write.ok()) << write.status().ToString();
  EXPECT_EQ(std::get<WriteElement>(*write).offsets, (std::vector<uint64_t>{4096, 8192}));
}

TEST(FunctionWire, AnswersComeThrough) {
  const std::vector<TensorSpec> types = {{"x", DType::kFloat32, {kUnknownDim, 4}}, {"y", DType::kInt64, {}}};
  const auto started = DecodeFunctionAnswer(Encode(FunctionAnswer(EpochStarted{types, 9})));
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  EXPECT_EQ(std::get<EpochStarted>(*started).element_spec, types);
  EXPECT_EQ(std::get<EpochStarted>(*started).cardinality, 9);
  const std::vector<TensorSpec> tensors = {{"x", DType::kBool, {0, 4}}};
  const auto element = DecodeFunctionAnswer(Encode(FunctionAnswer(Element{tensors})));
  ASSERT_TRUE(element.ok()) << element.status().ToString();
  EXPECT_EQ(std::get<Element>(*element).tensors, tensors);
  EXPECT_TRUE(std::holds_alternative<EndOfElements>(*DecodeFunctionAnswer(Encode(FunctionAnswer(EndOfElements{})))));
}

TEST(FunctionWire, ErrorsComeThrough) {
  const auto answer = DecodeFunctionAnswer(R"({"version":1,"error":"Corrupt: bad disk"})");
  EXPECT_EQ(answer.status().ToString(), "Corrupt: bad disk");
}

TEST(FunctionWire, TensorsThatNoRingHoldsAreRefused) {
  const auto refusal = [](const TensorSpec& tensor) {
    return DecodeFunctionAnswer(Encode(FunctionAnswer(Element{{tensor}}))).status().message();
  };
  EXPECT_THAT(refusal({"x", DType::kInt8, std::vector<int64_t>(11, 1)}), HasSubstr("at most 10 dimensions"));
  EXPECT_THAT(refusal({"x", DType::kInt8, {2, -1}}), HasSubstr("a dimension is negative"));
  EXPECT_THAT(refusal({"x", DType::kInt64, {int64_t{1} << 40, int64_t{1} << 40}}), HasSubstr("more than 1 TiB"));
  EXPECT_THAT(refusal({"x", DType::kString, {1}}), HasSubstr("yields tensors of numbers"));
  EXPECT_THAT(DecodeFunctionAnswer(Encode(FunctionAnswer(Element{}))).status().message(), HasSubstr("0 components"));
}

TEST(FunctionWire, WhatIsNoMessageIsAnError) {
  for (const char* text : {"", "{}", "[]", R"({"version":1})", R"({"version":2,"end":{}})",
                           R"({"version":1,"element":{}})", R"({"version":1,"started":[]})"}) {
    EXPECT_FALSE(DecodeFunctionAnswer(text).ok()) << text;
    EXPECT_FALSE(DecodeFunctionRequest(text).ok()) << text;
  }
}

}  // namespace
}  // namespace headrace::ring
