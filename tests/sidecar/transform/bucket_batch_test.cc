// Batches of records of like length. What is expected is TensorFlow's, where it says so, or arithmetic over what was
// written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Batches = std::vector<std::vector<int64_t>>;

class BucketBatch : public testing::Test {
 protected:
  // Record i holds tokens and a text of lengths[i] values, and i itself; -1: no record at all.
  void Write(const std::vector<int64_t>& lengths) {
    std::string file;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 0) {
        file += TFRecordOf("nothing");
        continue;
      }
      file += TFRecordOf(ExampleOf({{"tokens", Int64List(std::vector<int64_t>(lengths[i], 7))},
                                    {"text", BytesList(std::string(lengths[i], 't'))},
                                    {"i", Int64List({static_cast<int64_t>(i)})}}));
    }
    folder_.Write("a.tfrecord", file);
  }
  PipelineRun Run(const std::string& pipeline, const std::string& rest = "", Topology topology = {},
                  const std::string& shape = "[-1]") {
    return PipelineRun(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [
        {"name": "tokens", "dtype": "int64", "shape": )" +
                           shape + R"(}, {"name": "text", "dtype": "string"}, {"name": "i", "dtype": "int64"}],
        "pipeline": )" +
                           pipeline + rest + "}",
                       topology, folder_.path());
  }
  // The numbers of the records in each batch.
  static Batches Numbers(PipelineRun&& run) {
    Batches batches;
    for (const Delivered& delivered : run.Epoch()) batches.push_back(delivered.Values<int64_t>(2));
    EXPECT_TRUE(run.status().ok()) << run.status().message();
    return batches;
  }

  Folder folder_;
};

// What TensorFlow 2.21 makes of them, with DROP, BOUNDARIES and SIZES of the cases below:
//   ds = tf.data.Dataset.from_tensor_slices((list(range(len(kLengths))), kLengths))
//   ds = ds.bucket_by_sequence_length(lambda i, n: n, bucket_boundaries=BOUNDARIES, bucket_batch_sizes=SIZES,
//                                     drop_remainder=DROP, no_padding=True)
//   print([batch[0].numpy().tolist() for batch in ds])
const std::vector<int64_t> kLengths = {3, 9, 1, 4, 5, 12, 2, 8, 7, 3, 6, 4, 0, 15, 10, 5, 11};

TEST_F(BucketBatch, BatchesAsTensorFlow) {
  Write(kLengths);
  EXPECT_EQ(Numbers(Run(R"([{"bucketBatch": {"feature": "tokens", "boundaries": [4, 8], "sizes": [3, 2, 4]}}])")),
            (Batches{{3, 4}, {0, 2, 6}, {8, 10}, {1, 5, 7, 13}, {11, 15}, {9, 12}, {14, 16}}));
  EXPECT_EQ(Numbers(Run(R"([{"bucketBatch": {"feature": "tokens", "boundaries": [4, 8], "sizes": [3, 2, 4],
                             "dropRemainder": true}}])")),
            (Batches{{3, 4}, {0, 2, 6}, {8, 10}, {1, 5, 7, 13}, {11, 15}}));
  EXPECT_EQ(Numbers(Run(R"([{"bucketBatch": {"feature": "tokens", "boundaries": [4, 8], "size": 2}}])")),
            (Batches{{0, 2}, {3, 4}, {1, 5}, {6, 9}, {8, 10}, {7, 13}, {11, 15}, {14, 16}, {12}}));
}

TEST_F(BucketBatch, TheLengthOfAStringIsItsBytes) {
  Write(kLengths);
  EXPECT_EQ(Numbers(Run(R"([{"bucketBatch": {"feature": "text", "boundaries": [4, 8], "sizes": [3, 2, 4]}}])")),
            (Batches{{3, 4}, {0, 2, 6}, {8, 10}, {1, 5, 7, 13}, {11, 15}, {9, 12}, {14, 16}}));
}

TEST_F(BucketBatch, TheLengthIsOfTheFirstDimension) {
  Write({2, 4, 6, 8});
  EXPECT_EQ(Numbers(Run(R"([{"bucketBatch": {"feature": "tokens", "boundaries": [3], "size": 2}}])", "", {}, "[-1, 2]")),
            (Batches{{0, 1}, {2, 3}}))
      << "1 and 2 rows of two values, then 3 and 4";
}

TEST_F(BucketBatch, DeliversRaggedRowsAndSaysThatTheirNumberVaries) {
  Write({1, 5, 2, 6});
  auto run = Run(R"([{"bucketBatch": {"feature": "tokens", "boundaries": [4], "size": 2, "dropRemainder": true}}])");
  EXPECT_EQ(run.pipeline().element_spec()[0].ToString(),
            "RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64)");
  EXPECT_EQ(run.pipeline().cardinality(), kUnknownCardinality);
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 2u) << run.status().message();
  EXPECT_THAT(all[0].splits[0], ElementsAre(0, 1, 3));
  EXPECT_THAT(all[1].splits[0], ElementsAre(0, 5, 11));
}

