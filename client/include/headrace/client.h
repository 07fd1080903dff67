/* Headrace's client: how a trainer reads the batches that the loader of its pod puts into shared memory.
 *
 *   headrace_dataset* dataset = NULL;
 *   headrace_iterator* iterator = NULL;
 *   headrace_batch* batch = NULL;
 *   headrace_status status = headrace_connect(NULL, &dataset);
 *   if (status == HEADRACE_OK) status = headrace_iterator_create(dataset, 0, &iterator);
 *   while (status == HEADRACE_OK && (status = headrace_next(iterator, -1, &batch)) == HEADRACE_OK) {
 *     headrace_tensor x = {.size = sizeof(headrace_tensor)};
 *     status = headrace_batch_tensor(batch, 0, &x);
 *     if (status == HEADRACE_OK) train(x.data, x.shape);
 *     headrace_batch_free(batch);
 *   }
 *   if (status != HEADRACE_END) fprintf(stderr, "%s\n", headrace_last_error());
 *   headrace_iterator_free(iterator);
 *   headrace_dataset_free(dataset);
 *
 * Conventions
 *  1. Handles are opaque. Each has its _free, which accepts NULL. They may be freed in any order: what a batch or an
 *     iterator needs of its data set stays until the last of them is freed.
 *  2. Functions that can fail return a headrace_status and, through their last parameter, a result, which is written
 *     only on HEADRACE_OK. headrace_last_error() then says why, for the calling thread. The rest cannot fail.
 *  3. A struct's first member is its size, set by the caller to sizeof the struct: later versions add members at the
 * end.
 *  4. Strings are NUL-terminated UTF-8. Pointers inside a result belong to the handle it was asked of, and live as
 * long.
 *  5. Times are milliseconds; -1 is "as long as it takes". Sizes are bytes.
 *  6. Threads: a data set's functions may be called from any thread. An iterator, and all iterators over one replica,
 *     belong to one thread at a time. A batch may be read and freed by any thread, in any order.
 *     A child after fork() may free what it inherits, which gives nothing back, and connect anew: iterators of its
 *     parent's data sets are HEADRACE_UNAVAILABLE there.
 *  7. Tensors lie in host memory unless headrace_connect_options.takes_device says otherwise: see "GPU memory" below.
 *  8. Nothing waits for ever on a loader that is gone: if it hangs up, calls wait for it to come back for
 *     $HEADRACE_LOADER_TIMEOUT seconds (60 if unset) and then return HEADRACE_UNAVAILABLE. Its batches survive its
 *     restart, and yours: what was not freed is delivered again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct headrace_dataset headrace_dataset;
typedef struct headrace_iterator headrace_iterator;
typedef struct headrace_batch headrace_batch;

typedef enum headrace_status {
  HEADRACE_OK = 0,
  HEADRACE_END = 1,              /* the epoch is over; not an error */
  HEADRACE_TIMED_OUT = 2,        /* nothing within the time given; ask again; not an error */
  HEADRACE_INVALID_ARGUMENT = 3, /* the call or the input's spec is wrong; retrying cannot help */
  HEADRACE_NOT_FOUND = 4,        /* no loader here, or a file that the spec names is not there */
  HEADRACE_CONFLICT = 5,         /* another trainer reads this replica */
  HEADRACE_UNAVAILABLE = 6,      /* the loader, or what it reads from, is gone; retrying may help */
  HEADRACE_CORRUPT = 7,          /* bytes of the data set are not what their format demands */
  HEADRACE_EXHAUSTED = 8,        /* every slot of the ring is held by batches not yet freed, or memory is out */
  HEADRACE_CANCELLED = 9,        /* headrace_connect_options.interrupted said so */
  HEADRACE_INTERNAL = 10         /* a bug of Headrace */
} headrace_status;

/* "InvalidArgument", "End", ... */
const char* headrace_status_name(headrace_status status);
/* What went wrong in this thread's last call that failed: where, the value and the remedy. Valid until its next call
 * that fails. "" if none has. */
const char* headrace_last_error(void);
/* Sets it, for callbacks of this header that return an error. */
void headrace_set_error(const char* message);
/* The library's version, "0.1.0". */
const char* headrace_version(void);

/* ---- Connecting ---- */

