// Backend: a device's memory and streams. Owned by Devices; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/stream.h"

namespace tt {

class Allocator;  // memory/allocator.h

// A library that a backend uses.
struct LibraryInfo {
  std::string name;     // "cuDNN"
  std::string version;  // "9.13.0"; empty if not loaded
  std::string missing;  // the loader's error; empty if loaded
};

// The calls of a device library's devices since the engine's start.
struct BackendCalls {
  uint64_t kernels = 0;                                     // executed by a kernel of the library
  uint64_t fallbacks = 0;                                   // executed by the CPU
  std::vector<std::pair<std::string, uint64_t>> operators;  // those most often executed by the CPU
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Allocator& allocator() = 0;
  // Allocates host memory that the device can access directly. For the CPU, this is allocator().
  virtual Allocator& staging() = 0;
  // Pins whole pages of host memory allocated elsewhere, so that they work as staging memory for all devices of this
  // type. Returns false if that is not possible, which is not an error: copies from and to the pages then wait, as with
  // any host memory.
  virtual bool pin(void*, size_t) { return false; }
  // Undoes pin(). Call before the pages are freed; no queued work may use them. Does not throw.
  virtual void unpin(void*) {}
  // The stream for work that belongs to no session.
  virtual Stream& stream() = 0;
  // Leases a stream to one session, or to one direction of copies. Destroying the result returns the stream to the pool
  // after its queued work. Successive sessions reuse streams, and sessions share streams if there are more sessions
  // than streams.
  virtual std::unique_ptr<Stream> lease_stream() = 0;
  // The libraries used so far.
  virtual std::vector<LibraryInfo> libraries() const { return {}; }
  // Free memory of the device in bytes, as the system reports it; 0: unknown.
  virtual uint64_t free_memory() { return 0; }
  // Waits for all work on the device. Throws Error if the work failed.
  virtual void synchronize() = 0;
  // Of a device library; zeros for others.
  virtual BackendCalls calls() const { return {}; }
};

}  // namespace tt
