/* The header as a C compiler sees it, and one pass over an epoch through the shared library.
 * argv[1]: the ring_loader binary, argv[2]: an empty directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/client.h"

#define CHECK(condition)                                                                                              \
  do {                                                                                                                \
    if (!(condition)) {                                                                                               \
      fprintf(stderr, "%s:%d: %s is false; last error: %s\n", __FILE__, __LINE__, #condition, headrace_last_error()); \
      exit(1);                                                                                                        \
    }                                                                                                                 \
  } while (0)

static int never(void* context) {
  *(int*)context += 1;
  return 0;
}

static int at_once(void* context) {
  (void)context;
  return 1;
}

static void check_epoch(headrace_dataset* dataset, int64_t epoch) {
  headrace_iterator* iterator = NULL;
  CHECK(headrace_iterator_create(dataset, HEADRACE_WHOLE_WORKER, &iterator) == HEADRACE_OK);
  CHECK(headrace_iterator_width(iterator) == 2);
  headrace_batch* batches[2];
  headrace_status status;
  int64_t step = 0;
  while ((status = headrace_next(iterator, 10000, batches)) == HEADRACE_OK) {
    for (int32_t replica = 0; replica < 2; ++replica) {
      headrace_batch* batch = batches[replica];
      CHECK(headrace_batch_replica(batch) == replica);
      CHECK(headrace_batch_epoch(batch) == epoch);
      CHECK(headrace_batch_step(batch) == step);
      CHECK(headrace_batch_rows(batch) == 4);
      CHECK(headrace_batch_num_tensors(batch) == 2);
      headrace_tensor label = {.size = sizeof(headrace_tensor)};
      headrace_tensor x = {.size = sizeof(headrace_tensor)};
      CHECK(headrace_batch_tensor(batch, 0, &label) == HEADRACE_OK);
      CHECK(headrace_batch_tensor(batch, 1, &x) == HEADRACE_OK);
      CHECK(headrace_batch_tensor(batch, 2, &x) == HEADRACE_INVALID_ARGUMENT);
      CHECK(strcmp(label.name, "label") == 0 && label.ndim == 1 && label.shape[0] == 4 && label.strides[0] == 1);
      CHECK(label.nbytes == 32 && label.dtype.code == 0 && label.dtype.bits == 64 && label.dtype.lanes == 1);
      CHECK(strcmp(x.name, "x") == 0 && x.ndim == 2 && x.shape[0] == 4 && x.shape[1] == 3);
      CHECK(x.strides[0] == 3 && x.strides[1] == 1 && x.nbytes == 48 && x.dtype.code == 2 && x.dtype.bits == 32);
      CHECK((uintptr_t)label.data % 64 == 0 && (uintptr_t)x.data % 64 == 0);
      int64_t first = ((epoch * 1000 + step) * 2 + replica) * 4;
      for (int i = 0; i < 4; ++i) {
        CHECK(((int64_t*)label.data)[i] == first + i);
        CHECK(((float*)x.data)[i * 3 + 2] == (float)(first + i) + 0.5f);
      }
      headrace_batch_free(batch);
    }
    ++step;
  }
  CHECK(status == HEADRACE_END);
  CHECK(headrace_next(iterator, 10000, batches) == HEADRACE_END);
  int32_t has_value = 7;
  CHECK(headrace_next_as_optional(iterator, 10000, batches, &has_value) == HEADRACE_OK && has_value == 0);
  CHECK(step == 5);
  headrace_iterator_free(iterator);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  int to_loader[2];
  CHECK(pipe(to_loader) == 0);
  pid_t loader = fork();
  if (loader == 0) {
    dup2(to_loader[0], 0);
    close(to_loader[0]);
    close(to_loader[1]);
    execl(argv[1], argv[1], argv[2], "replicas=2", "num_workers=3", "worker_index=1", (char*)NULL);
    _exit(127);
  }
  close(to_loader[0]);

  CHECK(strcmp(headrace_version(), "0.1.0") == 0);
  CHECK(strcmp(headrace_last_error(), "") == 0);

  headrace_dataset* dataset = NULL;
  int asked = 0;
  headrace_connect_options options = {sizeof(options), argv[2], 20000, never, &asked};
  CHECK(headrace_connect(&options, &dataset) == HEADRACE_OK);
  CHECK(asked > 0);

  CHECK(headrace_num_components(dataset) == 2);
  headrace_tensor_spec spec = {.size = sizeof(spec)};
  CHECK(headrace_component(dataset, 1, &spec) == HEADRACE_OK);
  CHECK(strcmp(spec.name, "x") == 0 && strcmp(spec.dtype.name, "float32") == 0);
  CHECK(spec.ndim == 2 && spec.shape[0] == -1 && spec.shape[1] == 3);
  CHECK(headrace_component(dataset, -1, &spec) == HEADRACE_INVALID_ARGUMENT);
  CHECK(strstr(headrace_element_spec_string(dataset), "TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)"));

  headrace_input_context context = {.size = sizeof(context)};
  CHECK(headrace_get_input_context(dataset, &context) == HEADRACE_OK);
  CHECK(context.num_input_pipelines == 3 && context.input_pipeline_id == 1 && context.num_replicas_in_sync == 6);
  CHECK(context.replicas_per_worker == 2 && context.global_batch_size == 24);
  int64_t batch_size = 0;
  CHECK(headrace_per_replica_batch_size(dataset, 24, &batch_size) == HEADRACE_OK && batch_size == 4);
  CHECK(headrace_per_replica_batch_size(dataset, 25, &batch_size) == HEADRACE_INVALID_ARGUMENT && batch_size == 4);
  CHECK(strstr(headrace_last_error(), "25") && strstr(headrace_last_error(), "6"));

  headrace_info info = {.size = sizeof(info)};
  CHECK(headrace_get_info(dataset, &info) == HEADRACE_OK);
  CHECK(strcmp(info.input, "test/fake") == 0 && strcmp(info.effective_policy, "Data") == 0);
  CHECK(info.cardinality == 5 && info.num_warnings == 1 && strcmp(info.warnings[0], "made-up data") == 0);

  /* A caller built against a header whose struct had fewer members. */
  headrace_input_context old_context = {.size = offsetof(headrace_input_context, global_batch_size)};
  old_context.global_batch_size = 77;
  CHECK(headrace_get_input_context(dataset, &old_context) == HEADRACE_OK);
  CHECK(old_context.replicas_per_worker == 2 && old_context.global_batch_size == 77);
  headrace_input_context unset = {0};
  CHECK(headrace_get_input_context(dataset, &unset) == HEADRACE_INVALID_ARGUMENT);

  check_epoch(dataset, 0);
  check_epoch(dataset, 1);

  headrace_iterator* iterator = NULL;
  CHECK(headrace_iterator_create(dataset, 2, &iterator) == HEADRACE_INVALID_ARGUMENT && iterator == NULL);
  CHECK(strstr(headrace_last_error(), "replica 2 is not one of this worker's 2"));
  CHECK(headrace_iterator_create(dataset, 1, &iterator) == HEADRACE_OK);
  headrace_batch* batch = NULL;
  CHECK(headrace_next(iterator, 10000, &batch) == HEADRACE_OK);
  /* Freed in the wrong order: the batch keeps what it needs. */
  headrace_dataset_free(dataset);
  headrace_iterator_free(iterator);
  headrace_tensor label = {.size = sizeof(label)};
  CHECK(headrace_batch_tensor(batch, 0, &label) == HEADRACE_OK);
  CHECK(((int64_t*)label.data)[0] == (2 * 1000 * 2 + 1) * 4);
  headrace_batch_free(batch);
  headrace_batch_free(NULL);
  headrace_iterator_free(NULL);
  headrace_dataset_free(NULL);

  headrace_connect_options interrupted = {sizeof(interrupted), argv[2], 20000, at_once, NULL};
  CHECK(headrace_connect(&interrupted, &dataset) == HEADRACE_CANCELLED);
  close(to_loader[1]);
  int status = 0;
  CHECK(waitpid(loader, &status, 0) == loader && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  puts("passed");
  return 0;
}
