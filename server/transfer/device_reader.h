// DeviceReader: a ByteSource that reads a device tensor. The device writes directly to pinned memory, or to staging
// pieces that are fetched ahead of the reader.
#pragma once

#include "engine/tensor/tensor.h"
#include "server/transfer/byte_source.h"
#include "server/transfer/staging.h"

namespace tt::server {

class DeviceReader final : public ByteSource {
 public:
  // Keeps `tensor`, which must be contiguous, on a device and already computed. Throws Error.
  DeviceReader(std::shared_ptr<CopyStream> copy_stream, const Tensor& tensor);
  ~DeviceReader() override;  // waits for copies in progress

  size_t bytes() const override { return bytes_; }
  size_t left() const override { return bytes_ - read_; }
  size_t read(char* into, size_t size) override;
  void skip(size_t size) override { read_ = staged_ = size; }
  std::optional<Device> device() const override { return tensor_.device(); }
  std::unique_ptr<Event> fetch(char* into, size_t size) override;

 private:
  void stage(Staging::Piece& piece);

  const std::shared_ptr<CopyStream> copy_stream_;
  Tensor tensor_;
  const size_t bytes_;
  size_t read_ = 0;
  size_t staged_ = 0;               // bytes staged, including copies in progress
  size_t piece_ = 0;                // number of the piece being read
  size_t offset_ = 0;               // position in that piece
  std::optional<Staging> staging_;  // created by the first read()
};

}  // namespace tt::server
