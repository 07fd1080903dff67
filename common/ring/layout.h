// The bytes of a ring: the file of memory through which one loader hands batches to one replica.
//
//   page 0         RingHeader                        counters on cache lines of their own
//   page 1..       uint32 free_slots[slot_count]     the slots that the client gave back, in that order
//   ...            SlotDescriptor[slot_count]        each followed by its component_count ComponentExtents
//   data           slot_count slots of slot_stride bytes, each aligned to pages; tensors and row splits aligned to 64
//
// Where the loader fills a ring in GPU memory, too (sidecar/device/device_ring.h), that has as many slots. They are
// laid out as those here, or by themselves, if the GPU makes tensors of what lies here.
//
// `published` and `released` are absolute 64-bit counters: of batches published, which the loader alone writes, and of
// slots given back, which the client alone writes. Descriptor n % slot_count is that of batch n and says in which slot
// it lies: slot n for n < slot_count, else the slot in entry (n - slot_count) % slot_count of free_slots. The slot
// belongs to the loader until `published` passes n, and to the trainer until it is given back, in whatever order; so a
// batch that is kept for long costs one slot and stops nothing. A side that must wait sets its waiting flag, rechecks,
// and sleeps by futex on the low 32 bits of the other side's counter; it is woken once a batch at the most, never once
// a record.
//
// A client that attaches finds out which batches its predecessor had not given back and gets them again, but for those
// whose descriptor has been used anew since: their slots go back to the loader.
//
// Files outlive both processes (whole-pod restarts keep an emptyDir): magic, version, plan hash and geometry are
// compared before anything else is believed.
//
// Epochs: each iterator of the client reads the epoch after the one before it. The loader publishes an epoch's batches,
// then a descriptor with kEndOfEpoch and no data, and goes on with the next epoch. When the client starts an iterator
// before the end of the last one's epoch, it releases what it finds of older epochs unread, and the loader abandons the
// old epoch at the next step, for all replicas of the worker together.
//
// Seeks: an iterator may start anywhere else: in the middle of an epoch, in one that is over, and in the order of
// another run (`start_seed` seeds the shuffles that have none). The client counts `seeks` up. The loader writes into
// each descriptor the last seek that it followed; the client releases all with an older one unread.
//
// What the client asks for is several words, so it makes `request_version` odd while it writes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headrace::ring {

inline constexpr char kMagic[8] = {'H', 'D', 'R', 'C', 'R', 'I', 'N', 'G'};
inline constexpr uint32_t kLayoutVersion = 5;
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kTensorAlign = 64;
inline constexpr size_t kMaxErrorBytes = 2048;
inline constexpr int kMaxComponents = 256;
inline constexpr int kMaxDims = 10;  // of one component: eight of a record, and two of batch() calls

enum SlotFlags : uint32_t {
  kEndOfEpoch = 1,  // no data: the epoch is over
  // The last step of an epoch of one worker that not every replica has data for, where all shapes are static:
  // next() ends before it, get_next_as_optional() delivers it (conformance rule "Replicas").
  kPartialStep = 2,
};

// A place in the order of a run.
struct Position {
  uint64_t epoch = 0;
  uint64_t step = 0;  // the next one to be read
  uint64_t seed = 0;  // of shuffles without a seed of their own; 0: as the loader's run id has it
  bool operator==(const Position&) const = default;
};

// Where one component's tensor lies in its slot, and its shape; row-major.
//
// The rows of a component of variable length lie one after another, without gaps, and int64 row_splits[rows + 1] say
// where each begins: the first is 0, the last the number of all. They count
//   of a string          bytes; dims are those of the strings (none: one string), and each string is a row
//   of a ragged tensor   values of the shape dims[2..]; dims[0] is the number of rows and dims[1] is -1
struct ComponentExtent {
  uint64_t offset;  // of the values, from the slot's first byte
  uint64_t bytes;   // of all values
  uint64_t ndim;
  int64_t dims[kMaxDims];
  // Of row_splits, from the slot's first byte. 0: there are none, all rows have one length; so row_splits never lie at
  // the first byte, also where a batch has no rows and its values no bytes.
  uint64_t splits_offset = 0;
  // Where the tensor lies in the GPU's slot, if those are laid out by themselves. `dims` are those of the tensor there,
  // and `bytes` those that it is made of.
  uint64_t device_offset = 0;
  uint64_t device_bytes = 0;

  bool operator==(const ComponentExtent&) const = default;
};

struct SlotDescriptor {
  uint64_t epoch;
  uint64_t step;   // within the epoch, from 0
  uint64_t rows;   // records in this replica's batch; 0 for a batch without data
  uint64_t flags;  // SlotFlags
  uint64_t seed;   // of the shuffles without a seed of their own, when this batch was made
  uint64_t seeks;  // RingHeader::seeks when the loader last followed it
  uint64_t slot;   // where the batch lies; RingWriter::Publish sets it
  // Where the slot's copy in GPU memory lies: RingHeader::generation of the loader that made it. 0: there is none.
  uint64_t device_ring;
};
static_assert(sizeof(SlotDescriptor) == 64);

struct RingHeader {
  char magic[8];
  uint32_t version;
  uint32_t component_count;
  char plan_hash[24];   // NUL-terminated
  uint64_t generation;  // incremented by each loader that takes the ring over
  uint64_t file_bytes;
  uint64_t slot_count;
  uint64_t slot_stride;  // bytes from slot to slot, a multiple of kPageBytes
  uint64_t descriptor_offset;
  uint64_t descriptor_stride;
  uint64_t data_offset;
  uint64_t device_slot_stride;  // of slots in GPU memory that are laid out by themselves; 0: there are none such
  uint32_t num_workers, worker_index, replicas_per_worker, replica;

  // Written by the loader.
  alignas(64) std::atomic<uint64_t> published;
  std::atomic<uint32_t> loader_waiting;  // 1 while the loader sleeps for a free slot (futex on `released`)
  std::atomic<uint32_t> failed;          // 1: `error` is valid, no more batches will come
  std::atomic<uint64_t> loader_wait_ns;  // time the loader was blocked by a full ring

  // Written by the client.
  alignas(64) std::atomic<uint64_t> released;
  std::atomic<uint32_t> client_waiting;  // 1 while a client sleeps for a batch (futex on `published`)
  std::atomic<uint32_t> client_pid;      // of the attached client, in its own PID namespace; 0: none. For messages only
  std::atomic<uint64_t> request_version;  // odd: the six words after it are being written
  std::atomic<uint64_t> iterations;       // iterators started so far
  std::atomic<uint64_t> epoch;            // that the newest of them reads
  std::atomic<uint64_t> seeks;            // of them, those that started elsewhere than at the next epoch
  std::atomic<uint64_t> start_step;       // of the last seek, and its epoch and seed
  std::atomic<uint64_t> start_epoch;
  std::atomic<uint64_t> start_seed;
  std::atomic<uint64_t> trainer_wait_ns;  // time next() was blocked by an empty ring
  std::atomic<uint64_t> batches_read;
  std::atomic<uint64_t> batches_wanted;  // the first batch that next() found missing has this number, less one

  alignas(64) char error[kMaxErrorBytes];  // "Code: message", NUL-terminated
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(RingHeader) <= kPageBytes);
static_assert(offsetof(RingHeader, published) % 64 == 0 && offsetof(RingHeader, released) % 64 == 0);

}  // namespace headrace::ring
