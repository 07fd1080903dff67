// Strings and ragged tensors as the C ABI gives them out; what a broken loader writes of them is refused.
#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "tests/client/client_fixture.h"

namespace headrace {
namespace {

using ring::ComponentExtent;
using testing::ElementsAre;
using testing::HasSubstr;

enum Component : int32_t { kLabel, kX, kText, kTitle, kTokens, kBoxes };

class VariableTest : public ClientTest {
 protected:
  VariableTest() { options_.variable = true; }

  ~VariableTest() override { headrace_batch_free(batch_); }

  headrace_status Next() {
    headrace_batch_free(std::exchange(batch_, nullptr));
    return headrace_next(iterators_.back(), 10000, &batch_);
  }

  // Starts the loader and takes the first batch.
  headrace_status FirstBatch() {
    loader_ = StartLoader();
    EXPECT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
    Iterate(0);
    return Next();
  }

  headrace_tensor Tensor(int32_t component) {
    headrace_tensor tensor{};
    tensor.size = sizeof tensor;
    EXPECT_EQ(headrace_batch_tensor(batch_, component, &tensor), HEADRACE_OK) << headrace_last_error();
    return tensor;
  }

  static std::vector<std::string> Strings(const headrace_tensor& tensor, size_t count) {
    std::vector<std::string> strings;
    const char* const bytes = static_cast<const char*>(tensor.data);
    for (size_t i = 0; i < count; ++i) {
      strings.emplace_back(bytes + tensor.row_splits[i], bytes + tensor.row_splits[i + 1]);
    }
    return strings;
  }

