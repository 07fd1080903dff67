// Samples of tar archives as tensors. Expected values: arithmetic, and numpy's description of its format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/images.h"
#include "tests/sidecar/pipelines.h"
#include "tests/sidecar/tars.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string NumPyOf(const std::string& descr, const std::string& shape, const std::string& data,
                    const std::string& fortran = "False") {
  const std::string dict = "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  const std::string padded = dict + std::string(63 - (dict.size() + 10) % 64, ' ') + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + LittleEndian(padded.size(), 2) + padded + data;
}

class Samples : public testing::Test {
 protected:
  // Batches of all samples of an archive.
  PipelineRun Run(const std::string& archive, const std::string& features, const std::string& maps = "") {
    folder_.Write("a.tar", archive + TarEnd());
    return PipelineRun(R"({"source": {"files": {"format": "WebDataset", "paths": ["a.tar"]}}, "features": [)" +
                           features + R"(], "pipeline": [)" + maps + R"({"batch": {"size": 100}}]})",
                       {}, folder_.path());
  }
  // Why the one sample cannot be delivered.
  std::string Refusal(const std::string& file, const std::string& content, const std::string& feature) {
    PipelineRun run = Run(TarFile(file, content), feature);
    EXPECT_TRUE(run.status().ok()) << run.status().message();
    EXPECT_TRUE(run.Epoch().empty());
    EXPECT_EQ(run.status().code(), Code::kCorrupt);
    EXPECT_THAT(run.status().message(), HasSubstr(folder_.path() + "/a.tar: record at byte 0: sample \"a\" "));
    return run.status().message();
  }

  Folder folder_;
};

std::string Text(const Delivered& batch, size_t component) {
  return {batch.bytes[component].begin(), batch.bytes[component].end()};
}

TEST_F(Samples, AreStringsByTheirFilesNames) {
  PipelineRun run = Run(TarFile("x/a.seg.png", "[]") + TarFile("x/a.txt", "hello") + TarFile("b.TXT", "") +
                            TarFile("b.seg.png", "{}") + TarFile("b.json", "not asked for"),
                        R"({"name": "txt", "dtype": "string"}, {"name": "__key__", "dtype": "string"},
                           {"name": "seg.png", "dtype": "string"})");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_EQ(Text(batches[0], 0), "hello");
  EXPECT_EQ(Text(batches[0], 1), "x/ab");
  EXPECT_EQ(Text(batches[0], 2), "[]{}");
  EXPECT_THAT(batches[0].splits[0], ElementsAre(0, 5, 5));
  EXPECT_THAT(batches[0].splits[1], ElementsAre(0, 3, 4));
}

TEST_F(Samples, AreNumbersInText) {
  const std::string archive = TarFile("a.cls", "7") + TarFile("a.box", "0.5 -1e3\t2\r\n4\n") +
                              TarFile("a.ok", "true\n") + TarFile("b.cls", " -12\n") + TarFile("b.box", "1 2 3 4") +
                              TarFile("b.ok", "0");
  PipelineRun run = Run(archive, R"({"name": "cls", "dtype": "int64"}, {"name": "box", "shape": [2, 2]},
                                    {"name": "ok", "dtype": "bool"})");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_THAT(batches[0].Values<int64_t>(0), ElementsAre(7, -12));
  EXPECT_THAT(batches[0].Values<float>(1), ElementsAre(0.5f, -1000, 2, 4, 1, 2, 3, 4));
  EXPECT_THAT(batches[0].Values<uint8_t>(2), ElementsAre(1, 0));

  EXPECT_THAT(
      Refusal("a.cls", "seven", R"({"name": "cls", "dtype": "int64"})"),
      EndsWith("\"cls\" holds \"seven\", which is no int64; correct the data, or the feature in spec.features"));
  EXPECT_THAT(Refusal("a.cls", "300", R"({"name": "cls", "dtype": "uint8"})"), HasSubstr("is no uint8"));
  EXPECT_THAT(Refusal("a.cls", "", R"({"name": "cls"})"), HasSubstr("holds 0 numbers, and its shape takes 1"));
  EXPECT_THAT(Refusal("a.cls", "1 2 x", R"({"name": "cls"})"), HasSubstr("holds 3 numbers, and its shape takes 1"));
}

