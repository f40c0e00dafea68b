// DeviceWriter: copies bytes to a device's memory as they arrive.
#pragma once

#include "absl/types/span.h"
#include "server/transfer/staging.h"

namespace tt::server {

class DeviceWriter {
 public:
  // Fills `target`, which the copy stream has allocated on a device, starting at byte `begin`. Throws Error.
  DeviceWriter(std::shared_ptr<CopyStream> copy_stream, const Ref<Storage>& target, size_t begin = 0);

  // Writes the next bytes, which must fit. Waits if the device is behind. Throws the device's error.
  void write(absl::Span<const char> bytes);
  // Sends the remaining bytes. The event passes once the device has received everything.
  std::unique_ptr<Event> finish();

 private:
  void send(Staging::Piece& piece);

  Ref<Storage> target_;
  size_t sent_;
  size_t piece_ = 0;  // number of the piece being filled
  Staging staging_;
};

}  // namespace tt::server
