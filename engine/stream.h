// Stream and Event: a device's order of work.
//
// The CPU computes when it is asked to, so its stream is always idle and its events are always
// complete; a CUDA backend implements these over cudaStream_t and cudaEvent_t.
#pragma once

#include <memory>

#include "engine/rules/device.h"

namespace tt {

// A point in a stream. Owned by whoever recorded it.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void synchronize() = 0;  // blocks until done; throws Error if the work failed
};

// Owned by its device; used by one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  virtual std::unique_ptr<Event> record() = 0;
  virtual void wait(const Event& event) = 0;  // later work here starts after `event`
  virtual void synchronize() = 0;
};

}  // namespace tt
