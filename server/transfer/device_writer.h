// DeviceWriter: bytes as they arrive, on their way to a device's memory.
#pragma once

#include "absl/types/span.h"
#include "server/transfer/staging.h"

namespace tt::server {

class DeviceWriter {
 public:
  // Fills `target`, which the lane has allocated on a device, from byte `begin` on. Throws Error.
  DeviceWriter(std::shared_ptr<CopyStream> lane, const Ref<Storage>& target, size_t begin = 0);

  // The next bytes, no more than there is room for. Waits where the device is behind; throws what it failed with.
  void write(absl::Span<const char> bytes);
  // Sends what is left. The event is passed once the device has everything.
  std::unique_ptr<Event> finish();

 private:
  void send(Staging::Piece& piece);

  Ref<Storage> target_;
  size_t sent_;
  size_t piece_ = 0;  // the one that is filled
  Staging staging_;
};

}  // namespace tt::server
