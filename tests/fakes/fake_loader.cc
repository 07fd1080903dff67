#include "tests/fakes/fake_loader.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "common/spec/names.h"

namespace headrace::fakes {
namespace {

constexpr int kPollMs = 10;
constexpr int64_t kWidth = 3;  // of x

uint64_t RowBytes(const TensorSpec& spec) {
  uint64_t bytes = DTypeSize(spec.dtype);
  for (size_t d = 1; d < spec.shape.size(); ++d) bytes *= static_cast<uint64_t>(spec.shape[d]);
  return bytes;
}

bool IsDense(const TensorSpec& spec) { return spec.dtype != DType::kString && !spec.ragged; }
constexpr uint64_t kMostRowBytes = 32;  // of a component that is not

uint64_t Aligned(uint64_t bytes) { return (bytes + ring::kTensorAlign - 1) / ring::kTensorAlign * ring::kTensorAlign; }

template <typename T>
void Ramp(uint8_t* to, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) reinterpret_cast<T*>(to)[i] = static_cast<T>(i);
}

// The rows of a component of variable length, one after another.
struct Rows {
  std::vector<uint8_t> values;
  std::vector<int64_t> splits = {0};

  void Append(const void* data, size_t bytes) {
    const auto* const begin = static_cast<const uint8_t*>(data);
    values.insert(values.end(), begin, begin + bytes);
  }
  void EndRow(size_t unit_bytes) { splits.push_back(static_cast<int64_t>(values.size() / unit_bytes)); }
};

Rows MakeRows(const TensorSpec& spec, int64_t label, int64_t rows) {
  Rows made;
  if (spec.shape.empty()) rows = 1;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t tokens[] = {label + i, -label - i};
    const float box[] = {static_cast<float>(tokens[0]), static_cast<float>(tokens[1])};
    std::string text = spec.name == "title" ? "batch " : "";
    if (i % 4 != 3) text += std::to_string(label + i);
    if (spec.dtype == DType::kString) {
      made.Append(text.data(), text.size());
      made.EndRow(1);
    } else if (spec.name == "tokens") {
      made.Append(tokens, static_cast<size_t>(i % 3) * sizeof(int64_t));
      made.EndRow(sizeof(int64_t));
    } else {
      made.Append(box, static_cast<size_t>(i % 2) * sizeof(box));
      made.EndRow(sizeof(box));
    }
  }
  return made;
}

// Row i holds the value i, but for the first two components.
void FillTensor(const TensorSpec& spec, int64_t label, int64_t rows, uint8_t* to) {
  if (spec.name == "label") {
    for (int64_t i = 0; i < rows; ++i) reinterpret_cast<int64_t*>(to)[i] = label + i;
    return;
  }
  if (spec.name == "x") {
    auto* values = reinterpret_cast<float*>(to);
    for (int64_t i = 0; i < rows * kWidth; ++i) {
      values[i] = static_cast<float>(label + i / kWidth) + static_cast<float>(i % kWidth) / 4;
    }
    return;
  }
  switch (spec.dtype) {
    case DType::kBool:
      for (int64_t i = 0; i < rows; ++i) to[i] = i % 2 == 1;
      break;
    case DType::kFloat16: {
      const uint16_t bits[] = {0x0000, 0x3c00, 0x4000, 0x4200};  // 0, 1, 2, 3
      for (int64_t i = 0; i < rows; ++i) reinterpret_cast<uint16_t*>(to)[i] = bits[i % 4];
      break;
    }
    case DType::kBfloat16: {
      const uint16_t bits[] = {0x0000, 0x3f80, 0x4000, 0x4040};  // 0, 1, 2, 3
      for (int64_t i = 0; i < rows; ++i) reinterpret_cast<uint16_t*>(to)[i] = bits[i % 4];
      break;
    }
    case DType::kInt8: Ramp<int8_t>(to, rows); break;
    case DType::kUint8: Ramp<uint8_t>(to, rows); break;
    case DType::kInt16: Ramp<int16_t>(to, rows); break;
    case DType::kUint16: Ramp<uint16_t>(to, rows); break;
    case DType::kInt32: Ramp<int32_t>(to, rows); break;
    case DType::kUint32: Ramp<uint32_t>(to, rows); break;
    case DType::kInt64: Ramp<int64_t>(to, rows); break;
    case DType::kUint64: Ramp<uint64_t>(to, rows); break;
    case DType::kFloat32: Ramp<float>(to, rows); break;
    case DType::kFloat64: Ramp<double>(to, rows); break;
    case DType::kString: break;
  }
}

}  // namespace

