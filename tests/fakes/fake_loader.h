// A loader of made-up data: it serves the handshake and fills the rings as the real one does, in steps over all
// replicas together, and takes over what a predecessor left.
//
// Components: label int64 (rows), x float32 (rows, 3) and, if asked for, one of each further type, or those of variable
// length: text string (rows), title string (), tokens int64 (rows, ragged), boxes float32 (rows, ragged, 2).
//   label[i] = Label(...) + i         x[i][j] = label[i] + j / 4
//   text[i] = label[i] in digits, but "" for every fourth row          title = "batch L", L being label[0]
//   tokens[i] = [label[i], -label[i]], of which i % 3 values are there  boxes[i] = the same as i % 2 boxes
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/ring/handshake.h"
#include "common/ring/writer.h"

namespace headrace::fakes {

struct FakeLoaderOptions {
  std::string directory;
  int64_t replicas = 1;
  int64_t num_workers = 1;
  int64_t worker_index = 0;
  int64_t rows = 4;
  int64_t steps = 5;  // of an epoch; -1: endless
  uint64_t slots = 4;
  std::string plan_hash = "0123456789abcdef";
  bool partial_last_step = false;  // the last replica has no data in the last step, which is flagged kPartialStep
  bool all_dtypes = false;
  bool variable = false;  // the components of variable length
  bool fill = true;       // false: dense tensors hold what the slot held, for those who measure the way from there on
  MemoryKind memory = MemoryKind::kAuto;
  bool on_demand = false;  // what the handshake says of it
  // Called before each batch is published, to spoil it.
  std::function<void(uint8_t* slot, std::vector<ring::ComponentExtent>& extents)> spoil;
  int64_t fail_at_step = -1;   // of epoch 0: instead of publishing it, the loader fails with `error`
  int64_t pause_at_step = -1;  // of epoch 0: nothing comes from there on
  std::string error;           // alone: every handshake is answered with it
};

class FakeLoader {
 public:
  static Result<std::unique_ptr<FakeLoader>> Start(FakeLoaderOptions options);
  ~FakeLoader();

  static int64_t Label(const FakeLoaderOptions& options, uint64_t epoch, uint64_t step, int64_t replica) {
    return ((static_cast<int64_t>(epoch) * 1000 + static_cast<int64_t>(step)) * options.replicas + replica) *
           options.rows;
  }
  const ring::RingHeader& header(size_t replica) const { return writers_[replica]->header(); }

 private:
  explicit FakeLoader(FakeLoaderOptions options);
  Status Listen();
  void Serve();
  void Answer(int socket, std::vector<std::pair<int, int>>* clients);
  void Fill();
  Status PublishStep(uint64_t epoch, uint64_t step);
  ring::HandshakeReply Reply() const;

  const FakeLoaderOptions options_;
  std::vector<TensorSpec> element_spec_;
  std::vector<std::unique_ptr<ring::RingWriter>> writers_;
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  std::thread server_;
  std::thread filler_;
};

}  // namespace headrace::fakes
