// Stream and Event: ordered asynchronous work on a device.
//
// The CPU executes work synchronously, so its stream is always idle and its events are always complete; a CUDA backend
// implements these over cudaStream_t and cudaEvent_t.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/schema/device.h"
#include "engine/schema/error.h"

namespace tt {

// A point in a stream. Owned by the caller of record().
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void synchronize() = 0;  // blocks until done; throws Error if the work failed
  // Time from the argument to this event. Requires two completed timed events of one device; throws Error otherwise.
  virtual double elapsed_ms(const Event&) const { fail(ErrorKind::kRuntime, "the event was not recorded with timing"); }
};

// A stream's work, captured for repeated execution. Owned by the caller of end_capture().
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;  // runs the work in the order of the capturing stream
};

// How much of a stream's work was repeated and replayed as graphs, counted since the stream was created.
struct ReplayCounts {
  uint64_t graphs = 0;    // graphs that are cached now
  uint64_t replays = 0;   // number of graph replays
  uint64_t launches = 0;  // launches replayed instead of issued one by one
  uint64_t changed = 0;   // replayed launches whose parameters differ from the previous replay
  std::string refusal;    // the last reason why repeated work was not replayed; empty if there is none
};

// Owned by its device or by the holder of its lease. Used by one thread at a time unless stated otherwise.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // Identifies the stream to memory pools; stays the same across leases. 0 for the CPU's.
  virtual uintptr_t id() const { return 0; }
  virtual std::unique_ptr<Event> record() = 0;                        // any thread
  virtual std::unique_ptr<Event> record_timed() { return record(); }  // records with timing if the device supports it
  virtual void wait(const Event& event) = 0;                          // later work in this stream starts after `event`
  virtual void synchronize() = 0;
  // Copies bytes between the host and the device, in either direction, or within the device, in this stream's order.
  // Host memory must stay valid until the copy is done: the copy is asynchronous if the host memory is staging memory
  // of the backend or pinned, and otherwise waits.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Writes zeros to memory of the device, in this stream's order. May be captured.
  virtual void zero(void* p, size_t bytes) = 0;
  // Marks a boundary in the stream's work: the work after this mark may repeat the work since the previous mark.
  virtual void mark() {}
  virtual ReplayCounts replays() const { return {}; }
  // Starts a capture: work issued from now on is recorded instead of executed; meanwhile record(), wait(),
  // synchronize() and copy() throw. Throws Error (NotImplementedError) if the device does not support graphs.
  virtual void begin_capture() { fail(ErrorKind::kNotImplemented, "graphs are not implemented for ", device()); }
  // Throws Error with the reason if the recorded work cannot be captured.
  virtual std::unique_ptr<Graph> end_capture() { return nullptr; }
};

}  // namespace tt