typedef struct headrace_connect_options {
  size_t size;
  const char* directory; /* the run directory; NULL: $HEADRACE_DIR, else /run/headrace */
  int64_t timeout_ms;    /* how long to wait for the loader to start; -1: $HEADRACE_LOADER_TIMEOUT */
  /* May be NULL. Asked about every 50 ms while connecting or attaching; not 0 gives up, with HEADRACE_CANCELLED. */
  int (*interrupted)(void* context);
  void* interrupted_context;
  /* 1: tensors may lie in GPU memory, where spec.delivery.memory and the process have it so: see "GPU memory" below.
   * 0: host memory, whatever the input says. */
  int32_t takes_device;
  /* The GPUs of this worker's replicas, as CUDA counts them in this process: replica r has gpus[r % num_gpus]. None:
   * replica r has GPU r, modulo the number of GPUs that the process sees. */
  int32_t num_gpus;
  const int32_t* gpus;
  int32_t device_batches; /* of a replica in GPU memory at a time, those you hold among them; 0: 4 */
} headrace_connect_options;

/* Asks the loader of this pod what it serves. Attaches to no replica yet, so that several processes of a pod may
 * connect, each for its own replica. `options` may be NULL: all defaults. An error of the loader itself (a path that
 * matches no file, ...) comes back with the loader's code and message. */
headrace_status headrace_connect(const headrace_connect_options* options, headrace_dataset** dataset);
void headrace_dataset_free(headrace_dataset* dataset);

/* ---- What the data set is ---- */

/* A type as DLPack has it; `name` as numpy and TensorFlow have it: "float32". Code and bits of "string" are those of
 * its bytes: kDLUInt, 8. */
typedef struct headrace_dtype {
  const char* name;
  uint8_t code; /* kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6 */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} headrace_dtype;

typedef struct headrace_tensor_spec {
  size_t size;
  const char* name;
  headrace_dtype dtype;
  int32_t ndim;
  const int64_t* shape; /* of one replica's batch; -1 where it can vary */
  int32_t ragged;       /* 1: rows differ in length, along shape[1]; see headrace_tensor.row_splits */
} headrace_tensor_spec;

/* The number of components of an element, and component `index`. */
int32_t headrace_num_components(const headrace_dataset* dataset);
headrace_status headrace_component(const headrace_dataset* dataset, int32_t index, headrace_tensor_spec* spec);
/* The whole element spec as TensorFlow prints it: "TensorSpec(shape=(None, 8), dtype=tf.float32, name=None)". */
const char* headrace_element_spec_string(const headrace_dataset* dataset);

/* tf.distribute.InputContext, and what goes with it. */
typedef struct headrace_input_context {
  size_t size;
  int64_t num_input_pipelines; /* workers of the run */
  int64_t input_pipeline_id;   /* the index of this one */
  int64_t num_replicas_in_sync;
  int64_t replicas_per_worker;
  int64_t global_batch_size; /* 0: the data is not batched */
} headrace_input_context;

headrace_status headrace_get_input_context(const headrace_dataset* dataset, headrace_input_context* context);
/* global_batch_size / num_replicas_in_sync; HEADRACE_INVALID_ARGUMENT if that is not whole. */
headrace_status headrace_per_replica_batch_size(const headrace_dataset* dataset, int64_t global_batch_size,
                                                int64_t* batch_size);

/* The same for a context. HEADRACE_INVALID_ARGUMENT if global_batch_size / num_replicas_in_sync is not whole. */
headrace_status headrace_context_per_replica_batch_size(const headrace_input_context* context,
                                                        int64_t global_batch_size, int64_t* batch_size);

typedef struct headrace_info {
  size_t size;
  const char* input;            /* "namespace/name" */
  const char* plan_hash;        /* names the plan that the loader runs */
  const char* effective_policy; /* "File", "Data", "Off" or "Hint" */
  int64_t cardinality;          /* global batches in an epoch; -1: endless, -2: unknown */
  int32_t num_warnings;
  const char* const* warnings; /* of the plan, such as that Auto became Data */
  const char* memory;          /* where tensors lie: "Host", "Pinned" or "Device" */
  const char* memory_reason;   /* why there */
} headrace_info;

headrace_status headrace_get_info(const headrace_dataset* dataset, headrace_info* info);

/* ---- Iterating ---- */

#define HEADRACE_WHOLE_WORKER (-1)

/* Starts an epoch: the first iterator over a replica reads epoch 0, each further one the next epoch, counted over the
 * trainer's restarts; several replicas together, the first that none of them has started. A new iterator ends the older
 * ones over its replicas. `replica` is from 0 to replicas_per_worker - 1, or HEADRACE_WHOLE_WORKER: all of them. The
 * first iterator over a replica attaches to it, until the data set is freed: HEADRACE_CONFLICT if somebody else has. */
