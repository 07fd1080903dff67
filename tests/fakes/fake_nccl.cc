// A stand-in for NCCL, libnccl.so.2, on machines without GPUs: HEADRACE_LIBNCCL names it, beside the stand-in for the
// driver (fake_cuda.cc), on whose streams its work runs. Ranks are processes or threads of one machine and meet in
// shared memory.
//
// Behaves as NCCL 2.32 says of itself where it matters to us: communicators are made without blocking; calls return
// ncclInProgress, and ncclCommGetAsyncError says when the work is on the stream; work waits on the stream for the other
// ranks, for ever if need be, until ncclCommAbort; nobody tells of a rank that died. Refuses what NCCL refuses, and
// some that it only warns of: ranks that there are not, two ranks on one GPU without NCCL_MULTI_RANK_GPU_ENABLE=1,
// memory that the GPU cannot read, calls while the last is in progress, calls after an abort, sizes that differ between
// ranks.
//
//   FAKE_NCCL_GPU      which GPU this process has; ranks with the same share one (default: each has its own)
//   FAKE_NCCL_FAIL_AT  the number of the piece of work, from 1, that ends with ncclRemoteError
#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kMostRanks = 8;
constexpr size_t kChannelBytes = 64 << 10;
constexpr int kLooksInProgress = 2;  // of ncclCommGetAsyncError, after each call

// One way between two ranks: a ring of bytes.
struct Channel {
  std::atomic<uint64_t> written;
  std::atomic<uint64_t> read;
  uint8_t bytes[kChannelBytes];
};
struct Meeting {
  std::atomic<int> joined[kMostRanks];
  char gpu[kMostRanks][64];
  Channel channels[kMostRanks][kMostRanks];  // from, to
};

