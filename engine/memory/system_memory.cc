#include "engine/memory/system_memory.h"

#include <sys/mman.h>

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

void* SystemMemory::map(size_t bytes) {
  if (bytes < kHugePage) return map_pages(bytes);
  char* segment = map_aligned(bytes);
  if (segment) madvise(segment, bytes, MADV_HUGEPAGE);  // best effort: fails if the kernel has no huge pages
  return segment;
}

void SystemMemory::unmap(void* segment, size_t bytes) { munmap(segment, bytes); }

}  // namespace tt
