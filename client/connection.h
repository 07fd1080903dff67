// One replica as the trainer sees it: its ring, and the loader behind it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/arrival.h"
#include "client/loader_socket.h"
#include "client/prefetch.h"
#include "common/ring/reader.h"

struct headrace_batch;

namespace headrace::client {

struct ConnectPolicy {
  std::string directory;
  int64_t timeout_ms = 0;         // for the loader to start
  int64_t loader_timeout_ms = 0;  // for the loader to come back
  std::function<bool()> interrupted;
  bool takes_device = false;  // the trainer is ready for tensors in GPU memory
  std::vector<int> gpus;      // of the replicas, in turn; none: replica r has GPU r, as far as there are so many
  size_t device_batches = 0;  // of a replica in GPU memory at a time; 0: kDeviceBatches
};

// One that the GPU works on, one that the trainer has got, and two on their way.
inline constexpr size_t kDeviceBatches = 4;

// What an element's component means for a batch, worked out once.
struct Component {
  TensorSpec spec;
  int64_t value_bytes = 0;  // of a string's value: 1
};

// Where a replica's batches go, and why there.
struct Destination {
  MemoryKind memory = MemoryKind::kHost;
  std::optional<int> gpu;  // none: they stay in the ring
  std::string reason;      // "Pinned: GPU 0, ..."
  Status error = {};       // they cannot go where they must: told to who attaches to this replica
};

// Shared by iterators and by batches, which keep it (mapping and socket) until the last one is freed. next() of one
// thread at a time; Release, PrepareNext and what uses a batch from any.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static Result<std::shared_ptr<Connection>> Open(const ConnectPolicy& policy, int replica, const Destination& to);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int replica() const { return replica_; }
  const ring::HandshakeReply& reply() const { return reply_; }
  const std::vector<Component>& components() const { return components_; }

  // The epoch that the next iterator reads, and its start, which gives the iterator's number: an epoch can be started
  // twice.
  uint64_t NextEpoch() const { return reader_->next_epoch(); }
  uint64_t StartIteration(uint64_t epoch);
  uint64_t StartIterationAt(const ring::Position& start);
  // Of the shuffles without a seed of their own, in the order that is read now.
  uint64_t seed() const { return reader_->seed() != 0 ? reader_->seed() : reply_.run_seed; }
  // Of an iterator that is over: nothing is prepared for it any more. What was goes back unread.
  void EndIteration(uint64_t iterator);
  // The iterator's next batch, which the caller frees, if it is prepared; else null.
  headrace_batch* TakePrepared(uint64_t iterator) {
    return IsNewest(iterator) ? prepared_.exchange(nullptr, std::memory_order_acq_rel) : nullptr;
  }
  // The same, or what RingReader::Next finds, which also notices that the loader has gone and waits for it to come
  // back; of batches that go to a GPU, Prefetch::Next. Errors: theirs; Unavailable if the loader stays away;
  // InvalidArgument if a newer iterator ended this one.
  Result<ring::RingReader::Outcome> Next(uint64_t iterator, int64_t timeout_ms, headrace_batch** batch);
  // Takes the next batch out of the ring, if it lies there, and measures it: what a trainer need not wait for then.
  // Errors, and ends of epochs, are left for Next to find again.
  void PrepareNext();
  // Gives a batch back, which was used on these streams of its GPU.
  void Release(const Arrival& arrival, std::span<const gpu::Stream> users = {});

  // The object of a batch that was freed, kept for the next one, so that a trainer's loop allocates nothing; null:
  // there is none. What KeepSpare returns, the one kept before, is the caller's. Any thread.
  headrace_batch* TakeSpare() { return spare_.exchange(nullptr, std::memory_order_acq_rel); }
  headrace_batch* KeepSpare(headrace_batch* batch) { return spare_.exchange(batch, std::memory_order_acq_rel); }