FakeLoader::FakeLoader(FakeLoaderOptions options) : options_(std::move(options)) {
  const int64_t rows = options_.partial_last_step ? options_.rows : kUnknownDim;
  element_spec_ = {{"label", DType::kInt64, {rows}}, {"x", DType::kFloat32, {rows, kWidth}}};
  if (options_.variable) {
    element_spec_.push_back({"text", DType::kString, {rows}});
    element_spec_.push_back({"title", DType::kString, {}});
    element_spec_.push_back({"tokens", DType::kInt64, {rows, kUnknownDim}, true});
    element_spec_.push_back({"boxes", DType::kFloat32, {rows, kUnknownDim, 2}, true});
  }
  if (!options_.all_dtypes) return;
  for (DType dtype :
       {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16, DType::kInt32, DType::kUint32,
        DType::kInt64, DType::kUint64, DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    element_spec_.push_back({std::string(DTypeName(dtype)), dtype, {rows}});
  }
}

Result<std::unique_ptr<FakeLoader>> FakeLoader::Start(FakeLoaderOptions options) {
  std::unique_ptr<FakeLoader> loader(new FakeLoader(std::move(options)));
  ring::RingGeometry geometry;
  geometry.slot_count = loader->options_.slots;
  for (const TensorSpec& spec : loader->element_spec_) {
    const auto rows = static_cast<uint64_t>(loader->options_.rows);
    geometry.slot_bytes += IsDense(spec) ? Aligned(RowBytes(spec) * rows)
                                         : Aligned(kMostRowBytes * rows + 1) + Aligned((rows + 1) * sizeof(int64_t));
  }
  geometry.component_count = static_cast<uint32_t>(loader->element_spec_.size());
  geometry.plan_hash = loader->options_.plan_hash;
  geometry.num_workers = static_cast<uint32_t>(loader->options_.num_workers);
  geometry.worker_index = static_cast<uint32_t>(loader->options_.worker_index);
  geometry.replicas_per_worker = static_cast<uint32_t>(loader->options_.replicas);
  for (int64_t replica = 0; replica < loader->options_.replicas; ++replica) {
    geometry.replica = static_cast<uint32_t>(replica);
    auto writer =
        ring::RingWriter::Open(loader->options_.directory + "/replica-" + std::to_string(replica) + ".ring", geometry);
    if (!writer.ok()) return writer.status();
    loader->writers_.push_back(std::move(*writer));
  }
  RETURN_IF_ERROR(loader->Listen());
  loader->server_ = std::thread([raw = loader.get()] { raw->Serve(); });
  loader->filler_ = std::thread([raw = loader.get()] { raw->Fill(); });
  return loader;
}

FakeLoader::~FakeLoader() {
  stop_ = true;
  if (filler_.joinable()) filler_.join();
  if (server_.joinable()) server_.join();
  if (listener_ >= 0) close(listener_);
}

Status FakeLoader::Listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = options_.directory + "/" + names::kSocketFile;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  unlink(path.c_str());
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 16) != 0) {
    return ErrnoStatus(errno, "listening on " + path);
  }
  return {};
}

ring::HandshakeReply FakeLoader::Reply() const {
  ring::HandshakeReply reply;
  reply.plan_hash = options_.plan_hash;
  reply.input = "test/fake";
  reply.topology = {options_.num_workers, options_.worker_index, options_.replicas};
  reply.global_batch_size = options_.rows * options_.replicas * options_.num_workers;
  reply.effective_policy = "Data";
  reply.warnings = {"made-up data"};
  reply.element_spec = element_spec_;
  reply.cardinality = options_.steps < 0 ? kInfiniteCardinality : options_.steps;
  reply.memory = options_.memory;
  reply.on_demand = options_.on_demand;
  return reply;
}

void FakeLoader::Answer(int socket, std::vector<std::pair<int, int>>* clients) {
  int fd = -1;
  auto text = ring::ReceiveMessage(socket, 0, &fd);
  if (fd >= 0) close(fd);
  auto client = std::find_if(clients->begin(), clients->end(), [&](const auto& c) { return c.first == socket; });
  if (!text.ok()) {
    close(socket);
    clients->erase(client);
    return;
  }
  const auto request = ring::DecodeRequest(*text);
  Status refused = request.status();
  const int replica = request.ok() ? request->replica : -1;
  if (refused.ok() && !options_.error.empty() && options_.fail_at_step < 0) refused = ParseStatus(options_.error);
  if (refused.ok() && replica >= options_.replicas) refused = InvalidArgument("no such replica");
  const bool taken = refused.ok() && replica >= 0 &&
                     std::any_of(clients->begin(), clients->end(), [&](const auto& c) { return c.second == replica; });
  if (taken) refused = Conflict("replica " + std::to_string(replica) + " is read by another trainer");
  if (refused.ok()) client->second = replica;
  const bool attach = refused.ok() && replica >= 0;
  // A failed send means that the client has gone, which the next poll shows.
  Status sent = ring::SendMessage(socket, refused.ok() ? ring::EncodeReply(Reply()) : ring::EncodeError(refused),
                                  attach ? writers_[static_cast<size_t>(replica)]->fd() : -1);
  static_cast<void>(sent);
}

