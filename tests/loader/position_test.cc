// Positions: what an iterator at a saved position delivers is what the one that saved it would have, also in another
// run.
#include <array>
#include <thread>

#include "tests/loader/run.h"
#include "tests/sidecar/files.h"

namespace headrace::testing {
namespace {

// Without a seed: the order is the run's own, and the position must carry it.
constexpr char kShuffled[] = R"({"source": {"range": {"stop": 100}},
  "pipeline": [{"shuffle": {"bufferSize": 30}}, {"repeat": {"count": 2}}, {"batch": {"size": 8}}]})";

std::vector<Reader::Step> Epoch(Reader& reader) {
  reader.Start();
  return reader.Rest();
}

TEST(Position, EveryStepOfAnEpochIsFoundAgain) {
  LoaderRun first(kShuffled, 1, 2, "first");
  Reader saved(first.directory(0));
  ASSERT_EQ(Epoch(saved).size(), 25u);
  saved.Start();
  std::vector<Reader::Step> steps;
  std::vector<headrace_position> positions;
  while (true) {
    positions.push_back(saved.Position());
    Reader::Step step = saved.Next();
    if (step.empty()) break;
    steps.push_back(std::move(step));
  }
  ASSERT_EQ(steps.size(), 25u);
  const std::vector<Reader::Step> next_epoch = Epoch(saved);
  EXPECT_NE(next_epoch, steps) << "each epoch has its own order";

  LoaderRun second(kShuffled, 1, 2, "second");
  Reader loaded(second.directory(0));
  EXPECT_NE(Epoch(loaded), steps);
  for (size_t at = 0; at < positions.size(); ++at) {
    EXPECT_EQ(positions[at].epoch, 1);
    EXPECT_EQ(positions[at].step, static_cast<int64_t>(at));
    loaded.Start(&positions[at]);
    const std::vector<Reader::Step> rest(steps.begin() + static_cast<int64_t>(at), steps.end());
    EXPECT_EQ(loaded.Rest(), rest) << "from step " << at << ": " << loaded.error();
  }
  EXPECT_EQ(Epoch(loaded), next_epoch) << "in the same order, of the first run";
}

TEST(Position, SurvivesTheLoadersDeath) {
  LoaderRun run(kShuffled, 1, 1);
  Reader reader(run.directory(0));
  const std::vector<Reader::Step> all = Epoch(reader);
  ASSERT_EQ(all.size(), 25u);
  const headrace_position position{sizeof(headrace_position), 0, 7, 0};
  reader.Start(&position);
  EXPECT_EQ(reader.Next(), all[7]);
  run.Kill(0, SIGKILL);
  run.StartLoader(0);
  EXPECT_EQ(reader.Rest(), std::vector<Reader::Step>(all.begin() + 8, all.end())) << reader.error();
}

TEST(Position, BehindTheEndIsTheEnd) {
  LoaderRun run(kShuffled, 1, 1);
  Reader reader(run.directory(0));
  const headrace_position position{sizeof(headrace_position), 0, 1000, 0};
  reader.Start(&position);
  EXPECT_TRUE(reader.Next().empty());
  EXPECT_EQ(reader.error(), "");
  EXPECT_EQ(Epoch(reader).size(), 25u) << "the epoch after it";
}

TEST(Position, NegativeIsRefused) {
  LoaderRun run(kShuffled, 1, 1);
  Reader reader(run.directory(0));
  const headrace_position position{sizeof(headrace_position), 0, -1, 0};
  reader.Start(&position);
  EXPECT_EQ(reader.error(), "epoch 0, step -1 is no position: both count from 0");
}

// Both workers' epochs, read at the same time, as trainers do.
std::array<std::vector<Reader::Step>, 2> BothFrom(Reader (&workers)[2], const headrace_position* position) {
  std::array<std::vector<Reader::Step>, 2> steps;
  std::thread other([&] {
    workers[1].Start(position);
    steps[1] = workers[1].Rest();
  });
  workers[0].Start(position);
  steps[0] = workers[0].Rest();
  other.join();
  for (const Reader& worker : workers) EXPECT_EQ(worker.error(), "");
  return steps;
}

TEST(Position, AllWorkersGoBackTogether) {
  // Worker 0's files hold 5 records, worker 1's 1.
  Folder data;
  const auto write = [&](const std::string& name, const std::vector<int64_t>& values) {
    std::string bytes;
    for (const int64_t value : values) bytes += side::TFRecordOf(side::ExampleOf({{"x", side::Int64List({value})}}));
    std::ofstream(data.path() + "/" + name, std::ios::binary) << bytes;
  };
  write("a", {0, 1, 2, 3, 4});
  write("b", {5});
  LoaderRun run(R"({"source": {"files": {"paths": [")" + data.path() + R"(/*"]}},
                    "features": [{"name": "x", "dtype": "int64", "shape": []}],
                    "pipeline": [{"batch": {"size": 1}}], "distribution": {"rebatch": "Continuous"}})",
                2, 1);
  Reader workers[] = {Reader(run.directory(0)), Reader(run.directory(1))};
  const auto all = BothFrom(workers, nullptr);
  EXPECT_EQ(all[0].size(), all[1].size()) << "all end together";
  int64_t records = 0;
  for (const auto& worker : all) {
    for (const Reader::Step& step : worker) records += static_cast<int64_t>(step[0].size());
  }
  EXPECT_EQ(records, 6);
  EXPECT_EQ(BothFrom(workers, nullptr), all);
  const headrace_position position{sizeof(headrace_position), 0, 3, 0};
  const auto rest = BothFrom(workers, &position);
  for (size_t w = 0; w < 2; ++w) {
    EXPECT_EQ(rest[w], std::vector<Reader::Step>(all[w].begin() + 3, all[w].end())) << "worker " << w;
  }
  EXPECT_EQ(BothFrom(workers, nullptr), all) << "the epoch after it";
}

}  // namespace
}  // namespace headrace::testing
