// ByteSource: a tensor's elements as bytes in logical order, read piece by piece.
#pragma once

#include <cstddef>

namespace tt::server {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t bytes() const = 0;
  virtual size_t left() const = 0;
  // Copies the next bytes, `size` or what is left; gives how many. `size` is a multiple of the item size. Throws Error
  // where the device that has them fails.
  virtual size_t read(char* into, size_t size) = 0;
};

}  // namespace tt::server
