#include "common/ring/handshake.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/ring/message.h"

namespace headrace::ring {
namespace {

using nlohmann::json;

constexpr size_t kMaxMessageBytes = 128 * 1024;  // under the default socket buffer, so that one packet always fits
constexpr size_t kMaxMemoryText = 400;

}  // namespace

std::string EncodeReply(const HandshakeReply& reply) {
  json device_rings = json::array();
  for (const DeviceRingReply& ring : reply.device_rings) {
    device_rings.push_back({{"gpu", ring.gpu}, {"generation", ring.generation}});
  }
  return DumpMessage({{"version", kProtocolVersion},
                      {"plan", reply.plan_hash},
                      {"input", reply.input},
                      {"numWorkers", reply.topology.num_workers},
                      {"workerIndex", reply.topology.worker_index},
                      {"replicasPerWorker", reply.topology.replicas_per_worker},
                      {"globalBatchSize", reply.global_batch_size},
                      {"effectivePolicy", reply.effective_policy},
                      {"warnings", reply.warnings},
                      {"elementSpec", ToJson(reply.element_spec)},
                      {"cardinality", reply.cardinality},
                      {"runSeed", reply.run_seed},
                      {"memory", MemoryKindName(reply.memory)},
                      {"memoryReason", reply.memory_reason},
                      {"deviceRings", device_rings},
                      {"deviceOnly", reply.device_only},
                      {"onDemand", reply.on_demand}});
}

std::string EncodeError(const Status& error) {
  return DumpMessage({{"version", kProtocolVersion}, {"error", error.ToString()}});
}

Result<HandshakeReply> DecodeReply(const std::string& text) {
  ASSIGN_OR_RETURN(json message, ParseMessage(text));
  RETURN_IF_ERROR(ErrorOf(message));
  HandshakeReply reply;
  Fields fields(message);
  reply.plan_hash = fields.String("plan");
  reply.input = fields.String("input");
  reply.topology.num_workers = fields.Integer("numWorkers", 1);
  reply.topology.worker_index = fields.Integer("workerIndex", 0);
  reply.topology.replicas_per_worker = fields.Integer("replicasPerWorker", 1);
  reply.global_batch_size = fields.Integer("globalBatchSize", 0);
  reply.effective_policy = fields.String("effectivePolicy");
  reply.cardinality = fields.Integer("cardinality", kUnknownCardinality);
  const json* warnings = fields.Find("warnings", &json::is_array, "an array");
  const json* element_spec = fields.Find("elementSpec", &json::is_array, "an array");
  const json* run_seed = fields.Find("runSeed", &json::is_number_unsigned, "a whole number");
  // A loader that does not say knows host memory alone.
  const std::string memory = message.contains("memory") ? fields.String("memory") : "Host";
  if (message.contains("memoryReason")) reply.memory_reason = fields.String("memoryReason");
  if (message.contains("deviceOnly")) reply.device_only = fields.String("deviceOnly");
  const json* device_rings = nullptr;
  if (message.contains("deviceRings")) device_rings = fields.Find("deviceRings", &json::is_array, "an array");
  reply.on_demand = message.value("onDemand", json()) == true;
  RETURN_IF_ERROR(fields.status());
  reply.run_seed = run_seed->get<uint64_t>();
  const std::optional<MemoryKind> kind = ParseMemoryKind(memory);
  if (!kind) return Internal("handshake: memory is '" + memory + "', which this client does not know: update it");
  reply.memory = *kind;
  for (const json& warning : *warnings) {
    if (!warning.is_string()) return Internal("handshake: a warning is not a string");
    reply.warnings.push_back(warning.get<std::string>());
  }
  for (const json& ring : device_rings == nullptr ? json::array() : *device_rings) {
    Fields of_ring(ring);
    reply.device_rings.push_back({of_ring.String("gpu"), static_cast<uint64_t>(of_ring.Integer("generation", 1))});
    RETURN_IF_ERROR(of_ring.status(), "deviceRings");
  }
  auto parsed = ParseElementSpec(*element_spec);
  if (!parsed.ok()) return Internal("handshake: " + parsed.status().message());
  reply.element_spec = std::move(*parsed);
  return reply;
}

std::string EncodeRequest(const HandshakeRequest& request) {
  json message = {{"version", kProtocolVersion}};
  if (request.replica >= 0) message["replica"] = request.replica;
  if (!request.memory.empty()) message["memory"] = request.memory;
  if (request.device) message["device"] = true;
  return DumpMessage(message);
}

Result<HandshakeRequest> DecodeRequest(const std::string& text) {
  ASSIGN_OR_RETURN(json message, ParseMessage(text));
  HandshakeRequest request;
  Fields fields(message);
  if (message.contains("replica")) {
    const int64_t replica = fields.Integer("replica", 0);
    if (replica > 1 << 20) return Internal("handshake: replica is " + std::to_string(replica));
    request.replica = static_cast<int>(replica);
  }
  if (message.contains("memory")) request.memory = fields.String("memory").substr(0, kMaxMemoryText);
  request.device = message.value("device", json()) == true;
  RETURN_IF_ERROR(fields.status());
  return request;
}

Status SendMessage(int socket, const std::string& text, int fd) {
  return SendDescriptors(socket, text, std::span(&fd, fd < 0 ? 0 : 1));
}

Result<std::string> ReceiveMessage(int socket, int timeout_ms, int* fd) {
  return ReceiveDescriptors(socket, timeout_ms, std::span(fd, 1));
}

Status SendDescriptors(int socket, const std::string& text, std::span<const int> fds) {
  if (text.size() > kMaxMessageBytes) {
    return Internal("handshake: a message of " + std::to_string(text.size()) + " bytes, at most " +
                    std::to_string(kMaxMessageBytes) + " fit");
  }
  iovec data{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return ErrnoStatus(errno, "sending on the loader's socket");
  return {};
}

Result<std::string> ReceiveDescriptors(int socket, int timeout_ms, std::span<int> fds) {
  std::fill(fds.begin(), fds.end(), -1);
  pollfd ready{socket, POLLIN, 0};
  int count;
  do {
    count = poll(&ready, 1, timeout_ms);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return ErrnoStatus(errno, "waiting on the loader's socket");
  if (count == 0) {
    return Unavailable("no message on the loader's socket within " + std::to_string(timeout_ms) + " ms");
  }
  std::string text(kMaxMessageBytes, '\0');
  iovec data{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(fds.size_bytes());  // the kernel closes what a peer attached beyond them
  ssize_t received;
  do {
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return ErrnoStatus(errno, "receiving on the loader's socket");
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::memcpy(fds.data(), CMSG_DATA(part), std::min<size_t>(part->cmsg_len - CMSG_LEN(0), fds.size_bytes()));
  }
  Status bad;
  if (received == 0) bad = Unavailable("the other side of the loader's socket hung up");
  if ((message.msg_flags & MSG_TRUNC) != 0) bad = Internal("handshake: a message longer than its bound");
  if (!bad.ok()) {
    for (int& fd : fds) {
      if (fd >= 0) close(fd);
      fd = -1;
    }
    return bad;
  }
  text.resize(static_cast<size_t>(received));
  return text;
}

}  // namespace headrace::ring
