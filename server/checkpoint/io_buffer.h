// IoBuffer: memory for reads and writes without the page cache.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "engine/schema/error.h"

namespace tt::server {

struct FreeIoBuffer {
  void operator()(char* buffer) const { std::free(buffer); }
};
using IoBuffer = std::unique_ptr<char, FreeIoBuffer>;

// The alignment of buffers and of their sizes. Disks get the addresses of the pages; with small pages, a request of
// some megabytes exceeds the number of addresses that a request may have, and is divided.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Throws Error (OutOfMemoryError). The contents are not initialized.
inline IoBuffer allocate_io_buffer(size_t bytes) {
  IoBuffer buffer(static_cast<char*>(std::aligned_alloc(kHugePageBytes, bytes)));
  check(ErrorKind::kOutOfMemory, buffer != nullptr, "out of memory on the host");
  static_cast<void>(madvise(buffer.get(), bytes, MADV_HUGEPAGE));  // only a hint
  return buffer;
}

}  // namespace tt::server
