#include "engine/memory/system_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace tt {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

char* map_pages(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

// Maps more than requested and unmaps both ends, so that the result starts on a huge page.
char* map_aligned(size_t bytes) {
  char* begin = map_pages(bytes + kHugePage);
  if (!begin) return nullptr;
  size_t offset = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (offset > 0) munmap(begin, offset);
  munmap(begin + offset + bytes, kHugePage - offset);
  return begin + offset;
}

}  // namespace

bool SystemMemory::has_room(size_t bytes) {
  const Clock::time_point now = Clock::now();
  if (now - read_at_ >= kReadInterval || bytes > room_) {
    const std::optional<HostMemory> host = read_();
    if (!host) return true;
    // Mapped pages that were never written are not resident, but may be written at any time. The process's other
    // memory is taken for written pages, so this is a lower bound.
    const uint64_t mapped = mapped_.load(std::memory_order_relaxed);
    const uint64_t promised = mapped - std::min(mapped, host->resident) + kept_free_memory(host->total);
    room_ = host->available - std::min(host->available, promised);
    read_at_ = now;
  }
  if (bytes > room_) return false;
  room_ -= bytes;
  return true;
}

void* SystemMemory::map(size_t bytes) {
  if (read_ && !has_room(bytes)) return nullptr;
  char* segment = bytes < kHugePage ? map_pages(bytes) : map_aligned(bytes);
  if (!segment) return nullptr;
  if (bytes >= kHugePage) madvise(segment, bytes, MADV_HUGEPAGE);  // fails if the kernel has no huge pages
  mapped_.fetch_add(bytes, std::memory_order_relaxed);
  return segment;
}

void SystemMemory::unmap(void* segment, size_t bytes) {
  munmap(segment, bytes);
  mapped_.fetch_sub(bytes, std::memory_order_relaxed);
}

void SystemMemory::discard(void* p, size_t bytes) { madvise(p, bytes, MADV_DONTNEED); }

std::optional<SystemMemoryInfo> SystemMemory::info() {
  const std::optional<HostMemory> host = read_ ? read_() : std::nullopt;
  if (!host) return std::nullopt;
  return SystemMemoryInfo{host->available, host->total, kept_free_memory(host->total)};
}

}  // namespace tt