  std::unique_ptr<fakes::FakeLoader> loader_;
  headrace_batch* batch_ = nullptr;
};

TEST_F(VariableTest, TheElementSpecSaysSo) {
  ASSERT_EQ(FirstBatch(), HEADRACE_OK) << headrace_last_error();
  headrace_tensor_spec spec{};
  spec.size = sizeof spec;
  ASSERT_EQ(headrace_component(datasets_[0], kText, &spec), HEADRACE_OK);
  EXPECT_STREQ(spec.dtype.name, "string");
  EXPECT_EQ(spec.ndim, 1);
  EXPECT_EQ(spec.ragged, 0) << "the length of a string is no dimension";
  ASSERT_EQ(headrace_component(datasets_[0], kBoxes, &spec), HEADRACE_OK);
  EXPECT_EQ(std::vector<int64_t>(spec.shape, spec.shape + spec.ndim), (std::vector<int64_t>{-1, -1, 2}));
  EXPECT_EQ(spec.ragged, 1);
  EXPECT_THAT(headrace_element_spec_string(datasets_[0]),
              HasSubstr("RaggedTensorSpec(TensorShape([None, None, 2]), tf.float32, 1, tf.int64)"));
}

TEST_F(VariableTest, StringsAreBytesAndSplits) {
  ASSERT_EQ(FirstBatch(), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Next(), HEADRACE_OK);  // label is 4, 5, 6, 7
  const headrace_tensor text = Tensor(kText);
  EXPECT_THAT(Strings(text, 4), ElementsAre("4", "5", "6", ""));
  EXPECT_EQ(text.ndim, 1);
  EXPECT_EQ(text.shape[0], 4);
  EXPECT_EQ(text.strides[0], 1);
  EXPECT_EQ(text.nbytes, 3);
  EXPECT_EQ(text.num_values, 3);
  EXPECT_EQ(text.dtype.code, 1);
  EXPECT_EQ(text.dtype.bits, 8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(text.data) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(text.row_splits) % 64, 0u);

  const headrace_tensor title = Tensor(kTitle);
  EXPECT_EQ(title.ndim, 0);
  EXPECT_THAT(Strings(title, 1), ElementsAre("batch 4"));
  EXPECT_EQ(title.num_values, 7);
}

TEST_F(VariableTest, RaggedRowsAreValuesAndSplits) {
  ASSERT_EQ(FirstBatch(), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Next(), HEADRACE_OK);  // label is 4, 5, 6, 7
  const headrace_tensor tokens = Tensor(kTokens);
  EXPECT_EQ(std::vector<int64_t>(tokens.shape, tokens.shape + tokens.ndim), (std::vector<int64_t>{4, -1}));
  EXPECT_EQ(std::vector<int64_t>(tokens.row_splits, tokens.row_splits + 5), (std::vector<int64_t>{0, 0, 1, 3, 3}));
  EXPECT_EQ(tokens.num_values, 3);
  const auto* const ids = static_cast<const int64_t*>(tokens.data);
  EXPECT_EQ(std::vector<int64_t>(ids, ids + 3), (std::vector<int64_t>{5, 6, -6}));

  const headrace_tensor boxes = Tensor(kBoxes);
  EXPECT_EQ(std::vector<int64_t>(boxes.shape, boxes.shape + boxes.ndim), (std::vector<int64_t>{4, -1, 2}));
  EXPECT_EQ(std::vector<int64_t>(boxes.strides, boxes.strides + boxes.ndim), (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(std::vector<int64_t>(boxes.row_splits, boxes.row_splits + 5), (std::vector<int64_t>{0, 0, 1, 1, 2}));
  EXPECT_EQ(boxes.num_values, 2);
  const auto* const sides = static_cast<const float*>(boxes.data);
  EXPECT_EQ(std::vector<float>(sides, sides + 4), (std::vector<float>{5, -5, 7, -7}));

  const headrace_tensor label = Tensor(kLabel);
  EXPECT_EQ(label.row_splits, nullptr);
  EXPECT_EQ(label.num_values, 0);
}

TEST_F(VariableTest, ABatchWithoutRowsHasOneSplit) {
  options_.replicas = 2;
  options_.steps = 1;
  options_.partial_last_step = true;
  loader_ = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK) << headrace_last_error();
  Iterate(1);
  int32_t has_value = 0;
  ASSERT_EQ(headrace_next_as_optional(iterators_.back(), 10000, &batch_, &has_value), HEADRACE_OK);
  ASSERT_EQ(has_value, 1);
  for (const int32_t component : {kText, kTokens, kBoxes}) {
    const headrace_tensor tensor = Tensor(component);
    EXPECT_EQ(tensor.shape[0], 0);
    EXPECT_EQ(tensor.num_values, 0);
    EXPECT_EQ(tensor.row_splits[0], 0);
  }
}

// A program compiled against a header without row_splits.
TEST_F(VariableTest, AnOlderCallersStructIsLeftAlone) {
  ASSERT_EQ(FirstBatch(), HEADRACE_OK) << headrace_last_error();
  headrace_tensor tensor{};
  tensor.size = offsetof(headrace_tensor, row_splits);
  tensor.num_values = 77;
  ASSERT_EQ(headrace_batch_tensor(batch_, kTokens, &tensor), HEADRACE_OK);
  EXPECT_EQ(tensor.nbytes, 24);
  EXPECT_EQ(tensor.row_splits, nullptr);
  EXPECT_EQ(tensor.num_values, 77);
}

struct BrokenSplit {
  Component component;
  size_t at;
  int64_t value;
  const char* says;
};

class BrokenSplits : public VariableTest, public testing::WithParamInterface<BrokenSplit> {};

TEST_P(BrokenSplits, AreAnErrorOfTheTensorAloneWhenItIsAskedFor) {
  const BrokenSplit& broken = GetParam();
  options_.spoil = [&](uint8_t* slot, std::vector<ComponentExtent>& extents) {
    reinterpret_cast<int64_t*>(slot + extents[broken.component].splits_offset)[broken.at] = broken.value;
  };
  ASSERT_EQ(FirstBatch(), HEADRACE_OK) << headrace_last_error();
  headrace_tensor tensor{};
  tensor.size = sizeof tensor;
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(headrace_batch_tensor(batch_, broken.component, &tensor), HEADRACE_CORRUPT);
    EXPECT_THAT(headrace_last_error(), HasSubstr(broken.says));
    EXPECT_THAT(headrace_last_error(), HasSubstr("of step 0"));
  }
  EXPECT_EQ(Tensor(kLabel).shape[0], 4) << "the other tensors are whole";
}

// Of the first batch: text splits 0 1 2 3 3, tokens 0 0 1 3 3, boxes 0 0 1 1 2.
INSTANTIATE_TEST_SUITE_P(All, BrokenSplits,
                         testing::Values(BrokenSplit{kText, 0, 1, "row split 0 of 4 is 1"},
                                         BrokenSplit{kText, 2, 0, "row split 2 of 4 is 0, the one before 1"},
                                         BrokenSplit{kText, 4, 4, "row split 4 of 4 is 4"},
                                         BrokenSplit{kTitle, 1, 3, "row split 1 of 1 is 3"},
                                         BrokenSplit{kTokens, 3, INT64_MAX, "row split 3 of 4"},
                                         BrokenSplit{kTokens, 1, -1, "row split 1 of 4 is -1"},
                                         BrokenSplit{kBoxes, 4, 1,
                                                     "row split 4 of 4 is 1, the one before 1, and there "
                                                     "are 2 values"}));

// The object of a batch that is freed is used again for the next one.
TEST_F(VariableTest, TheSplitsOfEachBatchAreChecked) {
  options_.spoil = [batches = 0](uint8_t* slot, std::vector<ComponentExtent>& extents) mutable {
    if (batches++ == 1) reinterpret_cast<int64_t*>(slot + extents[kText].splits_offset)[0] = 1;
  };
  headrace_tensor tensor{};
  tensor.size = sizeof tensor;
  ASSERT_EQ(FirstBatch(), HEADRACE_OK) << headrace_last_error();
  EXPECT_EQ(headrace_batch_tensor(batch_, kText, &tensor), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Next(), HEADRACE_OK);
  EXPECT_EQ(headrace_batch_tensor(batch_, kText, &tensor), HEADRACE_CORRUPT);
  ASSERT_EQ(Next(), HEADRACE_OK);
  EXPECT_EQ(headrace_batch_tensor(batch_, kText, &tensor), HEADRACE_OK) << headrace_last_error();
}

// Whoever goes on after the error, or does not ask again, keeps nothing from the loader.
TEST_F(VariableTest, ABatchThatIsAnErrorGivesItsSlotBack) {
  options_.spoil = [](uint8_t*, std::vector<ComponentExtent>& extents) { extents[kBoxes].bytes -= 4; };
  EXPECT_EQ(FirstBatch(), HEADRACE_CORRUPT);
  EXPECT_EQ(loader_->header(0).released, 1U);
}

struct BrokenExtent {
  const char* about;
  Component component;
  void (*spoil)(ComponentExtent&);
};

class BrokenExtents : public VariableTest, public testing::WithParamInterface<BrokenExtent> {};

TEST_P(BrokenExtents, AreAnErrorOfTheBatch) {
  options_.spoil = [](uint8_t*, std::vector<ComponentExtent>& extents) {
    GetParam().spoil(extents[GetParam().component]);
  };
  EXPECT_EQ(FirstBatch(), HEADRACE_CORRUPT);
  EXPECT_THAT(headrace_last_error(), HasSubstr("component"));
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenExtents,
    testing::Values(
        BrokenExtent{"strings without splits", kText, [](ComponentExtent& extent) { extent.splits_offset = 0; }},
        BrokenExtent{"splits of a dense tensor", kLabel, [](ComponentExtent& extent) { extent.splits_offset = 64; }},
        BrokenExtent{"splits past the slot", kTokens, [](ComponentExtent& extent) { extent.splits_offset = 1 << 20; }},
        BrokenExtent{"more rows than the slot has splits", kTokens,
                     [](ComponentExtent& extent) { extent.dims[0] = 1 << 20; }},
        BrokenExtent{"no number of rows", kTokens, [](ComponentExtent& extent) { extent.dims[0] = -1; }},
        BrokenExtent{"a ragged dimension of one length", kTokens, [](ComponentExtent& extent) { extent.dims[1] = 2; }},
        BrokenExtent{"half a value", kBoxes, [](ComponentExtent& extent) { extent.bytes -= 4; }},
        BrokenExtent{"values without bytes", kBoxes, [](ComponentExtent& extent) { extent.dims[2] = 0; }},
        BrokenExtent{"values that no memory holds", kBoxes,
                     [](ComponentExtent& extent) { extent.dims[2] = INT64_MAX; }},
        BrokenExtent{"a dimension too few", kBoxes, [](ComponentExtent& extent) { extent.ndim = 2; }},
        BrokenExtent{"a negative number of strings", kText, [](ComponentExtent& extent) { extent.dims[0] = -1; }}),
    [](const testing::TestParamInfo<BrokenExtent>& info) {
      std::string name = info.param.about;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

}  // namespace
}  // namespace headrace
