// Writes down every batch that a trainer gets, wherever its tensors are:
//   batch_dump DIRECTORY host|device EPOCHS FILE
// Each replica's after the other's: for each tensor where it is and how many bytes it has, then its bytes. Prints how
// many batches it were, and how many tensors on a GPU.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "headrace/client.h"

namespace {

int Fail(const char* what) {
  std::fprintf(stderr, "batch_dump: %s: %s\n", what, headrace_last_error());
  return 1;
}

struct Count {
  int batches = 0;
  int on_gpu = 0;  // tensors
};

bool Dump(const headrace_batch* batch, FILE* to, Count* count) {
  for (int32_t i = 0; i < headrace_batch_num_tensors(batch); ++i) {
    headrace_tensor tensor{};
    tensor.size = sizeof(tensor);
    if (headrace_batch_tensor(batch, i, &tensor) != HEADRACE_OK) return false;
    std::vector<char> bytes(static_cast<size_t>(tensor.nbytes));
    if (!bytes.empty() && headrace_batch_copy_tensor(batch, i, bytes.data()) != HEADRACE_OK) return false;
    std::fprintf(to, "%d: %lld\n", i, static_cast<long long>(tensor.nbytes));
    std::fwrite(bytes.data(), 1, bytes.size(), to);
    count->on_gpu += tensor.device_type == 2 ? 1 : 0;
  }
  count->batches += 1;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  headrace_connect_options options{};
  options.size = sizeof(options);
  options.directory = argv[1];
  options.timeout_ms = 60000;
  options.takes_device = std::strcmp(argv[2], "device") == 0 ? 1 : 0;
  headrace_dataset* dataset = nullptr;
  if (headrace_connect(&options, &dataset) != HEADRACE_OK) return Fail("connecting");
  FILE* const file = std::fopen(argv[4], "wb");
  if (file == nullptr) return Fail("opening the file");
  Count count;
  for (int epochs = std::atoi(argv[3]); epochs > 0; --epochs) {
    headrace_iterator* iterator = nullptr;
    if (headrace_iterator_create(dataset, HEADRACE_WHOLE_WORKER, &iterator) != HEADRACE_OK) return Fail("starting");
    std::vector<headrace_batch*> batches(static_cast<size_t>(headrace_iterator_width(iterator)));
    headrace_status status = HEADRACE_OK;
    while ((status = headrace_next(iterator, 60000, batches.data())) == HEADRACE_OK) {
      for (headrace_batch* batch : batches) {
        if (!Dump(batch, file, &count)) return Fail("reading");
        headrace_batch_free(batch);
      }
    }
    if (status != HEADRACE_END) return Fail("next");
    headrace_iterator_free(iterator);
  }
  headrace_dataset_free(dataset);
  if (std::fclose(file) != 0) return Fail("writing");
  std::printf("%d batches, %d tensors on a GPU\n", count.batches, count.on_gpu);
  return 0;
}
