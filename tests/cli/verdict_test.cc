// Who is named as the limit, from what the stages were seen to do.
#include "cli/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

using testing::HasSubstr;

// One replica whose trainer takes batches and waits for this share of its time; two threads that decode.
LoaderRates Rates(double trainer_wait, LoaderSample::Stage read, LoaderSample::Stage decode) {
  LoaderRates rates;
  rates.seconds = 1;
  rates.rates.replicas.resize(1);
  rates.rates.replicas[0].batches = 10;
  rates.rates.replicas[0].trainer_wait = trainer_wait;
  rates.rates.decode_threads = 2;
  rates.rates.read = read;
  rates.rates.decode = decode;
  return rates;
}

TEST(Verdict, ATrainerThatDoesNotWaitIsTheLimit) {
  const Verdict verdict = Judge(Rates(0.01, {0.1, 0, 0.9}, {0.2, 0, 0.8}));
  EXPECT_EQ(verdict.limit, Limit::kTrainer);
  EXPECT_EQ(verdict.sentence, "the trainer does not wait: it is the limit (the loader waits for it 80 % of the time)");
}

TEST(Verdict, NothingTakenIsNobodysLimit) {
  LoaderRates rates = Rates(0, {0, 0, 1}, {0, 0, 1});
  rates.rates.replicas[0].batches = 0;
  EXPECT_EQ(Judge(rates).limit, Limit::kNothingTaken);
}

TEST(Verdict, AStageThatTheOtherWaitsForIsTheLimit) {
  const Verdict decode = Judge(Rates(0.43, {0.3, 0.1, 0.6}, {1.9, 0.02, 0}));
  EXPECT_EQ(decode.limit, Limit::kDecode);
  EXPECT_EQ(decode.sentence, "the trainer waits 43 % of the time: decoding is the limit (2 threads, 95 % busy)");
  const Verdict read = Judge(Rates(0.5, {0.9, 0.1, 0}, {0.4, 0.7, 0}));
  EXPECT_EQ(read.limit, Limit::kRead);
  EXPECT_EQ(read.sentence, "the trainer waits 50 % of the time: reading is the limit (1 thread, 90 % busy)");
}

TEST(Verdict, ReadingThatWaitsForStorageIsNotTheLimitItself) {
  const Verdict verdict = Judge(Rates(0.9, {0.1, 0.9, 0}, {0.1, 0.9, 0}));
  EXPECT_EQ(verdict.limit, Limit::kInput);
  EXPECT_THAT(verdict.sentence, HasSubstr("reading waits for it 90 % of the time"));
}

TEST(Verdict, RecordsReadAsTheyAreDecodedWaitForStorageThere) {
  EXPECT_EQ(Judge(Rates(0.9, {0.01, 0, 0.99}, {0.2, 1.8, 0})).limit, Limit::kDecodeInput);
}

TEST(Verdict, SidesThatWaitByTurnsDoNotMeet) {
  EXPECT_EQ(Judge(Rates(0.7, {0.1, 0, 0.9}, {0.1, 0.1, 0.5})).limit, Limit::kTurns) << "trainer and loader";
  EXPECT_EQ(Judge(Rates(1, {0.06, 0.26, 0.68}, {0.3, 0.38, 0.1})).limit, Limit::kTurns) << "read and decode";
}

TEST(Verdict, AnIdleLoaderWaitsForOthers) { EXPECT_EQ(Judge(Rates(1, {}, {})).limit, Limit::kOthers); }

TEST(Verdict, AReplicaThatDoesNotTakeItsBatchesStopsTheOthers) {
  LoaderRates rates = Rates(0, {0.1, 0, 0.9}, {0.1, 0, 0.9});
  rates.rates.replicas[0].ring_full = 0.9;
  rates.rates.replicas.push_back({});
  rates.rates.replicas[1].trainer_wait = 0.9;
  const Verdict verdict = Judge(rates);
  EXPECT_EQ(verdict.limit, Limit::kReplica);
  EXPECT_EQ(verdict.sentence, "replica 1's trainer waits 90 % of the time: replica 0 does not take its batches");
}

TEST(Percent, IsOfAnIntervalAndSoAtMostAll) {
  EXPECT_EQ(Percent(0.434), "43 %");
  EXPECT_EQ(Percent(1.02), "100 %");
}

}  // namespace
}  // namespace headrace::cli
