// The handshake on the Unix socket beside the rings ($HEADRACE_DIR/loader.sock, SOCK_SEQPACKET): one request, one
// reply.
//
//   client -> loader  {"version":1,"replica":0,"memory":"Pinned: GPU 0","device":false}
//                     {"version":1} to ask without attaching
//   loader -> client  {"version":1,"plan":"<hash>","input":"ml/clicks","numWorkers":2,"workerIndex":0,
//                      "replicasPerWorker":2,"globalBatchSize":1024,"effectivePolicy":"Data","warnings":[..],
//                      "elementSpec":[..],"cardinality":-2,"runSeed":7,"memory":"Auto","onDemand":false,
//                      "memoryReason":"the loader has no GPU: ..","deviceRings":[]}
//                                                                     with the ring's file descriptor by SCM_RIGHTS
//
// Where the loader fills rings in GPU memory, deviceRings says for each replica on which GPU, and of which generation
// of the ring: {"gpu":"GPU-8f3c..","generation":3}. To a client that asks for it ("device":true) go two descriptors
// more: the GPU memory, to be mapped by the driver, and the counters of common/gpu/handover.h. Where part of a batch is
// there in GPU memory alone, "deviceOnly" says why, and a client that does not ask for that memory is refused with it.
//                     {"version":1,"error":"NotFound: spec.source.files.paths[0]: ..."}
//
// Both sides then keep the connection open; its hang-up is how each learns that the other has gone. A replica has one
// client at a time: a second one is refused, with a Conflict, while the first is connected; it asks again, since a
// killed client may count as connected for a moment.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/plan.h"

namespace headrace::ring {

struct DeviceRingReply {
  std::string gpu;          // gpu::GpuUuid
  uint64_t generation = 0;  // RingHeader::generation of the loader that fills it
};

struct HandshakeReply {
  std::string plan_hash;
  std::string input;
  Topology topology;
  int64_t global_batch_size = 0;  // 0: not batched or not known
  std::string effective_policy;
  std::vector<std::string> warnings;
  std::vector<TensorSpec> element_spec;
  int64_t cardinality = kUnknownCardinality;
  uint64_t run_seed = 0;  // of shuffles without a seed of their own
  MemoryKind memory = MemoryKind::kAuto;
  std::string memory_reason;                  // why there are no device rings
  std::vector<DeviceRingReply> device_rings;  // by replica; none: the loader fills no GPU memory
  // Why a trainer that takes host memory cannot be served: part of a batch is there in GPU memory alone. Empty: it can.
  std::string device_only;
  bool on_demand = false;  // a step is made when a trainer asks for it, and must not be asked for ahead
};

std::string EncodeReply(const HandshakeReply& reply);
std::string EncodeError(const Status& error);
// An {"error"} reply becomes that status. Errors: Internal if `text` is not a reply.
Result<HandshakeReply> DecodeReply(const std::string& text);

struct HandshakeRequest {
  int replica = -1;     // -1: ask without attaching
  std::string memory;   // where the trainer has its batches, and why, for the loader's log
  bool device = false;  // it reads them in the device ring
};

std::string EncodeRequest(const HandshakeRequest& request);
Result<HandshakeRequest> DecodeRequest(const std::string& text);

// Sends `text` as one packet, with `fd` attached unless it is -1.
Status SendMessage(int socket, const std::string& text, int fd);
// Waits up to timeout_ms for one packet. *fd is -1 if none came; the caller owns it. Errors: Unavailable on hang-up or
// time-out.
Result<std::string> ReceiveMessage(int socket, int timeout_ms, int* fd);

// The same with several descriptors, in their order: at most kMaxDescriptors; those that did not come are -1.
inline constexpr size_t kMaxDescriptors = 3;
Status SendDescriptors(int socket, const std::string& text, std::span<const int> fds);
Result<std::string> ReceiveDescriptors(int socket, int timeout_ms, std::span<int> fds);

}  // namespace headrace::ring
