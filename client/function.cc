// headrace_serve: the user's dataset function, served to the loader. See common/ring/function_wire.h.
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "client/abi.h"
#include "client/unix_connect.h"
#include "common/ring/function_wire.h"
#include "common/ring/handshake.h"
#include "common/ring/layout.h"
#include "common/spec/names.h"

namespace headrace::client {
namespace {

constexpr int kSliceMs = 50;  // between two looks at options.interrupted
constexpr int kRetryMs = 20;

// One ring, mapped for writing.
class LentRing {
 public:
  static Result<std::unique_ptr<LentRing>> Map(int fd) {
    struct stat file {};
    if (fd < 0 || fstat(fd, &file) != 0) return Internal("the loader lent no ring");
    const auto bytes = static_cast<size_t>(file.st_size);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return ErrnoStatus(errno, "mapping a ring of " + std::to_string(bytes) + " bytes");
    return std::unique_ptr<LentRing>(new LentRing(static_cast<uint8_t*>(memory), bytes));
  }
  ~LentRing() { munmap(base_, bytes_); }
  LentRing(const LentRing&) = delete;
  LentRing& operator=(const LentRing&) = delete;

  Status Write(uint64_t offset, const void* data, uint64_t bytes) {
    if (offset > bytes_ || bytes > bytes_ - offset) {
      return Internal("the loader asks for " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                      " of a ring of " + std::to_string(bytes_));
    }
    if (bytes > 0) std::memcpy(base_ + offset, data, bytes);
    return {};
  }

 private:
  LentRing(uint8_t* base, size_t bytes) : base_(base), bytes_(bytes) {}
  uint8_t* const base_;
  const size_t bytes_;
};

Result<TensorSpec> SpecOf(const char* name, const char* dtype, int32_t ndim, const int64_t* shape) {
  // ParseDType's names do not include "string", which no ring holds.
  const std::optional<DType> known = ParseDType(dtype == nullptr ? "" : dtype);
  const std::string what = "component \"" + std::string(name == nullptr ? "" : name) + "\"";
  if (name == nullptr || !known) {
    return InvalidArgument(what + " has dtype " + (dtype == nullptr ? "NULL" : dtype) +
                           ": a name and one of bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, "
                           "float64 is needed");
  }
  if (ndim < 0 || ndim > ring::kMaxDims) {
    return InvalidArgument(what + " has " + std::to_string(ndim) + " dimensions, at most " +
                           std::to_string(ring::kMaxDims) + " are offered");
  }
  return TensorSpec{name, *known, {shape, shape + ndim}};
}

// Entry i of an array that the caller made, whose structs are as long as its header's say.
template <typename Struct>
const Struct& EntryOf(const Struct* array, int32_t i) {
  const size_t stride = array->size == 0 ? sizeof(Struct) : array->size;
  return *reinterpret_cast<const Struct*>(reinterpret_cast<const uint8_t*>(array) + static_cast<size_t>(i) * stride);
}

// The function's side of the conversation, request by request.
class Server {
 public:
  explicit Server(const headrace_dataset_function& function) : function_(function) {}
  ~Server() { EndEpoch(); }

  // The answer to a request; nothing where none is wanted.
  Result<std::optional<ring::FunctionAnswer>> Answer(const ring::FunctionRequest& request, int fd) {
    if (const auto* start = std::get_if<ring::StartEpoch>(&request)) return Start(*start);
    if (std::holds_alternative<ring::NextElement>(request)) return Next();
    if (const auto* write = std::get_if<ring::WriteElement>(&request)) return Write(*write);
    ASSIGN_OR_RETURN(rings_[std::get<ring::MapRing>(request).replica], LentRing::Map(fd));
    return std::optional<ring::FunctionAnswer>();
  }

 private:
  void EndEpoch() {
    if (started_ && function_.end != nullptr) function_.end(function_.user, epoch_.iterator);
    started_ = false;
  }

  Result<std::optional<ring::FunctionAnswer>> Start(const ring::StartEpoch& start) {
    EndEpoch();
    const Topology& topology = start.topology;
    const headrace_input_context context{sizeof(headrace_input_context), topology.num_workers,
                                         topology.worker_index,          topology.replicas_in_sync(),
                                         topology.replicas_per_worker,   0};
    epoch_ = {};
    epoch_.size = sizeof(epoch_);
    epoch_.cardinality = kUnknownCardinality;
    const headrace_status status =
        function_.start(function_.user, &context, static_cast<int64_t>(start.epoch), &epoch_);
    if (status != HEADRACE_OK) return FromCallback(status);
    started_ = true;
    ring::EpochStarted started;
    started.cardinality = epoch_.cardinality;
    for (int32_t i = 0; i < epoch_.num_components; ++i) {
      const headrace_tensor_spec& spec = EntryOf(epoch_.element_spec, i);
      ASSIGN_OR_RETURN(TensorSpec component, SpecOf(spec.name, spec.dtype.name, spec.ndim, spec.shape));
      started.element_spec.push_back(std::move(component));
    }
    return std::optional<ring::FunctionAnswer>(std::move(started));
  }

