// StreamEvents: events in streams known by their ids alone.
//
// A caching pool's: by the time a block is freed, the Stream that used it may be gone. A backend's; called under the
// pool's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/device/stream.h"
#include "engine/schema/device.h"

namespace tt {

// Stream::id() is one device's.
struct StreamId {
  Device device;
  uintptr_t id = 0;
  friend bool operator==(const StreamId&, const StreamId&) = default;
};

class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // After all that is in `stream` by now. Null: not now, since the stream is being captured. Throws Error where the
  // device is lost.
  virtual std::unique_ptr<Event> record(const StreamId& stream) = 0;
};

}  // namespace tt
