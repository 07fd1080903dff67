#include "cli/worker_stream.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/include/headrace/client.h"

namespace headrace::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kAskEvery{50};  // for whether to give up

// The status of the client call that just failed in this thread.
Status LastError(headrace_status status) {
  const std::string message = headrace_last_error();
  switch (status) {
    case HEADRACE_INVALID_ARGUMENT: return InvalidArgument(message);
    case HEADRACE_NOT_FOUND: return NotFound(message);
    case HEADRACE_CONFLICT: return Conflict(message);
    case HEADRACE_CORRUPT: return Corrupt(message);
    case HEADRACE_EXHAUSTED: return Exhausted(message);
    case HEADRACE_CANCELLED: return Cancelled(message);
    case HEADRACE_UNAVAILABLE:
    case HEADRACE_TIMED_OUT: return Unavailable(message);
    default: return Internal(message);
  }
}

int AskGiveUp(void* context) { return (*static_cast<std::function<bool()>*>(context))() ? 1 : 0; }

json ValueAsJson(const TensorView& tensor, int64_t i) {
  if (tensor.dtype == DType::kString) {  // JSON has no other text than UTF-8
    const json text = std::string(StringAt(tensor, i));
    return json::parse(text.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  if (IsFloating(tensor.dtype)) return ValueAsDouble(tensor, i);
  return ValueAsInteger(tensor, i);
}

// The part of `tensor` below its first `depth` dimensions, at index `at` of those dimensions taken together.
json Nested(const TensorView& tensor, size_t depth, int64_t at) {
  if (depth == tensor.shape.size()) return ValueAsJson(tensor, at);
  json list = json::array();
  const bool row = depth == 1 && tensor.ragged();
  const int64_t begin = row ? tensor.row_splits[at] : at * tensor.shape[depth];
  const int64_t end = row ? tensor.row_splits[at + 1] : begin + tensor.shape[depth];
  for (int64_t i = begin; i < end; ++i) list.push_back(Nested(tensor, depth + 1, i));
  return list;
}

Result<TensorView> TensorOf(const headrace_batch* batch, int32_t index) {
  headrace_tensor tensor = {};
  tensor.size = sizeof tensor;
  if (const headrace_status status = headrace_batch_tensor(batch, index, &tensor); status != HEADRACE_OK) {
    return LastError(status);
  }
  const bool is_string = tensor.dtype.name == DTypeName(DType::kString);
  const std::optional<DType> dtype = is_string ? DType::kString : ParseDType(tensor.dtype.name);
  if (!dtype) return Internal(std::string("unknown dtype ") + tensor.dtype.name);
  return TensorView{tensor.name, *dtype, {tensor.shape, tensor.shape + tensor.ndim}, tensor.data, tensor.row_splits};
}

}  // namespace

struct WorkerStream::State {
  ~State() {
    Release();
    headrace_iterator_free(iterator);
    headrace_dataset_free(dataset);
  }

  void Release() {
    for (headrace_batch* batch : held) headrace_batch_free(batch);
    held.clear();
  }
  headrace_status Take(Iteration iteration, Milliseconds timeout, headrace_batch** batches);

  std::function<bool()> give_up;
  int32_t replica = HEADRACE_WHOLE_WORKER;
  headrace_dataset* dataset = nullptr;
  headrace_iterator* iterator = nullptr;
  std::vector<headrace_batch*> held;  // of the step that the caller looks at
};

WorkerStream::WorkerStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerStream::~WorkerStream() = default;

Result<std::unique_ptr<WorkerStream>> WorkerStream::Connect(const std::string& run_directory, int timeout_ms,
                                                            std::function<bool()> give_up, int replica) {
  auto state = std::make_unique<State>();
  state->give_up = std::move(give_up);
  state->replica = replica;
  headrace_connect_options options = {};
  options.size = sizeof options;
  options.directory = run_directory.c_str();
  options.timeout_ms = timeout_ms;
  options.interrupted = AskGiveUp;
  options.interrupted_context = &state->give_up;
  const headrace_status status = headrace_connect(&options, &state->dataset);
  if (status != HEADRACE_OK) return LastError(status);
  return std::unique_ptr<WorkerStream>(new WorkerStream(std::move(state)));
}

std::string WorkerStream::element_spec() const { return headrace_element_spec_string(state_->dataset); }

std::string WorkerStream::effective_policy() const {
  headrace_info info = {};
  info.size = sizeof info;
  return headrace_get_info(state_->dataset, &info) == HEADRACE_OK ? info.effective_policy : "";
}

std::vector<std::string> WorkerStream::warnings() const {
  headrace_info info = {};
  info.size = sizeof info;
  if (headrace_get_info(state_->dataset, &info) != HEADRACE_OK) return {};
  return {info.warnings, info.warnings + info.num_warnings};
}

json WorkerStream::InputContext(int64_t global_batch_size) const {
  headrace_input_context context = {};
  context.size = sizeof context;
  if (headrace_get_input_context(state_->dataset, &context) != HEADRACE_OK) return json();
  int64_t batch_size = 0;
  const headrace_status whole = headrace_context_per_replica_batch_size(&context, global_batch_size, &batch_size);
  return {{"num_input_pipelines", context.num_input_pipelines},
          {"input_pipeline_id", context.input_pipeline_id},
          {"num_replicas_in_sync", context.num_replicas_in_sync},
          {"per_replica_batch_size", whole == HEADRACE_OK ? json(batch_size) : json()}};
}

std::vector<json> WorkerStream::Values(bool replica_id) const {
  struct Collected {
    bool replica_id;
    std::vector<json> values;
  } collected{replica_id, {}};
  const auto value_fn = [](void* user, int32_t, const headrace_value_context* context) {
    auto& to = *static_cast<Collected*>(user);
    to.values.push_back(to.replica_id ? json(context->replica_id_in_sync_group) : json(1.0));
    return HEADRACE_OK;
  };
  headrace_distribute_values(state_->dataset, value_fn, &collected);
  return collected.values;
}

Status WorkerStream::StartEpoch() {
  state_->Release();
  headrace_iterator_free(std::exchange(state_->iterator, nullptr));
  const headrace_status status = headrace_iterator_create(state_->dataset, state_->replica, &state_->iterator);
  return status == HEADRACE_OK ? Status() : LastError(status);
}

headrace_status WorkerStream::State::Take(Iteration iteration, Milliseconds timeout, headrace_batch** batches) {
  if (iteration == Iteration::kNext) return headrace_next(iterator, timeout.count(), batches);
  int32_t has_value = 1;
  const headrace_status status = headrace_next_as_optional(iterator, timeout.count(), batches, &has_value);
  return status == HEADRACE_OK && has_value == 0 ? HEADRACE_END : status;
}

Result<WorkerStep> WorkerStream::Next(Iteration iteration, int timeout_ms) {
  state_->Release();
  std::vector<headrace_batch*> batches(static_cast<size_t>(headrace_iterator_width(state_->iterator)));
  const Clock::time_point start = Clock::now();
  headrace_status status = HEADRACE_TIMED_OUT;
  while (true) {
    Milliseconds slice = kAskEvery;
    if (timeout_ms >= 0) {
      const auto waited = std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
      slice = std::clamp(Milliseconds(timeout_ms) - waited, Milliseconds(0), slice);
    }
    status = state_->Take(iteration, slice, batches.data());
    if (status != HEADRACE_TIMED_OUT) break;
    if (state_->give_up()) return Cancelled("interrupted while waiting for a batch");
    if (slice == Milliseconds(0)) {
      return Unavailable("no batch came within " + std::to_string(timeout_ms / 1000) + " seconds");
    }
  }
  if (status == HEADRACE_END) return WorkerStep();
  if (status != HEADRACE_OK) return LastError(status);
  state_->held = std::move(batches);
  WorkerStep step;
  for (const headrace_batch* batch : state_->held) {
    ReplicaBatch& replica = step.emplace_back();
    replica.rows = headrace_batch_rows(batch);
    for (int32_t i = 0; i < headrace_batch_num_tensors(batch); ++i) {
      ASSIGN_OR_RETURN(TensorView tensor, TensorOf(batch, i));
      replica.tensors.push_back(std::move(tensor));
    }
  }
  return step;
}

json RecordsAsJson(const ReplicaBatch& batch) {
  if (batch.tensors.size() == 1) return Nested(batch.tensors[0], 0, 0);
  json records = json::array();
  for (int64_t row = 0; row < batch.rows; ++row) {
    json record = json::array();
    for (const TensorView& tensor : batch.tensors) record.push_back(Nested(tensor, 1, row));
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace headrace::cli
