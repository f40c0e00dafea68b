// RangeSource: addresses without memory, and memory that comes and goes under them piece by piece.
//
// For segments that grow in place. Called under the pool's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt {

class RangeSource {
 public:
  virtual ~RangeSource() = default;
  // What one reservation should span: more than there is memory.
  virtual size_t range_bytes() = 0;
  // Null where no addresses are left.
  virtual void* reserve(size_t bytes) = 0;
  virtual void release(void* range, size_t bytes) = 0;  // all pieces are unmapped
  // False where the system has no more.
  virtual bool map(void* at, size_t bytes) = 0;
  // What was mapped so, after what is under way in `stream` (Stream::id()) is done.
  virtual void unmap(void* at, size_t bytes, uintptr_t stream) = 0;
};

}  // namespace tt
