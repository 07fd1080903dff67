// Feeds of several workers in one process, that share what one of them reads, held to what each would read alone.
#include "sidecar/loader/shared_feed.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "tests/sidecar/collective/agreements.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using ::testing::HasSubstr;

// What exchanges of one process meet in: messages by receiver.
struct Post {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, std::deque<std::string>> to;
  int joined = 0;
  bool broken = false;
  int64_t moved_bytes = 0;
};

// An exchange in memory, that breaks when it is told to.
class PostExchange : public Exchange {
 public:
  PostExchange(Post* post, int64_t worker, int64_t workers) : post_(*post), worker_(worker), workers_(workers) {}

  Result<std::string> NewId() override { return std::string("id"); }
  Status Join(const std::string& id, const GiveUp& give_up) override {
    EXPECT_EQ(id, "id");
    std::unique_lock lock(post_.mutex);
    ++post_.joined;
    post_.changed.notify_all();
    return Await(lock, give_up, [&] { return post_.joined == workers_; });
  }
  Result<uint8_t*> Allocate(size_t bytes) override {
    return memory_.emplace_back(std::make_unique<uint8_t[]>(bytes)).get();
  }
  Status Broadcast(const Part& part, const GiveUp& give_up) override {
    if (worker_ > 0) return Receive(part, give_up);
    return Scatter(std::vector<Part>(static_cast<size_t>(workers_), part), give_up);
  }
  Status Scatter(std::span<const Part> parts, const GiveUp&) override {
    const std::lock_guard lock(post_.mutex);
    if (post_.broken) return Unavailable("the post is broken");
    for (size_t w = 1; w < parts.size(); ++w) {
      post_.to[static_cast<int64_t>(w)].emplace_back(reinterpret_cast<const char*>(parts[w].data), parts[w].bytes);
      post_.moved_bytes += static_cast<int64_t>(parts[w].bytes);
    }
    post_.changed.notify_all();
    return {};
  }
  Status Receive(const Part& part, const GiveUp& give_up) override {
    std::unique_lock lock(post_.mutex);
    std::deque<std::string>& box = post_.to[worker_];
    RETURN_IF_ERROR(Await(lock, give_up, [&] { return !box.empty(); }));
    EXPECT_EQ(box.front().size(), part.bytes);
    std::memcpy(part.data, box.front().data(), part.bytes);
    box.pop_front();
    return {};
  }

 private:
  template <typename Condition>
  Status Await(std::unique_lock<std::mutex>& lock, const GiveUp& give_up, Condition condition) {
    while (!condition()) {
      if (post_.broken) return Unavailable("the post is broken");
      if (give_up()) return Cancelled("given up");
      post_.changed.wait_for(lock, std::chrono::milliseconds(5));
    }
    return {};
  }

  Post& post_;
  const int64_t worker_;
  const int64_t workers_;
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
};

// One delivery, as the trainer gets it.
struct Got {
  int64_t step = 0;
  int64_t replica = 0;
  int64_t rows = 0;
  std::string bytes;
  bool operator==(const Got&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Got& got) {
  return out << "step " << got.step << ", replica " << got.replica << ": " << got.rows << " rows";
}

// The next delivery; nothing at the end of the epoch.
Result<std::optional<Got>> NextOf(FeedEpoch& epoch, Feed& feed, Signal& signal) {
  FeedEpoch::Delivery delivery;
  ASSIGN_OR_RETURN(const bool more, AwaitNext(epoch, signal, &delivery));
  if (!more) return std::optional<Got>();
  std::vector<uint8_t> slot(feed.max_bytes(), 0xee);
  FeedEpoch::Place place{slot.data(), slot.size(), {}};
  RETURN_IF_ERROR(WriteWhole(epoch, &delivery, &place));
  Got got{delivery.step, delivery.replica, delivery.rows, ""};
  for (const ring::ComponentExtent& extent : place.extents) {
    got.bytes.append(reinterpret_cast<const char*>(slot.data()) + extent.offset, extent.bytes);
    got.bytes += "/" + std::to_string(extent.dims[0]) + "/";
    if (extent.splits_offset == 0) continue;
    got.bytes.append(reinterpret_cast<const char*>(slot.data()) + extent.splits_offset,
                     ring::NumSplits(extent).value_or(0) * sizeof(int64_t));
  }
  return std::optional(got);
}

std::vector<Got> RestOf(FeedEpoch& epoch, Feed& feed, Signal& signal, size_t most = 10000) {
  std::vector<Got> all;
  while (all.size() < most) {
    auto got = NextOf(epoch, feed, signal);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    if (!got.ok() || !got->has_value()) break;
    all.push_back(**got);
  }
  return all;
}

class SharedFeedTest : public AgreementTest {
 protected:
  static constexpr int64_t kWorkers = 3;
  static constexpr int64_t kReplicas = 2;
  static constexpr size_t kThreads = 2;

  // 50 lines of different lengths, compressed, so that no worker can seek in them.
  SharedFeedTest() {
    std::string lines;
    for (int i = 0; i < 50; ++i) lines += std::string(static_cast<size_t>(i % 13), 'x') + std::to_string(i) + "\n";
    std::ofstream(folder_ + "/lines.gz", std::ios::binary) << GzipOf(lines);
  }

