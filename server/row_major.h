// RowMajor: a tensor's elements as bytes in logical order, read piece by piece.
//
// Holds the storage, not the tensor: it may outlive the handle and be read from another thread. Bytes that the session
// writes meanwhile are seen as they happen to be; a client that wants a consistent picture waits before it writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor.h"

namespace tt::server {

class RowMajor {
 public:
  // Requires a tensor on the CPU.
  explicit RowMajor(const Tensor& tensor);

  size_t bytes() const { return bytes_; }
  size_t left() const { return bytes_ - done_; }
  // Copies the next bytes, `size` or what is left; gives how many. `size` is a multiple of the item size.
  size_t read(char* into, size_t size);

 private:
  void gather(char* into, size_t items);

  Ref<Storage> storage_;
  const char* data_;
  size_t item_;
  size_t bytes_;
  size_t done_ = 0;
  bool contiguous_;
  Sizes sizes_;
  Sizes strides_;
  Sizes index_;  // of the next element, where not contiguous
};

}  // namespace tt::server
