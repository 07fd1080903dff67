// The C ABI over connections and step iterators. Nothing throws past it.
#include "headrace/client.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "client/abi.h"
#include "client/batch.h"
#include "client/connection.h"
#include "client/destination.h"
#include "client/step_iterator.h"
#include "client/tensor.h"

using headrace::Result;
using headrace::Status;
using headrace::client::Connection;
using headrace::client::ConnectPolicy;
using headrace::client::Destination;
using headrace::client::StepIterator;

struct headrace_dataset {
  // Constant after headrace_connect.
  ConnectPolicy policy;
  headrace::ring::HandshakeReply reply;
  std::string element_spec;
  std::vector<const char*> warnings;
  std::vector<Destination> destinations;  // by replica

  std::mutex mutex;
  std::vector<std::shared_ptr<Connection>> connections;  // guarded by mutex; by replica, null where not attached
};

struct headrace_iterator {
  headrace_iterator(std::vector<std::shared_ptr<Connection>> connections, const headrace::ring::Position* start)
      : steps(std::move(connections), start) {}
  StepIterator steps;
};

namespace {

constexpr int32_t kCpu = 1;  // DLPack's kDLCPU and kDLCUDA
constexpr int32_t kCuda = 2;

using headrace::client::Fill;
using headrace::client::Guard;
using headrace::client::Report;

Result<std::unique_ptr<headrace_dataset>> Connect(const headrace_connect_options* options) {
  auto dataset = std::make_unique<headrace_dataset>();
  ASSIGN_OR_RETURN(dataset->policy, headrace::client::MakePolicy(options));
  ASSIGN_OR_RETURN(dataset->reply, headrace::client::AskLoader(dataset->policy));
  dataset->connections.resize(static_cast<size_t>(dataset->reply.topology.replicas_per_worker));
  dataset->element_spec = headrace::ToString(dataset->reply.element_spec);
  for (const std::string& warning : dataset->reply.warnings) dataset->warnings.push_back(warning.c_str());
  ASSIGN_OR_RETURN(dataset->destinations, headrace::client::ChooseDestinations(dataset->policy, dataset->reply));
  return dataset;
}

// The connections an iterator over `replica` needs, made where they are not there yet.
Result<std::vector<std::shared_ptr<Connection>>> Attach(headrace_dataset& dataset, int32_t replica) {
  const auto replicas = static_cast<int32_t>(dataset.reply.topology.replicas_per_worker);
  if (replica != HEADRACE_WHOLE_WORKER && (replica < 0 || replica >= replicas)) {
    return headrace::InvalidArgument("replica " + std::to_string(replica) + " is not one of this worker's " +
                                     std::to_string(replicas) +
                                     ": set spec.distribution.replicasPerWorker to the number of trainer processes");
  }
  const bool whole = replica == HEADRACE_WHOLE_WORKER;
  std::vector<std::shared_ptr<Connection>> attached;
  std::lock_guard lock(dataset.mutex);
  for (int32_t r = whole ? 0 : replica; r < (whole ? replicas : replica + 1); ++r) {
    std::shared_ptr<Connection>& connection = dataset.connections[static_cast<size_t>(r)];
    const Destination& to = dataset.destinations[static_cast<size_t>(r)];
    if (connection == nullptr) {
      RETURN_IF_ERROR(to.error);
      ASSIGN_OR_RETURN(connection, Connection::Open(dataset.policy, r, to));
    }
    if (connection->reply().plan_hash != dataset.reply.plan_hash) {
      return headrace::Unavailable("the loader now runs plan " + connection->reply().plan_hash + ", was " +
                                   dataset.reply.plan_hash + ": connect again");
    }
    RETURN_IF_ERROR(connection->CheckProcess());
    attached.push_back(connection);
  }
  return attached;
}

[[gnu::hot]] headrace_status NextStep(headrace_iterator* iterator, StepIterator::PartialStep partial,
                                      int64_t timeout_ms, headrace_batch** batches) {
  const auto outcome = iterator->steps.Next(partial, timeout_ms, batches);
  if (!outcome.ok()) return Report(outcome.status());
  switch (*outcome) {
    case StepIterator::Outcome::kStep: return HEADRACE_OK;
    case StepIterator::Outcome::kEnd: return HEADRACE_END;
    case StepIterator::Outcome::kTimeout: return HEADRACE_TIMED_OUT;
  }
  return HEADRACE_INTERNAL;
}

}  // namespace