void FakeLoader::Serve() {
  std::vector<std::pair<int, int>> clients;  // socket, replica (-1: none)
  while (!stop_) {
    std::vector<pollfd> sockets = {{listener_, POLLIN, 0}};
    for (const auto& client : clients) sockets.push_back({client.first, POLLIN, 0});
    if (poll(sockets.data(), sockets.size(), kPollMs) <= 0) continue;
    for (size_t i = 1; i < sockets.size(); ++i) {
      if (sockets[i].revents != 0) Answer(sockets[i].fd, &clients);
    }
    if (sockets[0].revents != 0) {
      int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted >= 0) clients.emplace_back(accepted, -1);
    }
  }
  for (const auto& client : clients) close(client.first);
}

Status FakeLoader::PublishStep(uint64_t epoch, uint64_t step) {
  const bool end = options_.steps >= 0 && step >= static_cast<uint64_t>(options_.steps);
  const bool partial = options_.partial_last_step && step + 1 == static_cast<uint64_t>(options_.steps);
  for (size_t r = 0; r < writers_.size(); ++r) {
    ring::RingWriter& writer = *writers_[r];
    // Published by the loader before us.
    if (writer.next_epoch() > epoch || (writer.next_epoch() == epoch && writer.next_step() > step)) continue;
    ASSIGN_OR_RETURN(uint8_t * slot, writer.Reserve(stop_, epoch));
    ring::SlotDescriptor descriptor{};
    descriptor.epoch = epoch;
    descriptor.step = step;
    if (end) descriptor.flags = ring::kEndOfEpoch;
    if (!end && partial) descriptor.flags = ring::kPartialStep;
    std::vector<ring::ComponentExtent> extents;
    if (!end) {
      const int64_t rows = partial && r + 1 == writers_.size() ? 0 : options_.rows;
      descriptor.rows = static_cast<uint64_t>(rows);
      uint64_t offset = 0;
      for (const TensorSpec& spec : element_spec_) {
        const int64_t label = Label(options_, epoch, step, static_cast<int64_t>(r));
        ring::ComponentExtent& extent = extents.emplace_back(ring::ComponentExtent{offset, 0, spec.shape.size(), {}});
        std::copy(spec.shape.begin(), spec.shape.end(), extent.dims);
        if (!spec.shape.empty()) extent.dims[0] = rows;
        if (IsDense(spec)) {
          extent.bytes = RowBytes(spec) * static_cast<uint64_t>(rows);
          if (options_.fill) FillTensor(spec, label, rows, slot + offset);
          offset += Aligned(extent.bytes);
          continue;
        }
        const Rows made = MakeRows(spec, label, rows);
        extent.bytes = made.values.size();
        extent.splits_offset = offset + std::max(Aligned(extent.bytes), ring::kTensorAlign);  // never 0
        std::copy(made.values.begin(), made.values.end(), slot + offset);
        std::memcpy(slot + extent.splits_offset, made.splits.data(), made.splits.size() * sizeof(int64_t));
        offset = extent.splits_offset + Aligned(made.splits.size() * sizeof(int64_t));
      }
      if (options_.spoil) options_.spoil(slot, extents);
    }
    writer.Publish(descriptor, extents);
  }
  return {};
}

void FakeLoader::Fill() {
  if (!options_.error.empty() && options_.fail_at_step < 0) return;
  // Where the replica that is furthest behind goes on.
  uint64_t epoch = ~uint64_t{0};
  uint64_t step = 0;
  for (const auto& writer : writers_) {
    if (std::pair(writer->next_epoch(), writer->next_step()) < std::pair(epoch, step)) {
      epoch = writer->next_epoch();
      step = writer->next_step();
    }
  }
  while (!stop_) {
    for (const auto& writer : writers_) {
      if (const auto seek = writer->TakeSeek()) std::tie(epoch, step) = std::tie(seek->epoch, seek->step);
    }
    uint64_t wanted = 0;
    for (const auto& writer : writers_) wanted = std::max(wanted, writer->TakeNewerEpoch().value_or(0));
    if (wanted > epoch) {
      epoch = wanted;
      step = 0;
    }
    if (epoch == 0 && static_cast<int64_t>(step) == options_.pause_at_step) return;
    if (epoch == 0 && static_cast<int64_t>(step) == options_.fail_at_step) {
      for (auto& writer : writers_) writer->Fail(ParseStatus(options_.error));
      return;
    }
    if (!PublishStep(epoch, step).ok()) continue;  // asked to stop, or the client moved on
    if (options_.steps >= 0 && step >= static_cast<uint64_t>(options_.steps)) {
      epoch += 1;
      step = 0;
    } else {
      step += 1;
    }
  }
}

}  // namespace headrace::fakes
