// ByteSource: a tensor's elements as bytes in logical order, read in pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "engine/device/stream.h"

namespace tt::server {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t bytes() const = 0;
  virtual size_t left() const = 0;
  // Copies the next `size` bytes, or left() bytes if that is less, and returns the number of bytes copied. `size` is a
  // multiple of the item size. Throws Error if the device that stores the bytes fails.
  virtual size_t read(char* into, size_t size) = 0;
  // Skips the first `size` bytes, a multiple of the item size and at most bytes(). Call before the first read.
  virtual void skip(size_t size) = 0;

  // Returns the device that can write the bytes into pinned memory directly; none if the bytes are on the CPU.
  virtual std::optional<Device> device() const { return std::nullopt; }
  // Used instead of read() if device() is set: the device writes the next `size` bytes, at most left(), into pinned
  // memory, which must stay valid until the event has passed. Throws Error.
  virtual std::unique_ptr<Event> fetch(char* /*into*/, size_t /*size*/) { return nullptr; }
};

}  // namespace tt::server