headrace_status headrace_iterator_create(headrace_dataset* dataset, int32_t replica, headrace_iterator** iterator);
void headrace_iterator_free(headrace_iterator* iterator);

/* A place in the order of the data: all that a checkpoint needs. The same on every worker at the same step. */
typedef struct headrace_position {
  size_t size;
  int64_t epoch;
  int64_t step;  /* within the epoch: the next one to be read */
  uint64_t seed; /* of shuffles without a seed of their own, which the run gave them; 0: that of the current run */
} headrace_position;

/* Where the next headrace_next() reads. */
headrace_status headrace_iterator_position(const headrace_iterator* iterator, headrace_position* position);
/* As headrace_iterator_create, but starts at `position`: exactly the batches that an iterator there would have read,
 * also in another run of the same plan and number of replicas. Later iterators go on from there. */
headrace_status headrace_iterator_create_at(headrace_dataset* dataset, int32_t replica,
                                            const headrace_position* position, headrace_iterator** iterator);
/* The number of batches of a step: 1, or replicas_per_worker. */
int32_t headrace_iterator_width(const headrace_iterator* iterator);

/* The next step: one batch for each replica, in the replicas' order, into the array `batches` of
 * headrace_iterator_width() entries. Each must be freed. HEADRACE_END at the end of the epoch and ever after;
 * HEADRACE_TIMED_OUT, with nothing lost, if the step is not there within timeout_ms (0: do not wait);
 * HEADRACE_EXHAUSTED if all of a ring's slots are held by batches that nobody freed within a second.
 * As TensorFlow's next(), ends before a last step of one worker that not all replicas have data for, where all shapes
 * are static. */
headrace_status headrace_next(headrace_iterator* iterator, int64_t timeout_ms, headrace_batch** batches);
/* As TensorFlow's get_next_as_optional(): at the end HEADRACE_OK and *has_value 0, not HEADRACE_END; and the step that
 * headrace_next ends before is delivered, with batches of zero rows for replicas without data. */
headrace_status headrace_next_as_optional(headrace_iterator* iterator, int64_t timeout_ms, headrace_batch** batches,
                                          int32_t* has_value);

/* ---- Batches ---- */

typedef struct headrace_tensor {
  size_t size;
  const char* name;
  headrace_dtype dtype;
  /* Aligned to 64 bytes; yours to read and write until the batch is freed. In the ring itself, or where device_type is
   * 2 in the memory of GPU device_id, and not to be touched by the CPU. */
  void* data;
  int64_t nbytes;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides; /* in values, as DLPack has them; row-major */
  /* NULL where all rows have one length. Else values lie row after row without gaps, row i from row_splits[i] to before
   * row_splits[i + 1]: the first is 0, none is less than the one before, the last is num_values. They count
   *   where dtype.name is "string": bytes. Each string is a row; shape is that of the strings, row-major. A string that
   *     stands alone (ndim 0) is row 0.
   *   else, of a ragged tensor: values of the shape [shape[2], ...]. There are shape[0] rows, and shape[1] is -1. All
   *     values together are a tensor of the shape [num_values, shape[2], ...], of which `strides + 1` are the strides.
   * headrace_batch_tensor has looked at them: HEADRACE_CORRUPT if they are not so. */
  const int64_t* row_splits;
  int64_t num_values;  /* 0 where row_splits is NULL */
  int32_t device_type; /* as DLPack has it: kDLCPU 1, kDLCUDA 2 */
  int32_t device_id;   /* the GPU, as CUDA counts them in this process */
} headrace_tensor;

/* Gives the batch's slot back to the loader. The memory of its tensors may be overwritten at once. */
void headrace_batch_free(headrace_batch* batch);
int32_t headrace_batch_replica(const headrace_batch* batch);
int64_t headrace_batch_rows(const headrace_batch* batch); /* records; 0 where the replica has no data */
int64_t headrace_batch_epoch(const headrace_batch* batch);
int64_t headrace_batch_step(const headrace_batch* batch); /* within the epoch, from 0 */
int32_t headrace_batch_num_tensors(const headrace_batch* batch);
/* Component `index` of the element spec. */
headrace_status headrace_batch_tensor(const headrace_batch* batch, int32_t index, headrace_tensor* tensor);

