// ByteSource: a tensor's elements as bytes in logical order, read piece by piece.
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
  // Copies the next bytes, `size` or what is left; gives how many. `size` is a multiple of the item size. Throws Error
  // where the device that has them fails.
  virtual size_t read(char* into, size_t size) = 0;
  // Leaves out the first `size` bytes, a multiple of the item size and no more than there are. Before any is read.
  virtual void skip(size_t size) = 0;

  // The device that writes the bytes into pinned memory by itself, where one has them.
  virtual std::optional<Device> device() const { return std::nullopt; }
  // There alone, and instead of read(): the device writes the next `size` bytes, no more than are left, into pinned
  // memory, which must stay until the event has passed. Throws Error.
  virtual std::unique_ptr<Event> fetch(char* /*into*/, size_t /*size*/) { return nullptr; }
};

}  // namespace tt::server
