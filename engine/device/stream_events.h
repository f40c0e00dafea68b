// StreamEvents: records events in streams given by their ids.
//
// Caching pools use it because, when a block is freed, the Stream that used the block may no longer exist. Owned by a
// backend; called under the pool's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/device/stream.h"
#include "engine/schema/device.h"

namespace tt {

// Identifies a stream. Stream::id() is unique only within a device.
struct StreamId {
  Device device;
  uintptr_t id = 0;
  friend bool operator==(const StreamId&, const StreamId&) = default;
};

class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // Records an event after all work now queued in `stream`. Returns null if the stream is being captured. Throws Error
  // if the device is lost.
  virtual std::unique_ptr<Event> record(const StreamId& stream) = 0;
};

}  // namespace tt