/* ---- GPU memory ----
 *
 * With headrace_connect_options.takes_device, where spec.delivery.memory is Pinned, or Auto and this process finds a
 * GPU: batches are brought to the replica's GPU by a thread of the library, on a stream of its own, ahead of
 * headrace_next. The slots go back to the loader once they are copied. Components whose rows differ in length stay in
 * the ring (device_type 1), and keep the slot until the batch is freed.
 *
 * Where it is Device, or Auto with a resource claim: the loader brings batches into GPU memory that this process maps,
 * and they are there when headrace_next returns. All below holds as it stands; the slot goes back with
 * headrace_batch_free.
 *
 *   headrace_next(iterator, -1, &batch);             does not wait for the copy
 *   headrace_batch_use_on_stream(batch, stream);     before what reads the tensors is enqueued
 *   train<<<..., stream>>>(tensor.data);
 *   headrace_batch_free(batch);                      may be before the kernel has run
 *
 * The library uses the GPU's primary context, as the CUDA runtime does, and opens the driver (libcuda.so.1) itself. */

/* Orders `stream` behind the batch's arrival on its GPU, and what comes to the batch's memory after headrace_batch_free
 * behind all that `stream` was given to do until then. No host waits. `stream` is a CUstream or cudaStream_t of the
 * batch's GPU, or (void*)1 or (void*)2 for the legacy and the per-thread default stream; it must live until the batch
 * is freed. Once for each stream that uses the batch, in any thread. Without effect on a batch in host memory. */
headrace_status headrace_batch_use_on_stream(const headrace_batch* batch, void* stream);
/* Copies tensor `index`, its `nbytes` bytes, to host memory, and waits for it; after what the stream that was named
 * last has been given to do. */
headrace_status headrace_batch_copy_tensor(const headrace_batch* batch, int32_t index, void* to);

/* ---- Values from a function ----
 *
 * tf.distribute's experimental_distribute_values_from_function: one value for each replica of this worker, whatever the
 * data set holds. */

/* tf.distribute.ValueContext. */
typedef struct headrace_value_context {
  size_t size;
  int64_t num_replicas_in_sync;
  int64_t replica_id_in_sync_group; /* over all workers */
} headrace_value_context;

/* Calls value_fn once for each replica of this worker, in order, in this thread; `local_replica` counts from 0. Ends
 * with the first error that it returns. */
headrace_status headrace_distribute_values(const headrace_dataset* dataset,
                                           headrace_status (*value_fn)(void* user, int32_t local_replica,
                                                                       const headrace_value_context* context),
                                           void* user);

/* ---- Dataset functions: spec.source.function ----
 *
 * tf.distribute's distribute_datasets_from_function: a program of the user's that yields batches, one for each replica
 * in turn. Nothing is sharded, batched, shuffled or prefetched behind its back. It runs beside the loader:
 *
 *   int main(void) {
 *     headrace_dataset_function function = {.size = sizeof function, .start = start, .next = next, .end = end};
 *     return headrace_serve(NULL, &function) == HEADRACE_OK ? 0 : 1;
 *   } */

/* What `next` yields. Its tensors must stay as they are until the next call for the same iterator. */
typedef struct headrace_element {
  size_t size;
  int32_t num_tensors;
  const headrace_tensor* tensors; /* size, name, dtype.name, data, ndim and shape count; row-major, without gaps */
} headrace_element;

/* What `start` says of the epoch that it starts. All but `iterator` may be left as it is. */
typedef struct headrace_epoch {
  size_t size;
  void* iterator;         /* handed to next and end */
  int32_t num_components; /* 0: as the first element has them, any number of rows */
  const headrace_tensor_spec*
      element_spec;    /* size, name, dtype.name, ndim and shape count; -1 where a dimension can vary */
  int64_t cardinality; /* elements; -1: endless, -2: unknown */
} headrace_epoch;

/* Callbacks, all called by the thread that called headrace_serve. One that fails says why by headrace_set_error, and
 * returns an error, which every replica of the worker gets. */
typedef struct headrace_dataset_function {
  size_t size;
  void* user;
  headrace_status (*start)(void* user, const headrace_input_context* context, int64_t number, headrace_epoch* epoch);
  headrace_status (*next)(void* user, void* iterator, headrace_element* element); /* HEADRACE_END: no more */
  void (*end)(void* user, void* iterator);                                        /* may be NULL */
} headrace_dataset_function;

/* Waits for the loader of this pod as headrace_connect does, and serves `function` to it until the loader ends
 * (HEADRACE_OK). The errors of callbacks are told to the loader and not returned. */
headrace_status headrace_serve(const headrace_connect_options* options, const headrace_dataset_function* function);

#ifdef __cplusplus
}
#endif