  // Of batches that lie on a GPU. REQUIRES: Arrival::device_memory() is not 0.
  int gpu() const { return *to_.gpu; }
  // Makes `stream` wait until the batch is there.
  Status UseOn(const Arrival& arrival, gpu::Stream stream) const;
  // Copies out of its memory when all that `user` (null: none) was given to do is done, and waits for it.
  Status CopyToHost(const Arrival& arrival, ring::ByteRange range, gpu::Stream user, void* to) const;
  // Errors: Unavailable in a process forked from the one that connected. All that such a process may do is to drop what
  // it has inherited.
  Status CheckProcess() const;

 private:
  Connection(const ConnectPolicy& policy, int replica, const Destination& to);
  Result<ring::RingReader::Outcome> NextInRing(uint64_t epoch, int64_t timeout_ms, ring::SlotView* view);
  [[gnu::cold, gnu::noinline]] Status Superseded() const;
  Result<ring::RingReader::Outcome> NextOnGpu(int64_t timeout_ms, Arrival* arrival);
  // Of batches that the loader brings to the GPU.
  Result<ring::RingReader::Outcome> NextInDeviceRing(int64_t timeout_ms, Arrival* arrival);
  Status CheckLoader();
  Status OpenBuffers();
  // Maps the device ring of the loader that has just been attached to; batches of the one before keep theirs.
  Status MapDeviceSlots(const LoaderSocket::Attachment& attachment);
  void ReleaseDeviceSlot(const Arrival& arrival, std::span<const gpu::Stream> users);
  // What the newest iterator has begun is over. REQUIRES: reading_ is held.
  void LetGo();
  bool IsNewest(uint64_t iterator) const { return iterator == newest_iterator_.load(std::memory_order_relaxed); }
  // The number of the iterator that has just been started. REQUIRES: reading_ is held.
  uint64_t Started();
  void StartPrefetch();
  // How often this process is a fork of the first that connected.
  static uint64_t Forks();
  // Whether this is a child of the process that connected. What it has inherited are copies of what is in use there:
  // nothing goes back with them.
  bool IsForked() const { return Forks() != opened_at_; }

  const ConnectPolicy policy_;
  const int replica_;
  LoaderSocket socket_;
  ring::HandshakeReply reply_;
  uint64_t ring_device_ = 0, ring_inode_ = 0;  // tell whether a loader that came back serves the same ring
  // What each Next looks at, together.
  std::atomic<uint64_t> newest_iterator_{0};  // set under reading_
  uint64_t newest_epoch_ = 0;
  std::atomic<headrace_batch*> prepared_{nullptr};  // the newest iterator's next, or null; set under reading_
  std::mutex reading_;                              // of the reader, which is for one thread at a time, but for Release
  bool iterating_ = false;                          // guarded by reading_; the newest iterator is not over
  std::vector<Component> components_;
  std::unique_ptr<ring::RingReader> reader_;
  std::atomic<headrace_batch*> spare_{nullptr};
  const Destination to_;
  uint64_t gone_since_ms_ = 0;  // 0: the loader is there
  const uint64_t opened_at_ = Forks();
  // Of batches that lie in the loader's GPU memory. Slots go back in the ring while the mutex is held, so that none is
  // missed when a loader that has come back brings another memory. Only who calls Next exchanges device_slots_.
  std::mutex slots_mutex_;
  std::shared_ptr<DeviceSlots> device_slots_;
  Status give_back_error_;               // guarded by slots_mutex_
  std::optional<ring::SlotView> early_;  // taken from the ring, and in GPU memory that is not mapped yet
  // In this order: the thread uses the buffers, and these the reader's mapping.
  std::unique_ptr<DeviceBuffers> buffers_;
  // Of the newest iterator, which alone reads the ring while it is there.
  std::unique_ptr<Prefetch> prefetch_;
};

// Asks the loader what it serves, attaching to nothing; waits for it to start.
Result<ring::HandshakeReply> AskLoader(const ConnectPolicy& policy);

}  // namespace headrace::client
