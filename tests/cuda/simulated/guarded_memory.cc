#include "tests/cuda/simulated/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "engine/schema/error.h"

namespace tt::cuda {
namespace {

constexpr size_t kRange = size_t{256} << 30;
constexpr size_t kPage = size_t{2} << 20;  // huge pages: mprotect takes microseconds

std::atomic<uintptr_t> guarded{0};  // start of the range, for the signal handler
std::atomic<bool> opened{false};
struct sigaction other_handler;

size_t whole_pages(size_t bytes, size_t page) { return (bytes + page - 1) / page * page; }
size_t whole_pages(size_t bytes) { return whole_pages(bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE))); }

// Async-signal-safe.
void write_to_stderr(const char* what, uintptr_t address) {
  char digits[19] = "0x", *to = digits + 2;
  for (int shift = 60; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[address >> shift & 15];
  *to = '\n';
  static_cast<void>(!write(STDERR_FILENO, what, strlen(what)));
  static_cast<void>(!write(STDERR_FILENO, digits, sizeof digits));
}

// Restores the previous handler: after the return the instruction faults again.
void report_segmentation_fault(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (address - guarded < kRange) {
    write_to_stderr(opened ? "device code touched unallocated memory at " : "host code touched device memory at ",
                    address);
    signal(SIGSEGV, SIG_DFL);
  } else {
    sigaction(SIGSEGV, &other_handler, nullptr);
  }
}

}  // namespace

GuardedMemory::GuardedMemory() {
  void* range = mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(range != MAP_FAILED, "cannot reserve addresses for simulated devices");
  madvise(range, kRange, MADV_HUGEPAGE);
  range_ = static_cast<char*>(range);
  guarded = reinterpret_cast<uintptr_t>(range);
  struct sigaction handler {};
  handler.sa_sigaction = &report_segmentation_fault;
  handler.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &handler, &other_handler);
}

GuardedMemory::~GuardedMemory() {
  sigaction(SIGSEGV, &other_handler, nullptr);
  munmap(range_, kRange);
}

char* GuardedMemory::reserve(size_t bytes) {
  char* at = reinterpret_cast<char*>(whole_pages(reinterpret_cast<uintptr_t>(range_), kPage));
  for (const auto& [begin, size] : reserved_) {  // first fit
    if (static_cast<size_t>(begin - at) >= bytes) break;
    at = begin + whole_pages(size, kPage);
  }
  if (at + bytes > range_ + kRange) return nullptr;
  reserved_[at] = bytes;
  return at;
}

void GuardedMemory::release(char* addresses) { reserved_.erase(addresses); }

void GuardedMemory::add(char* at, size_t bytes) {
  mprotect(at, whole_pages(bytes), PROT_READ | PROT_WRITE);
  std::memset(at, 0xa5, bytes);
  pieces_[at] = bytes;
  if (!is_open_) mprotect(at, whole_pages(bytes), PROT_NONE);
}

void GuardedMemory::remove(char* at, size_t bytes) {
  madvise(at, whole_pages(bytes), MADV_DONTNEED);
  mprotect(at, whole_pages(bytes), PROT_NONE);
  pieces_.erase(at);
}

// Adjacent blocks are protected in one call.
void GuardedMemory::protect(bool open) {
  is_open_ = opened = open;
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    char *const begin = piece->first, *end = begin;
    for (; piece != pieces_.end() && piece->first == end; ++piece) end += whole_pages(piece->second);
    mprotect(begin, static_cast<size_t>(end - begin), open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

}  // namespace tt::cuda