  std::string Spec(const std::string& policy) const {
    return R"({"source": {"files": {"format": "Text", "paths": [")" + folder_ + R"(/lines.gz"]}},
               "pipeline": [{"shuffle": {"bufferSize": 9}}, {"batch": {"size": 8}}],
               "distribution": {"autoShardPolicy": ")" +
           policy + R"("}})";
  }

  std::unique_ptr<Pipeline> Make(const std::string& policy, Topology topology, bool reads_for_all, Signal* signal) {
    Plan plan = CompilePlan(*ParseInputSpec(nlohmann::json::parse(Spec(policy))), "test");
    if (reads_for_all && policy == "Data") {
      plan.effective_policy = AutoShardPolicy::kOff;
      topology = {1, 0, topology.replicas_in_sync()};
    }
    auto made = Pipeline::Create(std::move(plan), topology, "", "run", "", kThreads, signal);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return std::move(*made);
  }

  struct Worker {
    Signal signal;
    std::unique_ptr<Agreement> agreement;
    std::unique_ptr<SharedFeed> feed;
  };

  void StartWorkers(const std::string& policy, bool falls_back = true) {
    for (int64_t w = 0; w < kWorkers; ++w) {
      Worker& worker = workers_.emplace_back();
      worker.agreement = Start(Options(w, kWorkers));
      const Topology topology{kWorkers, w, kReplicas};
      SharedFeedOptions options;
      options.own = Make(policy, topology, false, &worker.signal);
      options.signal = &worker.signal;
      options.scatters = policy == "Data";
      options.falls_back = falls_back;
      options.agreement = worker.agreement.get();
      options.open = [this, w]() -> Result<std::unique_ptr<Exchange>> {
        if (w == refuses_) return NotFound("no CUDA driver in this process");
        return std::unique_ptr<Exchange>(std::make_unique<PostExchange>(&post_, w, kWorkers));
      };
      if (w == 0) {
        auto signal = std::make_unique<Signal>();
        auto feed = Make(policy, topology, true, signal.get());
        options.reader = std::make_unique<ShareReader>(std::move(feed), std::move(signal), kThreads,
                                                       options.scatters ? kWorkers : 1, kReplicas);
      }
      worker.feed = std::make_unique<SharedFeed>(std::move(options));
    }
  }

  // What a worker delivers from a position on when it reads by itself.
  std::vector<Got> Alone(const std::string& policy, int64_t worker, const ring::Position& start) {
    Signal signal;
    const auto feed = Make(policy, {kWorkers, worker, kReplicas}, false, &signal);
    const auto epoch = feed->Start(start);
    return RestOf(**epoch, *feed, signal);
  }

  ring::Position At(uint64_t epoch, uint64_t step) { return {epoch, step, workers_.front().feed->run_seed()}; }

  // Each worker's deliveries of what `body` does with its feed, on threads of their own.
  std::vector<std::vector<Got>> Each(const std::function<std::vector<Got>(Worker&, int64_t)>& body) {
    std::vector<std::vector<Got>> all(workers_.size());
    std::vector<std::thread> threads;
    for (size_t w = 0; w < workers_.size(); ++w) {
      threads.emplace_back([&, w] { all[w] = body(workers_[w], static_cast<int64_t>(w)); });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
  }

  void ExpectAsAlone(const std::string& policy) {
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const auto got = Each([&](Worker& worker, int64_t) {
        const auto started = worker.feed->Start(At(epoch, 0));
        return RestOf(**started, *worker.feed, worker.signal);
      });
      for (int64_t w = 0; w < kWorkers; ++w) {
        const std::vector<Got> alone = Alone(policy, w, At(epoch, 0));
        ASSERT_GT(alone.size(), 10u);
        // Alone, a worker may end before others; all fill up their last step.
        const std::vector<Got>& shared = got[static_cast<size_t>(w)];
        ASSERT_GE(shared.size(), alone.size());
        EXPECT_EQ(std::vector<Got>(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(alone.size())), alone)
            << policy << ", epoch " << epoch << ", worker " << w;
        for (size_t i = alone.size(); i < shared.size(); ++i) EXPECT_EQ(shared[i].rows, 0);
        EXPECT_EQ(shared.size(), got[0].size()) << "all end at one step";
      }
    }
  }

  Post post_;
  int64_t refuses_ = -1;
  std::deque<Worker> workers_;
};

TEST_F(SharedFeedTest, UnderOffAllGetWhatWorkerZeroReads) {
  StartWorkers("Off");
  ExpectAsAlone("Off");
  EXPECT_EQ(workers_[1].feed->bytes_read(), 0u);
  EXPECT_EQ(workers_[2].feed->bytes_read(), 0u);
}

