// DeviceReader: a device's tensor as a ByteSource: written by the device where it is wanted, or staged in pieces that
// are fetched ahead of whoever reads.
#pragma once

#include "engine/tensor/tensor.h"
#include "server/transfer/byte_source.h"
#include "server/transfer/staging.h"

namespace tt::server {

class DeviceReader final : public ByteSource {
 public:
  // Requires a contiguous tensor on a device, which it keeps, and that the device has computed it. Throws Error.
  DeviceReader(std::shared_ptr<CopyStream> lane, const Tensor& tensor);
  ~DeviceReader() override;  // waits for what is being fetched

  size_t bytes() const override { return bytes_; }
  size_t left() const override { return bytes_ - read_; }
  size_t read(char* into, size_t size) override;
  void skip(size_t size) override { read_ = staged_ = size; }
  std::optional<Device> device() const override { return tensor_.device(); }
  std::unique_ptr<Event> fetch(char* into, size_t size) override;

 private:
  void stage(Staging::Piece& piece);

  const std::shared_ptr<CopyStream> lane_;
  Tensor tensor_;
  const size_t bytes_;
  size_t read_ = 0;
  size_t staged_ = 0;               // or on its way
  size_t piece_ = 0;                // the one that is read,
  size_t offset_ = 0;               // from here
  std::optional<Staging> staging_;  // made at the first read()
};

}  // namespace tt::server