TEST_F(Samples, AreNumbersInBinary) {
  PipelineRun run = Run(TarFile("a.bin", Bytes<int16_t>({1, 2, 3, -4})) + TarFile("a.mask.bin", Bytes<uint8_t>({0, 1})),
                        R"({"name": "bin", "dtype": "int16", "shape": [2, 2]}, {"name": "mask.bin", "dtype": "bool",
                            "shape": [2]})");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_THAT(batches[0].Values<int16_t>(0), ElementsAre(1, 2, 3, -4));
  EXPECT_THAT(batches[0].Values<uint8_t>(1), ElementsAre(0, 1));
  EXPECT_THAT(Refusal("a.bin", "12345", R"({"name": "bin", "dtype": "int16", "shape": [2]})"),
              HasSubstr("\"bin\" holds 5 bytes, and its shape takes 4; "));
  EXPECT_THAT(Refusal("a.bin", "1", R"({"name": "bin", "dtype": "bool"})"), HasSubstr("other bytes than 0 and 1"));
}

TEST_F(Samples, AreNumPyArrays) {
  const std::string x = NumPyOf("<f4", "(2, 3)", Bytes<float>({1, 2, 3, 4, 5, 6}));
  PipelineRun run = Run(TarFile("a.x.npy", x) + TarFile("a.y.npy", NumPyOf("<i8", "()", Bytes<int64_t>({9}))),
                        R"({"name": "x.npy", "shape": [2, 3]}, {"name": "y.npy", "dtype": "int64"})");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_THAT(batches[0].Values<float>(0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batches[0].Values<int64_t>(1), ElementsAre(9));

  const char kFeature[] = R"({"name": "npy", "shape": [2]})";
  EXPECT_THAT(Refusal("a.npy", "hello", kFeature), HasSubstr("\"npy\" is not a .npy file; "));
  EXPECT_THAT(Refusal("a.npy", NumPyOf("<f8", "(2,)", Bytes<double>({1, 2})), kFeature),
              HasSubstr("is an array of dtype <f8 and shape [2], and the feature is float32 of shape [2]; "));
  EXPECT_THAT(Refusal("a.npy", NumPyOf(">f4", "(2,)", "12345678"), kFeature), HasSubstr("of dtype >f4"));
  EXPECT_THAT(Refusal("a.npy", NumPyOf("<f4", "(2, 1)", "12345678"), kFeature), HasSubstr("and shape [2, 1]"));
  EXPECT_THAT(Refusal("a.npy", NumPyOf("<f4", "(2,)", "1234567"), kFeature),
              HasSubstr("is an array that takes 2 times 4 bytes, and holds 7"));
  EXPECT_THAT(
      Refusal("a.npy", NumPyOf("<f4", "(2, 2)", std::string(16, 'x'), "True"), R"({"name": "npy", "shape": [2, 2]})"),
      HasSubstr("in Fortran order"));
}

TEST_F(Samples, VaryInLength) {
  const std::string archive = TarFile("a.bin", Bytes<int16_t>({1, 2, 3})) +
                              TarFile("a.npy", NumPyOf("<f4", "(1, 2)", Bytes<float>({1, 2}))) + TarFile("b.txt", "") +
                              TarFile("c.bin", "") + TarFile("c.npy", NumPyOf("<f4", "(0, 2)", ""));
  const char kFeatures[] = R"({"name": "bin", "dtype": "int16", "shape": [-1]}, {"name": "npy", "shape": [-1, 2]})";
  PipelineRun run = Run(archive, kFeatures);
  const auto ragged = run.Epoch();
  ASSERT_EQ(ragged.size(), 1u) << run.status().message();
  EXPECT_THAT(ragged[0].Values<int16_t>(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(ragged[0].splits[0], ElementsAre(0, 3, 3, 3));
  EXPECT_THAT(ragged[0].Values<float>(1), ElementsAre(1, 2));
  EXPECT_THAT(ragged[0].splits[1], ElementsAre(0, 1, 1, 1));

  folder_.Write("a.tar", archive);
  PipelineRun padded(R"({"source": {"files": {"format": "WebDataset", "paths": ["a.tar"]}}, "features": [)" +
                         std::string(kFeatures) + R"(], "pipeline": [{"paddedBatch": {"size": 3,
                             "paddedShapes": {"bin": [4], "npy": [2, 2]}, "paddingValues": {"bin": -7}}}]})",
                     {}, folder_.path());
  const auto batches = padded.Epoch();
  ASSERT_EQ(batches.size(), 1u) << padded.status().message();
  EXPECT_THAT(batches[0].Values<int16_t>(0), ElementsAre(1, 2, 3, -7, -7, -7, -7, -7, -7, -7, -7, -7));
  EXPECT_THAT(batches[0].Values<float>(1), ElementsAre(1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));

  EXPECT_THAT(Refusal("a.bin", "123", R"({"name": "bin", "dtype": "int16", "shape": [-1]})"),
              HasSubstr("holds 3 bytes, and its shape takes a multiple of 2"));
}

