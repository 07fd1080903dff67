// A trainer with a GPU of the stand-in driver, which tests kill:
//   pinned_trainer DIRECTORY EPOCH STEP BATCHES
// Reads BATCHES batches from that place on and prints "STEP FIRST_LABEL" of each once it has been checked; then stops
// the GPU's copies, takes what comes, prints "copying" and waits to be killed. At the end of the epoch it prints "end".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "headrace/client.h"
#include "tests/fakes/fake_cuda.h"

namespace {

int Fail() {
  std::printf("failed: %s\n", headrace_last_error());
  std::fflush(stdout);
  return 1;
}

// The first label, if label and x are what the fake loader makes of it.
bool ReadLabel(const headrace_batch* batch, int64_t* first) {
  headrace_tensor label{};
  headrace_tensor x{};
  label.size = x.size = sizeof(headrace_tensor);
  if (headrace_batch_tensor(batch, 0, &label) != HEADRACE_OK) return false;
  if (headrace_batch_tensor(batch, 1, &x) != HEADRACE_OK || x.device_type != 2) return false;
  std::vector<int64_t> labels(static_cast<size_t>(label.nbytes) / sizeof(int64_t));
  std::vector<float> xs(static_cast<size_t>(x.nbytes) / sizeof(float));
  if (headrace_batch_copy_tensor(batch, 0, labels.data()) != HEADRACE_OK) return false;
  if (headrace_batch_copy_tensor(batch, 1, xs.data()) != HEADRACE_OK) return false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != labels[0] + static_cast<int64_t>(i) || xs[3 * i] != static_cast<float>(labels[i])) return false;
  }
  *first = labels[0];
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  headrace_connect_options options{};
  options.size = sizeof(options);
  options.directory = argv[1];
  options.timeout_ms = 20000;
  options.takes_device = 1;
  headrace_position place{};
  place.size = sizeof(place);
  place.epoch = std::strtoll(argv[2], nullptr, 10);
  place.step = std::strtoll(argv[3], nullptr, 10);
  headrace_dataset* dataset = nullptr;
  headrace_iterator* iterator = nullptr;
  if (headrace_connect(&options, &dataset) != HEADRACE_OK) return Fail();
  if (headrace_iterator_create_at(dataset, 0, &place, &iterator) != HEADRACE_OK) return Fail();
  for (long left = std::strtol(argv[4], nullptr, 10); left > 0; --left) {
    headrace_batch* batch = nullptr;
    const headrace_status status = headrace_next(iterator, 20000, &batch);
    if (status == HEADRACE_END) {
      headrace_iterator_free(iterator);
      headrace_dataset_free(dataset);
      FakeCudaState left_over;
      FakeCudaGetState(&left_over);
      std::printf(left_over.device_bytes + left_over.registrations + left_over.contexts == 0 ? "end\n" : "leak\n");
      return 0;
    }
    int64_t label = -1;
    if (status != HEADRACE_OK || !ReadLabel(batch, &label)) return Fail();
    std::printf("%lld %lld\n", static_cast<long long>(headrace_batch_step(batch)), static_cast<long long>(label));
    std::fflush(stdout);
    headrace_batch_free(batch);
  }
  FakeCudaHoldCopies(1);
  headrace_batch* batch = nullptr;
  const headrace_status status = headrace_next(iterator, 20000, &batch);
  if (status != HEADRACE_OK && status != HEADRACE_END) return Fail();
  std::puts("copying");
  std::fflush(stdout);
  pause();
  return 1;
}