TEST_F(SharedFeedTest, UnderDataEachByteIsReadOnceInTheRun) {
  StartWorkers("Data");
  ExpectAsAlone("Data");
  Signal signal;
  const auto one = Make("Data", {1, 0, 1}, false, &signal);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) RestOf(**one->Start(At(epoch, 0)), *one, signal);
  EXPECT_EQ(workers_[0].feed->bytes_read(), one->bytes_read()) << "as much as a run of one worker reads";
  EXPECT_EQ(workers_[1].feed->bytes_read() + workers_[2].feed->bytes_read(), 0u);
}

TEST_F(SharedFeedTest, WhenItBreaksEachGoesOnFromWhereItWas) {
  for (const std::string policy : {"Off", "Data"}) {
    StartWorkers(policy);
    const auto got = Each([&](Worker& worker, int64_t w) {
      const auto epoch = worker.feed->Start(At(0, 0));
      // In the middle of a step, and not at the same place everywhere.
      std::vector<Got> all = RestOf(**epoch, *worker.feed, worker.signal, 5);
      if (w == 1) {
        const std::lock_guard lock(post_.mutex);
        post_.broken = true;
      }
      const std::vector<Got> rest = RestOf(**epoch, *worker.feed, worker.signal);
      all.insert(all.end(), rest.begin(), rest.end());
      return all;
    });
    for (int64_t w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(got[static_cast<size_t>(w)], Alone(policy, w, At(0, 0))) << policy << ", worker " << w;
    }
    EXPECT_THAT(workers_[2].agreement->rounds().why_ended().message(), HasSubstr("the post is broken"));
    EXPECT_THAT(workers_[2].agreement->rounds().why_ended().message(), HasSubstr("worker "));
    workers_.clear();
    post_.broken = false;
    post_.joined = 0;
    post_.to.clear();
  }
}

TEST_F(SharedFeedTest, OneThatHoldsNoGpuIsNamedAndAllReadAlone) {
  refuses_ = 2;
  StartWorkers("Off");
  ExpectAsAlone("Off");
  EXPECT_GT(workers_[1].feed->bytes_read(), 0u);
  EXPECT_EQ(workers_[0].agreement->rounds().why_ended().message(), "worker 2: no CUDA driver in this process");
  EXPECT_EQ(post_.moved_bytes, 0);
}

TEST_F(SharedFeedTest, OnErrorFailEndsTheInput) {
  refuses_ = 1;
  StartWorkers("Off", /*falls_back=*/false);
  Each([&](Worker& worker, int64_t) {
    const auto epoch = worker.feed->Start(At(0, 0));
    const auto got = NextOf(**epoch, *worker.feed, worker.signal);
    EXPECT_EQ(got.status().code(), Code::kNotFound);
    EXPECT_THAT(got.status().message(), HasSubstr("spec.distribution.collective"));
    EXPECT_THAT(got.status().message(), HasSubstr("worker 1: no CUDA driver"));
    return std::vector<Got>();
  });
}

TEST_F(SharedFeedTest, ALoaderThatLeavesInOrderIsNoError) {
  StartWorkers("Off", /*falls_back=*/false);
  Each([&](Worker& worker, int64_t) {
    const auto epoch = worker.feed->Start(At(0, 0));
    return RestOf(**epoch, *worker.feed, worker.signal);
  });
  workers_[2].feed.reset();
  const auto epoch = workers_[1].feed->Start(At(1, 0));
  EXPECT_EQ(RestOf(**epoch, *workers_[1].feed, workers_[1].signal), Alone("Off", 1, At(1, 0)));
}

TEST_F(SharedFeedTest, WhoIsBehindGetsFirstWhatItLacks) {
  StartWorkers("Data");
  // Worker 1 alone has lost some steps, and worker 2's trainer goes back when it has some.
  const auto expect = [&](Worker& worker, int64_t w, const ring::Position& start, size_t most) {
    const auto epoch = worker.feed->Start(start);
    std::vector<Got> expected = Alone("Data", w, start);
    expected.resize(std::min(most, expected.size()));
    EXPECT_EQ(RestOf(**epoch, *worker.feed, worker.signal, most), expected)
        << "worker " << w << ", epoch " << start.epoch << " from step " << start.step;
  };
  Each([&](Worker& worker, int64_t w) {
    expect(worker, w, At(0, w == 1 ? 1 : 4), w == 2 ? 3 : 10000);
    if (w == 2) expect(worker, w, At(0, 0), 10000);
    expect(worker, w, At(1, 0), 10000);
    return std::vector<Got>();
  });
  EXPECT_EQ(workers_[0].agreement->rounds().why_ended().ToString(), "OK");
}

TEST_F(SharedFeedTest, ADifferentSeedEndsIt) {
  StartWorkers("Off");
  Each([&](Worker& worker, int64_t w) {
    const ring::Position start{0, 0, w == 1 ? 17 : worker.feed->run_seed()};
    const auto epoch = worker.feed->Start(start);
    const std::vector<Got> got = RestOf(**epoch, *worker.feed, worker.signal);
    EXPECT_EQ(got, Alone("Off", w, start)) << "worker " << w;
    return got;
  });
  EXPECT_THAT(workers_[2].agreement->rounds().why_ended().message(), HasSubstr("different seeds"));
}

}  // namespace
}  // namespace headrace::side
