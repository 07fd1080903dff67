// FixedLength and NumPy files. Expected values: arithmetic, and numpy's description of its format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> Counting(T from, size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

std::string NumPyOf(const std::string& dict, const std::string& data) {
  const std::string padded = dict + std::string(63 - (dict.size() + 10) % 64, ' ') + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + LittleEndian(padded.size(), 2) + padded + data;
}

class FixedRecords : public testing::Test {
 protected:
  PipelineRun Run(const std::string& files, const std::string& features, const std::string& pipeline,
                  Topology topology = {}, const std::string& rest = "") {
    return PipelineRun(R"({"source": {"files": {"paths": ["f*"], )" + files + R"(}}, "features": )" + features +
                           R"(, "pipeline": )" + pipeline + rest + "}",
                       topology, folder_.path());
  }
  Folder folder_;
};

constexpr char kLength[] = R"("format": "FixedLength")";
constexpr char kX[] = R"([{"name": "x", "dtype": "int32"}])";

TEST_F(FixedRecords, AreReadInOrder) {
  folder_.Write("f1", Bytes(Counting<int32_t>(0, 5)));
  folder_.Write("f2", "");
  folder_.Write("f3", Bytes(Counting<int32_t>(5, 4)));
  auto run = Run(kLength, kX, R"([{"batch": {"size": 4}}])");
  EXPECT_EQ(run.Values<int32_t>(), Counting<int32_t>(0, 9)) << run.status().message();
}

TEST_F(FixedRecords, HoldSeveralFeaturesAndBytesBetween) {
  std::string file = "head";
  for (int16_t i = 0; i < 50; ++i) {
    file += Bytes<int16_t>({i, static_cast<int16_t>(-i)}) + static_cast<char>(i % 3) + Bytes<float>({i / 2.0f}) + "??";
  }
  folder_.Write("f", file + "end");
  auto run = Run(R"("format": "FixedLength", "fixedLength": {"recordBytes": 11, "headerBytes": 4, "footerBytes": 3})",
                 R"([{"name": "a", "dtype": "int16", "shape": [2]}, {"name": "b", "dtype": "bool"}, {"name": "c"}])",
                 R"([{"skip": {"count": 7}}, {"batch": {"size": 100}}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  ASSERT_EQ(all[0].rows, 43);
  for (int16_t i = 7; i < 50; ++i) {
    const auto row = static_cast<size_t>(i - 7);
    EXPECT_EQ(all[0].Values<int16_t>(0)[2 * row + 1], -i);
    EXPECT_EQ(all[0].Values<uint8_t>(1)[row], i % 3 != 0 ? 1 : 0);
    EXPECT_EQ(all[0].Values<float>(2)[row], static_cast<float>(i) / 2);
  }
}

TEST_F(FixedRecords, GlobalShuffleDealsEachRecordOnceAmongAllWorkers) {
  folder_.Write("f1", Bytes(Counting<int32_t>(0, 100)));
  folder_.Write("f2", Bytes(Counting<int32_t>(100, 37)));
  for (const char* policy : {"Data", "File"}) {
    std::vector<int32_t> all;
    for (int64_t worker = 0; worker < 2; ++worker) {
      auto run = Run(kLength, kX, R"([{"shuffle": {"scope": "Global", "seed": 3}}, {"batch": {"size": 8}}])",
                     {2, worker, 1}, R"(, "distribution": {"autoShardPolicy": ")" + std::string(policy) + R"("})");
      const auto mine = run.Values<int32_t>();
      EXPECT_FALSE(std::is_sorted(mine.begin(), mine.end()));
      EXPECT_NE(run.Values<int32_t>(0, 1), mine) << "each epoch has its own order";
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Counting<int32_t>(0, 137)) << policy;
  }
}

TEST_F(FixedRecords, WorkersReadNoByteThatTheyDoNotDeliver) {
  const std::string file = Bytes(Counting<int32_t>(0, 100000));
  folder_.Write("f1", file);
  uint64_t read = 0;
  for (int64_t worker = 0; worker < 4; ++worker) {
    auto run = Run(kLength, kX, R"([{"batch": {"size": 64}}])", {4, worker, 1},
                   R"(, "distribution": {"autoShardPolicy": "Data"})");
    run.Values<int32_t>();
    read += run.pipeline().bytes_read();
  }
  EXPECT_EQ(read, file.size());
}

TEST_F(FixedRecords, AFileOfOtherLengthIsRefused) {
  const std::string path = folder_.Write("f", "seven b");
  auto run = Run(kLength, kX, R"([{"batch": {"size": 4}}])");
  run.Epoch();
  EXPECT_EQ(run.status().code(), Code::kCorrupt);
  EXPECT_THAT(run.status().message(), HasSubstr(path + ": its 7 bytes are no whole number of records of 4 bytes"));
}

TEST_F(FixedRecords, NumPyRowsAreRecords) {
  folder_.Write("f1",
                NumPyOf("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", Bytes(Counting<double>(0, 6))));
  folder_.Write("f2", NumPyOf("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 2), }", ""));
  folder_.Write("f3",
                NumPyOf("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }", Bytes(Counting<double>(6, 2))));
  auto run = Run(R"("format": "NumPy")", R"([{"name": "x", "dtype": "float64", "shape": [2]}])",
                 R"([{"batch": {"size": 2}}])");
  EXPECT_EQ(run.Values<double>(), Counting<double>(0, 8)) << run.status().message();
}

TEST_F(FixedRecords, NumPyArraysOfAnotherTypeAreRefused) {
  const auto refusal = [&](const std::string& file) {
    folder_.Write("f", file);
    auto run = Run(R"("format": "NumPy")", R"([{"name": "x", "dtype": "float32"}])", R"([{"batch": {"size": 2}}])");
    run.Epoch();
    return run.status().message();
  };
  EXPECT_THAT(
      refusal(NumPyOf("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd")),
      HasSubstr("an array of dtype >f4 and shape [1], and feature \"x\" of spec.features is float32 of shape []"));
  EXPECT_THAT(refusal(NumPyOf("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", std::string(16, 'x'))),
              HasSubstr("Fortran order"));
  EXPECT_THAT(refusal(NumPyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd")),
              HasSubstr("the file holds 1 whole rows and its header says 2"));
  EXPECT_THAT(refusal("PK\x03\x04"), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal(NumPyOf("{'descr': <f4}", "")), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace headrace::side