TEST_F(BucketBatch, SeesWhatStandsBeforeItAndNotWhatComesAfter) {
  Write({1, 5, 2, 6, 1, 5});
  EXPECT_EQ(Numbers(Run(R"([{"filter": {"expression": "i != 2"}}, {"repeat": {"count": 2}},
                            {"bucketBatch": {"feature": "tokens", "boundaries": [4], "sizes": [3, 4]}},
                            {"map": {"feature": "tokens", "cast": "float32"}}, {"skip": {"count": 1}}])")),
            (Batches{{1, 3, 5, 1}, {4}, {3, 5}}))
      << "of 0 1 3 4 5 0 1 3 4 5, without 0 4 0";
}

TEST_F(BucketBatch, EachBatchIsCutForTheReplicas) {
  Write({1, 5, 2, 6, 3});
  auto run = Run(R"([{"bucketBatch": {"feature": "tokens", "boundaries": [4], "sizes": [3, 2]}}])",
                 R"(, "distribution": {"autoShardPolicy": "Data"})", {1, 0, 2});
  EXPECT_EQ(Numbers(std::move(run)), (Batches{{1}, {3}, {0, 2}, {4}}));
}

TEST_F(BucketBatch, ARecordThatCannotBeDecodedEndsTheEpochOrIsLeftOut) {
  Write({1, 1, -1, 1, 5, 1});
  const std::string pipeline = R"([{"bucketBatch": {"feature": "tokens", "boundaries": [4], "size": 2}}])";
  auto fails = Run(pipeline);
  const auto before = fails.Epoch();
  ASSERT_EQ(before.size(), 1u) << "the batch before it is delivered";
  EXPECT_THAT(before[0].Values<int64_t>(2), ElementsAre(0, 1));
  EXPECT_THAT(fails.status().message(), HasSubstr("a.tfrecord: record at byte "));
  EXPECT_EQ(Numbers(Run(pipeline, R"(, "onError": {"policy": "Skip"})")), (Batches{{0, 1}, {3, 5}, {4}}));
}

TEST_F(BucketBatch, WhatCannotBeBucketedIsRefused) {
  Write({1});
  const auto refused = [&](const std::string& batch, const std::string& after = "", const std::string& rest = "") {
    return Run(R"([{"bucketBatch": )" + batch + "}" + after + "]", rest).status().message();
  };
  EXPECT_THAT(refused(R"({"feature": "i", "boundaries": [4], "size": 2})"),
              HasSubstr("spec.pipeline[0].bucketBatch: component \"i\" has one length in all records"));
  EXPECT_THAT(refused(R"({"feature": "token", "boundaries": [4], "size": 2})"), HasSubstr("did you mean \"tokens\"?"));
  EXPECT_THAT(refused(R"({"boundaries": [4], "size": 2})"), HasSubstr("feature is required"));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [4, 4], "size": 2})"),
              HasSubstr("spec.pipeline[0].bucketBatch.boundaries: [4,4]: must rise"));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [4], "size": 2, "sizes": [1, 2]})"),
              HasSubstr("takes either sizes, one for each bucket, or one size for all of them"));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [4], "sizes": [2]})"),
              HasSubstr("bucketBatch.sizes: has 1 items; 1 boundaries make 2 buckets"));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [0], "size": 2})"),
              HasSubstr("[0]: must be whole numbers from 1 to "));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [4], "sizes": [1, 2]})", R"(, {"batch": {"size": 2}})"),
              HasSubstr("spec.pipeline[1].batch: joins batches, which must hold equally many records"));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [4], "size": 2})", "",
                      R"(, "distribution": {"rebatch": "Continuous"})"),
              HasSubstr("spec.distribution.rebatch: \"Continuous\" does not go with a bucketBatch"));
  EXPECT_THAT(refused(R"({"feature": "text", "boundaries": [4], "size": 2})", "",
                      R"(, "distribution": {"strategy": "TPU"})"),
              HasSubstr("spec.pipeline[0].bucketBatch: does not go with strategy TPU"));
  EXPECT_THAT(Run(R"([{"batch": {"size": 2}}, {"bucketBatch": {"feature": "text", "boundaries": [4], "size": 2}}])")
                  .status()
                  .message(),
              HasSubstr("spec.pipeline[1].bucketBatch: must be the first batch"));
}

}  // namespace
}  // namespace headrace::side
