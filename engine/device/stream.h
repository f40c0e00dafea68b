// Stream and Event: a device's order of work.
//
// The CPU computes when it is asked to, so its stream is always idle and its events are always
// complete; a CUDA backend implements these over cudaStream_t and cudaEvent_t.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/schema/device.h"
#include "engine/schema/error.h"

namespace tt {

// A point in a stream. Owned by whoever recorded it.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void synchronize() = 0;  // blocks until done; throws Error if the work failed
  // Between two events of one device that keep the time and are done. Throws Error on others.
  virtual double elapsed_ms(const Event&) const { fail(ErrorKind::kRuntime, "the event keeps no time"); }
};

// Work of a stream, kept to be done again as one. Owned by whoever captured it.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;  // in the order of the stream that it was captured in
};

// How much of a stream's work was a repetition, done as one. Counts since the stream was made.
struct ReplayCounts {
  uint64_t graphs = 0;    // that are kept now
  uint64_t replays = 0;   // of graphs
  uint64_t launches = 0;  // that were replayed instead of issued one by one
  uint64_t changed = 0;   // of those, with other parameters than the time before
  std::string refusal;    // the last reason why something that repeats is issued one by one; empty: none
};

// Owned by its device, or by who leased it; used by one thread at a time, except where it says else.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // What memory pools tell streams apart by; stays the same from lease to lease. 0 for the CPU's.
  virtual uintptr_t id() const { return 0; }
  virtual std::unique_ptr<Event> record() = 0;                        // any thread
  virtual std::unique_ptr<Event> record_timed() { return record(); }  // the event keeps the time, where the device can
  virtual void wait(const Event& event) = 0;                          // later work here starts after `event`
  virtual void synchronize() = 0;
  // In this stream's order: bytes between the host and the device, either way, or within the device.
  // The host's must stay until the work is done: they are used when their turn comes where they lie
  // in the backend's staging memory or in pinned pages, and at once, waiting, where not.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // In this stream's order: zeros over memory of its device. May be captured.
  virtual void zero(void* p, size_t bytes) = 0;
  // What comes now may repeat what came after the last mark.
  virtual void mark() {}
  virtual ReplayCounts replays() const { return {}; }
  // From here on what is issued is kept instead of done; record(), wait(), synchronize() and copy() throw meanwhile.
  // Throws Error (NotImplementedError) where a device has no graphs.
  virtual void begin_capture() { fail(ErrorKind::kNotImplemented, "graphs are not implemented for ", device()); }
  // Throws Error that says why, where what was issued cannot be kept.
  virtual std::unique_ptr<Graph> end_capture() { return nullptr; }
};

}  // namespace tt