  Result<std::optional<ring::FunctionAnswer>> Next() {
    if (!started_) return Internal("the loader asks for an element of no epoch");
    element_ = {};
    element_.size = sizeof(element_);
    const headrace_status status = function_.next(function_.user, epoch_.iterator, &element_);
    if (status == HEADRACE_END) return std::optional<ring::FunctionAnswer>(ring::EndOfElements{});
    if (status != HEADRACE_OK) return FromCallback(status);
    if (element_.num_tensors < 1) return InvalidArgument("the element has no component: yield at least one tensor");
    ring::Element element;
    bytes_.clear();
    for (int32_t i = 0; i < element_.num_tensors; ++i) {
      const headrace_tensor& tensor = EntryOf(element_.tensors, i);
      ASSIGN_OR_RETURN(TensorSpec spec, SpecOf(tensor.name, tensor.dtype.name, tensor.ndim, tensor.shape));
      bytes_.push_back(DTypeSize(spec.dtype));
      for (const int64_t dim : spec.shape) {  // the loader refuses what is negative or too large, and asks for no bytes
        bytes_.back() *= static_cast<uint64_t>(dim);
      }
      element.tensors.push_back(std::move(spec));
    }
    return std::optional<ring::FunctionAnswer>(std::move(element));
  }

  Result<std::optional<ring::FunctionAnswer>> Write(const ring::WriteElement& write) {
    const auto ring = rings_.find(write.replica);
    if (ring == rings_.end() || write.offsets.size() != bytes_.size()) {
      return Internal("the loader asks to write what was not yielded, or to a ring that it has not lent");
    }
    for (size_t i = 0; i < bytes_.size(); ++i) {
      RETURN_IF_ERROR(
          ring->second->Write(write.offsets[i], EntryOf(element_.tensors, static_cast<int32_t>(i)).data, bytes_[i]));
    }
    return std::optional<ring::FunctionAnswer>(ring::ElementWritten{});
  }

  const headrace_dataset_function& function_;
  headrace_epoch epoch_{};
  bool started_ = false;
  headrace_element element_{};
  std::vector<uint64_t> bytes_;  // of the element's tensors
  std::map<int64_t, std::unique_ptr<LentRing>> rings_;
};

// Connects, waiting for the loader to start.
Result<int> AwaitLoader(const ConnectPolicy& policy) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(policy.timeout_ms);
  while (true) {
    auto socket = ConnectUnix(policy.directory, names::kFunctionSocketFile);
    if (socket.ok() || !Retryable(socket.status().code())) return socket;
    if (policy.interrupted && policy.interrupted()) return Cancelled("interrupted while connecting to the loader");
    if (std::chrono::steady_clock::now() > deadline) {
      return socket.status().WithContext("no loader asked for a dataset function within " +
                                         std::to_string(policy.timeout_ms / 1000) + " s");
    }
    poll(nullptr, 0, kRetryMs);
  }
}

// Answers until the loader hangs up.
Status Converse(int socket, const ConnectPolicy& policy, Server& server) {
  while (true) {
    if (policy.interrupted && policy.interrupted()) return Cancelled("interrupted while serving");
    int fd = -1;
    ASSIGN_OR_RETURN(const std::optional<std::string> text, ReceiveWithin(socket, kSliceMs, &fd));
    if (!text) continue;
    if (text->empty()) return {};
    const Result<ring::FunctionRequest> request = ring::DecodeFunctionRequest(*text);
    using Answer = Result<std::optional<ring::FunctionAnswer>>;
    const Answer answer = request.ok() ? server.Answer(*request, fd) : Answer(request.status());
    if (fd >= 0) close(fd);
    if (answer.ok() && !*answer) continue;
    const std::string reply = answer.ok() ? ring::Encode(**answer) : ring::EncodeError(answer.status());
    if (!ring::SendMessage(socket, reply, -1).ok()) return {};
  }
}

}  // namespace
}  // namespace headrace::client

extern "C" headrace_status headrace_serve(const headrace_connect_options* options,
                                          const headrace_dataset_function* function) {
  using namespace headrace;
  using namespace headrace::client;
  return Guard([&] {
    auto policy = MakePolicy(options);
    if (!policy.ok()) return Report(policy.status());
    auto socket = AwaitLoader(*policy);
    if (!socket.ok()) return Report(socket.status());
    Status status;
    {
      Server server(*function);
      status = Converse(*socket, *policy, server);
    }
    close(*socket);
    return Report(status);
  });
}
