#include "sidecar/source/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace headrace::side {
namespace {

struct sigaction before;
uintptr_t page_bytes = 0;
// Counted before the zeros are there to be read.
std::atomic<uint64_t> failures{0};
thread_local bool allowed = false;

}  // namespace

// Where a file is mapped, or was: what the signal's handler looks through is never freed.
struct MappedFile::Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  std::atomic<bool> mapped{true};
  Range* next = nullptr;
  static inline std::atomic<Range*> all{nullptr};
};

void MappedFile::OnBusError(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Range* range = info->si_code > 0 ? Range::all.load() : nullptr; range != nullptr; range = range->next) {
    if (address < range->begin || address >= range->end || !range->mapped) continue;
    failures.fetch_add(1);
    void* const page = reinterpret_cast<void*>(address / page_bytes * page_bytes);
    if (mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) return;
    break;
  }
  sigaction(SIGBUS, &before, nullptr);
  if (info->si_code <= 0) raise(SIGBUS);  // somebody sent it; an access happens again when we return
}

std::unique_ptr<MappedFile> MappedFile::Map(int fd, uint64_t size) {
  static const bool guarded = [] {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &before) == 0;
  }();
  if (!guarded || size == 0) return nullptr;
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<MappedFile>(new MappedFile(static_cast<const uint8_t*>(memory), size));
}

MappedFile::MappedFile(const uint8_t* memory, uint64_t size)
    : memory_(memory),
      readable_bytes_((size + page_bytes - 1) / page_bytes * page_bytes),
      failures_before_(failures.load()),
      range_(new Range) {
  range_->begin = reinterpret_cast<uintptr_t>(memory);
  range_->end = range_->begin + readable_bytes_;
  range_->next = Range::all.load();
  while (!Range::all.compare_exchange_weak(range_->next, range_)) {
  }
}

MappedFile::~MappedFile() {
  range_->mapped = false;
  munmap(const_cast<uint8_t*>(memory_), readable_bytes_);
}

bool MappedFile::whole() const { return failures.load() == failures_before_; }

bool MappedFile::Copy(uint64_t offset, std::span<uint8_t> out) const {
  std::memcpy(out.data(), memory_ + offset, out.size());
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return whole();
}

MappedReads::MappedReads() : failures_before_(failures.load()) { allowed = true; }
MappedReads::~MappedReads() { allowed = false; }

bool MappedReads::failed() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return failures.load() != failures_before_;
}

bool MappedReads::Allowed() { return allowed; }

}  // namespace headrace::side