template <typename Function>
Function* Driver(const char* name) {
  static void* const library = dlopen(std::getenv("HEADRACE_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

bool HasContext() {
  void* event = nullptr;
  if (Driver<int(void**, unsigned)>("cuEventCreate")(&event, 0) != 0) return false;
  Driver<int(void*)>("cuEventDestroy_v2")(event);
  return true;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): NCCL's own name
struct ncclComm {
  int rank = 0;
  int ranks = 0;
  std::string path;
  Meeting* meeting = nullptr;
  std::thread joining;
  std::atomic<int> looks{0};
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<bool> aborted{false};
  std::atomic<int> on_stream{0};  // pieces of work

  ~ncclComm() {
    if (meeting != nullptr) munmap(meeting, sizeof *meeting);
  }
};

namespace {

struct Work {
  enum class Kind { kSend, kReceive } kind;
  int peer;
  uint8_t* data;
  size_t bytes;
};

std::mutex mutex;
std::set<ncclComm_t> live;  // guarded by mutex
std::atomic<int> works{0};
thread_local std::string last_error;
thread_local bool in_group = false;
thread_local std::vector<std::pair<ncclComm_t, Work>> group;
thread_local cudaStream_t group_stream = nullptr;

ncclResult_t Refuse(ncclResult_t result, const std::string& why) {
  last_error = why;
  return result;
}

// Waits as a kernel does: nothing but an abort ends it.
template <typename Condition>
bool Await(const ncclComm& comm, Condition condition) {
  while (!condition()) {
    if (comm.aborted) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

bool Write(ncclComm& comm, int peer, const uint8_t* data, size_t bytes) {
  Channel& channel = comm.meeting->channels[comm.rank][peer];
  for (size_t done = 0; done < bytes;) {
    const uint64_t at = channel.written;
    if (!Await(comm, [&] { return at - channel.read < kChannelBytes; })) return false;
    const size_t here =
        std::min({bytes - done, kChannelBytes - (at - channel.read), kChannelBytes - at % kChannelBytes});
    std::memcpy(channel.bytes + at % kChannelBytes, data + done, here);
    channel.written = at + here;
    done += here;
  }
  return true;
}

bool Read(ncclComm& comm, int peer, uint8_t* data, size_t bytes) {
  Channel& channel = comm.meeting->channels[peer][comm.rank];
  for (size_t done = 0; done < bytes;) {
    const uint64_t at = channel.read;
    if (!Await(comm, [&] { return channel.written > at; })) return false;
    const size_t here = std::min({bytes - done, channel.written - at, kChannelBytes - at % kChannelBytes});
    std::memcpy(data + done, channel.bytes + at % kChannelBytes, here);
    channel.read = at + here;
    done += here;
  }
  return true;
}

// On the stream. The size goes first, so that the other side can see that it is the same there.
void Run(ncclComm& comm, const Work& work) {
  uint64_t bytes = work.bytes;
  auto* const size = reinterpret_cast<uint8_t*>(&bytes);
  if (work.kind == Work::Kind::kSend) {
    if (Write(comm, work.peer, size, sizeof bytes)) Write(comm, work.peer, work.data, work.bytes);
    return;
  }
  if (!Read(comm, work.peer, size, sizeof bytes)) return;
  if (bytes != work.bytes) {
    comm.state = ncclInvalidUsage;
    Await(comm, [] { return false; });
    return;
  }
  Read(comm, work.peer, work.data, work.bytes);
}

struct Launch {
  ncclComm_t comm;
  std::vector<Work> works;
};

ncclResult_t Enqueue(ncclComm_t comm, std::vector<Work> all, cudaStream_t stream) {
  const char* const fail_at = std::getenv("FAKE_NCCL_FAIL_AT");
  if (fail_at != nullptr && ++works == std::atoi(fail_at)) {
    comm->state = ncclRemoteError;
    return ncclInProgress;
  }
  const auto run = [](void* user) {
    const std::unique_ptr<Launch> launch(static_cast<Launch*>(user));
    for (const Work& work : launch->works) Run(*launch->comm, work);
    launch->comm->on_stream -= 1;
  };
  auto* const launch = new Launch{comm, std::move(all)};
  comm->on_stream += 1;
  using HostFunction = void (*)(void*);
  if (Driver<int(cudaStream_t, HostFunction, void*)>("cuLaunchHostFunc")(stream, run, launch) != 0) {
    delete launch;
    comm->on_stream -= 1;
    return Refuse(ncclUnhandledCudaError, "the work found no stream, or no context");
  }
  comm->looks = kLooksInProgress;
  return ncclInProgress;
}

// Whether a call may be made now, with this memory.
ncclResult_t Check(ncclComm_t comm, int peer, const void* data, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (live.count(comm) == 0) return Refuse(ncclInvalidArgument, "a communicator that was aborted, or never was");
  if (peer < 0 || peer >= comm->ranks) return Refuse(ncclInvalidArgument, "rank " + std::to_string(peer));
  if (comm->state != ncclSuccess || comm->looks > 0) return Refuse(ncclInvalidUsage, "the last call is in progress");
  if (Driver<int(const void*, size_t)>("FakeCudaIsRegistered")(data, bytes) == 0) {
    return Refuse(ncclInvalidArgument, "memory that the GPU cannot read");
  }
  return ncclSuccess;
}

ncclResult_t Add(ncclComm_t comm, const Work& work, cudaStream_t stream) {
  if (const ncclResult_t result = Check(comm, work.peer, work.data, work.bytes); result != ncclSuccess) return result;
  if (!in_group) return Enqueue(comm, {work}, stream);
  group.emplace_back(comm, work);
  group_stream = stream;
  return ncclInProgress;
}

void JoinAll(ncclComm_t comm) {
  Meeting& meeting = *comm->meeting;
  const char* const gpu = std::getenv("FAKE_NCCL_GPU");
  const std::string own = gpu != nullptr ? gpu : "of rank " + std::to_string(comm->rank);
  own.copy(meeting.gpu[comm->rank], sizeof meeting.gpu[0] - 1);
  meeting.joined[comm->rank] = 1;
  for (int rank = 0; rank < comm->ranks; ++rank) {
    if (!Await(*comm, [&] { return meeting.joined[rank] != 0; })) return;
  }
  std::set<std::string> gpus;
  for (int rank = 0; rank < comm->ranks; ++rank) gpus.insert(meeting.gpu[rank]);
  const char* const shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool may_share = shared != nullptr && std::string(shared) == "1";
  const bool shares = gpus.size() < static_cast<size_t>(comm->ranks);
  comm->state = shares && !may_share ? ncclInvalidUsage : ncclSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::string path = "/dev/shm/headrace-fake-nccl-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0 || ftruncate(fd, sizeof(Meeting)) != 0) return Refuse(ncclSystemError, "no shared memory: " + path);
  close(fd);
  std::memset(id, 0, sizeof *id);
  path.copy(id->internal, sizeof id->internal - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (rank < 0 || rank >= ranks) return Refuse(ncclInvalidArgument, "rank " + std::to_string(rank));
  if (ranks > kMostRanks) return Refuse(ncclInvalidArgument, "more ranks than the stand-in has room for");
  if (config == nullptr || config->magic != NCCL_API_MAGIC || config->blocking != 0) {
    return Refuse(ncclInvalidUsage, "the stand-in does not block");
  }
  if (!HasContext()) return Refuse(ncclUnhandledCudaError, "no current context");
  const int fd = open(id.internal, O_RDWR | O_CLOEXEC);
  if (fd < 0) return Refuse(ncclInvalidArgument, "an id that nobody made");
  void* const memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return ncclSystemError;
  auto comm = std::make_unique<ncclComm>();
  comm->rank = rank;
  comm->ranks = ranks;
  comm->path = id.internal;
  comm->meeting = static_cast<Meeting*>(memory);
  comm->joining = std::thread(JoinAll, comm.get());
  *out = comm.release();
  const std::lock_guard lock(mutex);
  live.insert(*out);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  if (live.count(comm) == 0) return Refuse(ncclInvalidArgument, "a communicator that was aborted, or never was");
  *state = comm->state;
  if (*state != ncclSuccess || comm->looks == 0) return ncclSuccess;
  comm->looks -= 1;
  *state = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(mutex);
    if (live.erase(comm) == 0) return Refuse(ncclInvalidArgument, "aborted twice");
  }
  comm->aborted = true;
  comm->joining.join();
  if (comm->rank == 0) unlink(comm->path.c_str());
  while (comm->on_stream > 0) std::this_thread::yield();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  auto* const bytes = const_cast<uint8_t*>(static_cast<const uint8_t*>(data));
  return Add(comm, {Work::Kind::kSend, peer, bytes, count}, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  return Add(comm, {Work::Kind::kReceive, peer, static_cast<uint8_t*>(data), count}, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  if (const ncclResult_t result = Check(comm, root, to, count); result != ncclSuccess) return result;
  if (comm->rank != root)
    return Enqueue(comm, {{Work::Kind::kReceive, root, static_cast<uint8_t*>(to), count}}, stream);
  std::vector<Work> all;
  for (int rank = 0; rank < comm->ranks; ++rank) {
    auto* const bytes = const_cast<uint8_t*>(static_cast<const uint8_t*>(from));
    if (rank != root) all.push_back({Work::Kind::kSend, rank, bytes, count});
  }
  return Enqueue(comm, std::move(all), stream);
}

ncclResult_t ncclGroupStart() {
  in_group = true;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  in_group = false;
  if (group.empty()) return ncclSuccess;
  std::vector<Work> all;
  for (const auto& [comm, work] : group) all.push_back(work);
  const ncclComm_t comm = group.front().first;
  group.clear();
  return Enqueue(comm, std::move(all), group_stream);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
