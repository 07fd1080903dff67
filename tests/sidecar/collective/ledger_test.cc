#include "sidecar/collective/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace headrace::side {
namespace {

using Knowledge = EpochKnowledge;

TEST(LedgerTest, AnEpochHasAsManyStepsAsTheWorkerWithTheMost) {
  Ledger ledger(3);
  EXPECT_EQ(ledger.Of(0), (Knowledge{0, false}));
  ledger.Report(0, 0, 3, true);
  ledger.Report(1, 0, 5, false);
  EXPECT_EQ(ledger.Of(0), (Knowledge{5, false}));
  ledger.Report(2, 0, 4, true);
  EXPECT_EQ(ledger.Of(0), (Knowledge{5, false})) << "worker 1 may have more";
  ledger.Report(1, 0, 7, true);
  EXPECT_EQ(ledger.Of(0), (Knowledge{7, true}));
  EXPECT_EQ(ledger.Of(1), (Knowledge{0, false}));
}

TEST(LedgerTest, AWorkerInALaterEpochHasEndedInTheEarlier) {
  Ledger ledger(2);
  ledger.Report(0, 0, 2, true);
  ledger.Report(1, 0, 4, false);
  ledger.AddFinal(0, 6);  // worker 1, as it breaks out
  ledger.Report(1, 3, 1, false);
  EXPECT_EQ(ledger.Of(0), (Knowledge{6, true}));
  EXPECT_EQ(ledger.Of(1), (Knowledge{0, false})) << "worker 0 is still to come";
  EXPECT_EQ(ledger.Of(3), (Knowledge{1, false}));
  EXPECT_EQ(ledger.floor(), 0u);
  ledger.Report(0, 2, 9, true);
  EXPECT_EQ(ledger.floor(), 2u);
  EXPECT_EQ(ledger.Of(2), (Knowledge{9, true})) << "worker 1 skipped it";
  EXPECT_EQ(ledger.Epochs(), (std::vector<uint64_t>{2, 3})) << "what lies below the floor is forgotten";
}

TEST(LedgerTest, ReportsOnlyAdd) {
  Ledger ledger(2);
  ledger.Report(0, 1, 5, true);
  ledger.Report(0, 1, 2, false);  // restarted, and at an earlier step again
  ledger.Report(0, 0, 9, false);
  ledger.Report(1, 1, 3, true);
  EXPECT_EQ(ledger.Of(1), (Knowledge{5, true}));
}

TEST(LedgerTest, WhatCannotBeClosedWithoutAWorker) {
  Ledger ledger(2);
  EXPECT_EQ(ledger.FirstOpenOf(1), 0u);
  ledger.Report(1, 4, 2, false);
  EXPECT_EQ(ledger.FirstOpenOf(1), 4u);
  ledger.Report(1, 4, 2, true);
  EXPECT_EQ(ledger.FirstOpenOf(1), 5u);
}

// Reports in any order that keeps each worker's own, some of them twice: closed exactly when all have ended, with the
// most steps of any.
TEST(LedgerTest, AnyOrderComesToTheSame) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int64_t workers = 2 + static_cast<int64_t>(random() % 4);
    std::vector<int64_t> total, done(static_cast<size_t>(workers), 0);
    std::vector<bool> ended(static_cast<size_t>(workers), false);
    for (int64_t w = 0; w < workers; ++w) total.push_back(static_cast<int64_t>(random() % 6));
    Ledger ledger(workers);
    while (std::find(ended.begin(), ended.end(), false) != ended.end()) {
      const size_t w = random() % static_cast<size_t>(workers);
      if (random() % 4 == 0) ledger.Report(static_cast<int64_t>(w), 0, done[w] / 2, false);  // late
      if (done[w] < total[w]) {
        ledger.Report(static_cast<int64_t>(w), 0, ++done[w], false);
      } else {
        ended[w] = true;
        ledger.Report(static_cast<int64_t>(w), 0, done[w], true);
      }
      const bool all = std::find(ended.begin(), ended.end(), false) == ended.end();
      ASSERT_EQ(ledger.Of(0), (Knowledge{*std::max_element(done.begin(), done.end()), all}));
    }
  }
}

}  // namespace
}  // namespace headrace::side