extern "C" {

const char* headrace_status_name(headrace_status status) {
  switch (status) {
    case HEADRACE_OK: return "OK";
    case HEADRACE_END: return "End";
    case HEADRACE_TIMED_OUT: return "TimedOut";
    case HEADRACE_INVALID_ARGUMENT: return "InvalidArgument";
    case HEADRACE_NOT_FOUND: return "NotFound";
    case HEADRACE_CONFLICT: return "Conflict";
    case HEADRACE_UNAVAILABLE: return "Unavailable";
    case HEADRACE_CORRUPT: return "Corrupt";
    case HEADRACE_EXHAUSTED: return "Exhausted";
    case HEADRACE_CANCELLED: return "Cancelled";
    case HEADRACE_INTERNAL: return "Internal";
  }
  return "Internal";
}

const char* headrace_version(void) { return HEADRACE_VERSION; }

headrace_status headrace_connect(const headrace_connect_options* options, headrace_dataset** dataset) {
  return Guard([&] {
    auto connected = Connect(options);
    if (!connected.ok()) return Report(connected.status());
    *dataset = connected->release();
    return HEADRACE_OK;
  });
}

void headrace_dataset_free(headrace_dataset* dataset) { delete dataset; }

int32_t headrace_num_components(const headrace_dataset* dataset) {
  return static_cast<int32_t>(dataset->reply.element_spec.size());
}

headrace_status headrace_component(const headrace_dataset* dataset, int32_t index, headrace_tensor_spec* spec) {
  return Guard([&] {
    const auto& element_spec = dataset->reply.element_spec;
    if (index < 0 || static_cast<size_t>(index) >= element_spec.size()) {
      return Report(headrace::InvalidArgument("component " + std::to_string(index) + " of " +
                                              std::to_string(element_spec.size())));
    }
    const headrace::TensorSpec& component = element_spec[static_cast<size_t>(index)];
    return Fill(spec, headrace_tensor_spec{0, component.name.c_str(), headrace::client::DLPackType(component.dtype),
                                           static_cast<int32_t>(component.shape.size()), component.shape.data(),
                                           component.ragged ? 1 : 0});
  });
}

const char* headrace_element_spec_string(const headrace_dataset* dataset) { return dataset->element_spec.c_str(); }

headrace_status headrace_get_input_context(const headrace_dataset* dataset, headrace_input_context* context) {
  return Guard([&] {
    const headrace::Topology& topology = dataset->reply.topology;
    return Fill(context,
                headrace_input_context{0, topology.num_workers, topology.worker_index, topology.replicas_in_sync(),
                                       topology.replicas_per_worker, dataset->reply.global_batch_size});
  });
}

headrace_status headrace_per_replica_batch_size(const headrace_dataset* dataset, int64_t global_batch_size,
                                                int64_t* batch_size) {
  headrace_input_context context{};
  context.num_replicas_in_sync = dataset->reply.topology.replicas_in_sync();
  return headrace_context_per_replica_batch_size(&context, global_batch_size, batch_size);
}

headrace_status headrace_context_per_replica_batch_size(const headrace_input_context* context,
                                                        int64_t global_batch_size, int64_t* batch_size) {
  return Guard([&] {
    const int64_t replicas = context->num_replicas_in_sync;
    if (global_batch_size < 0 || global_batch_size % replicas != 0) {
      return Report(headrace::InvalidArgument("the global batch size " + std::to_string(global_batch_size) +
                                              " is not divisible by the number of replicas in sync, " +
                                              std::to_string(replicas)));
    }
    *batch_size = global_batch_size / replicas;
    return HEADRACE_OK;
  });
}

headrace_status headrace_distribute_values(const headrace_dataset* dataset,
                                           headrace_status (*value_fn)(void* user, int32_t local_replica,
                                                                       const headrace_value_context* context),
                                           void* user) {
  const headrace::Topology& topology = dataset->reply.topology;
  for (int32_t replica = 0; replica < topology.replicas_per_worker; ++replica) {
    const headrace_value_context context{sizeof(headrace_value_context), topology.replicas_in_sync(),
                                         topology.worker_index * topology.replicas_per_worker + replica};
    const headrace_status status = value_fn(user, replica, &context);
    if (status != HEADRACE_OK) return status;
  }
  return HEADRACE_OK;
}

headrace_status headrace_get_info(const headrace_dataset* dataset, headrace_info* info) {
  return Guard([&] {
    const headrace::ring::HandshakeReply& reply = dataset->reply;
    // Where this process sees the GPUs of some replicas only, it is about one of those.
    const auto best = std::max_element(dataset->destinations.begin(), dataset->destinations.end(),
                                       [](const auto& a, const auto& b) { return a.memory < b.memory; });
    return Fill(
        info, headrace_info{0, reply.input.c_str(), reply.plan_hash.c_str(), reply.effective_policy.c_str(),
                            reply.cardinality, static_cast<int32_t>(dataset->warnings.size()), dataset->warnings.data(),
                            headrace::MemoryKindName(best->memory).data(), best->reason.c_str()});
  });
}

headrace_status headrace_iterator_create(headrace_dataset* dataset, int32_t replica, headrace_iterator** iterator) {
  return Guard([&] {
    auto connections = Attach(*dataset, replica);
    if (!connections.ok()) return Report(connections.status());
    *iterator = new headrace_iterator(std::move(*connections), nullptr);
    return HEADRACE_OK;
  });
}

headrace_status headrace_iterator_create_at(headrace_dataset* dataset, int32_t replica,
                                            const headrace_position* position, headrace_iterator** iterator) {
  return Guard([&] {
    if (position->epoch < 0 || position->step < 0) {
      return Report(headrace::InvalidArgument("epoch " + std::to_string(position->epoch) + ", step " +
                                              std::to_string(position->step) + " is no position: both count from 0"));
    }
    auto connections = Attach(*dataset, replica);
    if (!connections.ok()) return Report(connections.status());
    const headrace::ring::Position start{static_cast<uint64_t>(position->epoch), static_cast<uint64_t>(position->step),
                                         position->seed};
    *iterator = new headrace_iterator(std::move(*connections), &start);
    return HEADRACE_OK;
  });
}

headrace_status headrace_iterator_position(const headrace_iterator* iterator, headrace_position* position) {
  return Guard([&] {
    const headrace::ring::Position& next = iterator->steps.position();
    return Fill(position,
                headrace_position{0, static_cast<int64_t>(next.epoch), static_cast<int64_t>(next.step), next.seed});
  });
}

void headrace_iterator_free(headrace_iterator* iterator) { delete iterator; }

int32_t headrace_iterator_width(const headrace_iterator* iterator) {
  return static_cast<int32_t>(iterator->steps.width());
}

headrace_status headrace_next(headrace_iterator* iterator, int64_t timeout_ms, headrace_batch** batches) {
  return Guard([&] { return NextStep(iterator, StepIterator::PartialStep::kEnd, timeout_ms, batches); });
}

headrace_status headrace_next_as_optional(headrace_iterator* iterator, int64_t timeout_ms, headrace_batch** batches,
                                          int32_t* has_value) {
  return Guard([&] {
    headrace_status status = NextStep(iterator, StepIterator::PartialStep::kDeliver, timeout_ms, batches);
    if (status != HEADRACE_OK && status != HEADRACE_END) return status;
    *has_value = status == HEADRACE_OK ? 1 : 0;
    return HEADRACE_OK;
  });
}

void headrace_batch_free(headrace_batch* batch) {
  if (batch != nullptr) headrace_batch::Free(batch);
}

int32_t headrace_batch_replica(const headrace_batch* batch) { return batch->connection->replica(); }
int64_t headrace_batch_rows(const headrace_batch* batch) { return static_cast<int64_t>(batch->view().rows); }
int64_t headrace_batch_epoch(const headrace_batch* batch) { return static_cast<int64_t>(batch->view().epoch); }
int64_t headrace_batch_step(const headrace_batch* batch) { return static_cast<int64_t>(batch->view().step); }
int32_t headrace_batch_num_tensors(const headrace_batch* batch) { return static_cast<int32_t>(batch->num_tensors()); }

headrace_status headrace_batch_tensor(const headrace_batch* batch, int32_t index, headrace_tensor* tensor) {
  return Guard([&] {
    if (index < 0 || static_cast<size_t>(index) >= batch->num_tensors()) {
      return Report(
          headrace::InvalidArgument("tensor " + std::to_string(index) + " of " + std::to_string(batch->num_tensors())));
    }
    const auto i = static_cast<size_t>(index);
    if (const Status status = batch->CheckRowSplitsOnce(i); !status.ok()) return Report(status);
    const headrace::TensorSpec& spec = batch->connection->components()[i].spec;
    const headrace::ring::ComponentExtent& extent = batch->extent(i);
    const uint8_t* const slot = batch->view().data;
    const bool on_device = batch->on_device(i);
    // What is on a GPU has an address there, which is none of this process.
    void* const data = on_device ? reinterpret_cast<void*>(batch->arrival.device_memory() + extent.offset)
                                 : batch->view().data + extent.offset;
    return Fill(tensor,
                headrace_tensor{0, spec.name.c_str(), headrace::client::DLPackType(spec.dtype), data,
                                static_cast<int64_t>(extent.bytes), static_cast<int32_t>(extent.ndim), extent.dims,
                                batch->strides()[i].data(), headrace::client::RowSplits(extent, slot),
                                headrace::client::NumSplitValues(extent, slot), on_device ? kCuda : kCpu,
                                on_device ? batch->connection->gpu() : 0});
  });
}

headrace_status headrace_batch_use_on_stream(const headrace_batch* batch, void* stream) {
  return Guard([&] {
    if (batch->arrival.device_memory() == 0) return HEADRACE_OK;
    if (stream == nullptr) {
      return Report(headrace::InvalidArgument(
          "the stream is NULL, which programs take for different streams: name one, or (void*)1 for the legacy default "
          "stream, (void*)2 for the per-thread one"));
    }
    auto* const user = static_cast<headrace::gpu::Stream>(stream);
    const std::lock_guard lock(batch->mutex);
    const Status ordered = batch->connection->UseOn(batch->arrival, user);
    if (!ordered.ok()) return Report(ordered);
    std::erase(batch->users, user);
    batch->users.push_back(user);
    return HEADRACE_OK;
  });
}

headrace_status headrace_batch_copy_tensor(const headrace_batch* batch, int32_t index, void* to) {
  return Guard([&] {
    headrace_tensor tensor{};
    tensor.size = sizeof(tensor);
    const headrace_status found = headrace_batch_tensor(batch, index, &tensor);
    if (found != HEADRACE_OK) return found;
    if (tensor.device_type == kCpu) {
      std::memcpy(to, tensor.data, static_cast<size_t>(tensor.nbytes));
      return HEADRACE_OK;
    }
    const headrace::ring::ComponentExtent& extent = batch->extent(static_cast<size_t>(index));
    headrace::gpu::Stream user = nullptr;
    {
      const std::lock_guard lock(batch->mutex);
      if (!batch->users.empty()) user = batch->users.back();
    }
    return Report(
        batch->connection->CopyToHost(batch->arrival, {extent.offset, extent.offset + extent.bytes}, user, to));
  });
}

}  // extern "C"
