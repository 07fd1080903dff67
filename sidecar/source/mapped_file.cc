#include "sidecar/source/mapped_file.h"

#include <sys/mman.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>

namespace headrace::side {
namespace {

// Where the thread's copy, if it is in one, goes on if it fails.
thread_local sigjmp_buf* volatile copying = nullptr;
struct sigaction before;

void OnBusError(int, siginfo_t* info, void*) {
  // From within a copy, which holds no lock and has nothing to clean up.
  if (copying != nullptr) siglongjmp(*copying, 1);
  sigaction(SIGBUS, &before, nullptr);
  if (info->si_code <= 0) raise(SIGBUS);  // somebody sent it; an access happens again when we return
}

bool TakeOverBusErrors() {
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  // The handler is left by a jump, after which the next one must still arrive.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &before) == 0;
}

}  // namespace

std::unique_ptr<MappedFile> MappedFile::Map(int fd, uint64_t size) {
  static const bool guarded = TakeOverBusErrors();
  if (!guarded || size == 0) return nullptr;
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<MappedFile>(new MappedFile(static_cast<const uint8_t*>(memory), size));
}

MappedFile::~MappedFile() { munmap(const_cast<uint8_t*>(memory_), size_); }

bool MappedFile::Copy(uint64_t offset, std::span<uint8_t> out) const {
  sigjmp_buf failed;
  if (sigsetjmp(failed, 0) != 0) {
    copying = nullptr;
    return false;
  }
  copying = &failed;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(out.data(), memory_ + offset, out.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copying = nullptr;
  return true;
}

}  // namespace headrace::side
