#include "common/spec/sample_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> FieldsOf(const std::string& name) {
  Feature feature;
  feature.name = name;
  return SampleFields(feature);
}

json SpecOf(const std::string& features) {
  return {{"source", {{"files", {{"format", "WebDataset"}, {"paths", {"a.tar"}}}}}},
          {"features", json::parse(features)}};
}
std::string ErrorOf(const std::string& features) {
  const auto parsed = ParseInputSpec(SpecOf(features));
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(SampleFeatures, NameTheirFiles) {
  EXPECT_THAT(FieldsOf("jpg"), ElementsAre("jpg"));
  EXPECT_THAT(FieldsOf("Seg.PNG"), ElementsAre("seg.png"));
  EXPECT_THAT(FieldsOf("jpg;JPEG;png"), ElementsAre("jpg", "jpeg", "png"));
  EXPECT_THAT(FieldsOf("__key__"), IsEmpty());
}

TEST(SampleFeatures, AreReadByTheEndOfTheName) {
  EXPECT_EQ(SampleKindOf("npy"), SampleKind::kNumPy);
  EXPECT_EQ(SampleKindOf("boxes.npy"), SampleKind::kNumPy);
  EXPECT_EQ(SampleKindOf("mask.bin"), SampleKind::kRaw);
  EXPECT_EQ(SampleKindOf("cls"), SampleKind::kText);
  EXPECT_EQ(SampleKindOf("npy.txt"), SampleKind::kText);
}

TEST(SampleFeatures, AreReadBackUnchanged) {
  const auto parsed =
      ParseInputSpec(SpecOf(R"([{"name": "jpg;png", "dtype": "string"}, {"name": "npy", "shape": [-1, 4]},
                                                {"name": "bin", "dtype": "bfloat16", "shape": [-1]},
                                                {"name": "cls", "dtype": "bool"}, {"name": "__key__", "dtype": "string"}])"));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const json written = ToJson(*parsed);
  EXPECT_EQ(written["source"]["files"]["format"], "WebDataset");
  const auto again = ParseInputSpec(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ToJson(*again), written);
}

TEST(SampleFeatures, ThatMakeNoSenseAreRefused) {
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("spec.features: is required with format WebDataset"));
  EXPECT_THAT(ErrorOf(R"([{"name": "cls"}, {"name": "__key__", "dtype": "int64"}])"),
              HasSubstr("spec.features[1].dtype: must be string: __key__ is"));
  for (const std::string name : {"jpg;", ";jpg", "jpg;;png", ";"}) {
    EXPECT_THAT(ErrorOf(R"([{"dtype": "string", "name": ")" + name + R"("}])"),
                HasSubstr("spec.features[0].name: \"" + name + "\" names a file without an extension"));
  }
  EXPECT_THAT(
      ErrorOf(R"([{"name": "npy;cls", "dtype": "int64", "shape": [-1]}])"),
      HasSubstr("spec.features[0].shape: varies in length, which goes with files of type bin and npy, and \"cls\""));
  const std::string npy = ErrorOf(R"([{"name": "bin", "dtype": "bfloat16"}, {"name": "x.npy", "dtype": "bfloat16"}])");
  EXPECT_THAT(npy, HasSubstr("spec.features[1].dtype: bfloat16 is no dtype of NumPy's"));
  EXPECT_THAT(npy, Not(HasSubstr("spec.features[0]")));
}

}  // namespace
}  // namespace headrace
