// HostReader: a ByteSource that reads a CPU tensor in row-major order.
//
// Holds the storage, not the tensor, so it may outlive the handle and be read from another thread. Concurrent writes of
// the session may or may not be visible; a client that needs consistent data waits before it writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/tensor.h"
#include "server/transfer/byte_source.h"

namespace tt::server {

class HostReader final : public ByteSource {
 public:
  // Requires a tensor on the CPU.
  explicit HostReader(const Tensor& tensor);

  size_t bytes() const override { return bytes_; }
  size_t left() const override { return bytes_ - done_; }
  size_t read(char* into, size_t size) override;
  void skip(size_t size) override;

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
  Sizes index_;  // index of the next element; unused if contiguous
};

}  // namespace tt::server