TEST_F(Samples, TakeTheFirstOfSeveralNames) {
  PipelineRun run = Run(TarFile("a.jpeg", "1") + TarFile("b.png", "2") + TarFile("b.jpg", "3") + TarFile("c.jpg", "4") +
                            TarFile("c.jpeg", "5"),
                        R"({"name": "jpg;jpeg;png", "dtype": "string"})");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_EQ(Text(batches[0], 0), "134");
}

TEST_F(Samples, FillInDefaultsAndRefuseWhatElseIsMissing) {
  PipelineRun run =
      Run(TarFile("a.txt", "") + TarFile("b.cls", "2"), R"({"name": "cls", "dtype": "int8", "default": [5]})");
  EXPECT_THAT(run.Values<int8_t>(), ElementsAre(5, 2));
  EXPECT_THAT(Refusal("a.txt", "", R"({"name": "cls"})"),
              EndsWith("has no \"cls\"; correct the feature's name, or give it a default, in spec.features"));
  EXPECT_THAT(Refusal("a.txt", "", R"({"name": "jpg;png", "dtype": "string"})"),
              EndsWith("has no \"jpg;png\"; correct the feature's name in spec.features"));
  PipelineRun twice = Run(TarFile("a.jpg", "") + TarFile("a.JPG", ""), R"({"name": "jpg", "dtype": "string"})");
  EXPECT_TRUE(twice.Epoch().empty());
  EXPECT_THAT(twice.status().message(), HasSubstr("sample \"a\" holds \"JPG\" twice; "));
  EXPECT_TRUE(
      Run(TarFile("a.jpg", "") + TarFile("a.JPG", ""), R"({"name": "__key__", "dtype": "string"})").Epoch().size() == 1)
      << "as nobody asks for it";
}

TEST_F(Samples, AreImages) {
  const std::vector<uint8_t> pixels = {1, 2, 3, 4, 5, 6};
  PipelineRun run = Run(TarFile("a.png", Png(1, 2, PNG_FORMAT_RGB, pixels)) + TarFile("a.cls", "3"),
                        R"({"name": "png", "dtype": "string"}, {"name": "cls", "dtype": "int32"})",
                        R"({"map": {"feature": "png", "decodeImage": {"shape": [1, 2, 3]}}}, )");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_THAT(batches[0].dims[0], ElementsAre(1, 1, 2, 3));
  EXPECT_EQ(batches[0].Values<uint8_t>(0), pixels);
  EXPECT_THAT(batches[0].Values<int32_t>(1), ElementsAre(3));
}

}  // namespace
}  // namespace headrace::side
