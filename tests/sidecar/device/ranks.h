// Ranks of an NCCL exchange, each on a thread of its own, as loaders are processes of their own.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "sidecar/device/nccl.h"

namespace headrace::device {

inline const auto kNever = [] { return false; };

struct Rank {
  int64_t number = 0;
  std::unique_ptr<side::Exchange> exchange;
};

// Opens an exchange for each rank, joins them all, then runs `body` for each. What a rank's body returns, by rank.
inline std::vector<Status> RunRanks(int64_t ranks, int64_t timeout_ms, const std::function<Status(Rank&)>& body) {
  std::vector<Rank> all(static_cast<size_t>(ranks));
  std::vector<Status> outcomes(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].number = static_cast<int64_t>(i);
    auto opened = OpenNcclExchange({ranks, all[i].number, timeout_ms});
    outcomes[i] = opened.status();
    if (opened.ok()) all[i].exchange = std::move(*opened);
  }
  for (const Status& outcome : outcomes) {
    if (!outcome.ok()) return outcomes;
  }
  const Result<std::string> id = all[0].exchange->NewId();
  if (!id.ok()) return std::vector<Status>(all.size(), id.status());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = all[i].exchange->Join(*id, kNever);
      if (outcomes[i].ok()) outcomes[i] = body(all[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace headrace::device
