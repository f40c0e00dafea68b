// BlockSource: a contiguous tensor whose elements are computed where they are read.
#pragma once

#include <cstdint>

namespace tt::cpu {

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Writes elements [first, first + n), in row-major order, to `to`. Several threads may read at a time, but each
  // element is read once.
  virtual void read(int64_t first, int64_t n, void* to) const = 0;
};

}  // namespace tt::cpu
