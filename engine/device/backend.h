// Backend: a device's memory and streams. Owned by Devices; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
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

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Allocator& allocator() = 0;
  // Host memory that the device can access directly. The CPU's is its allocator.
  virtual Allocator& staging() = 0;
  // Pins whole pages of host memory allocated elsewhere, so that they work as staging memory for all devices of this
  // type. Returns false if that is not possible, which is not an error: copies from and to the pages then wait, as with
  // any host memory.
  virtual bool pin(void*, size_t) { return false; }
  // Undoes pin(). Call before the pages are freed; no queued work may use them. Does not throw.
  virtual void unpin(void*) {}
  // The stream for work that belongs to no session.
  virtual Stream& stream() = 0;
  // Returns a stream for one session, or for one direction of copies; it is returned to the pool when destroyed, after
  // its queued work. Successive sessions reuse streams, and sessions share streams if there are more sessions than
  // streams.
  virtual std::unique_ptr<Stream> lease_stream() = 0;
  // The libraries used so far.
  virtual std::vector<LibraryInfo> libraries() const { return {}; }
  // The bytes that the system has free for any process; 0: unknown.
  virtual uint64_t free_memory() { return 0; }
  // Waits for all work on the device. Throws Error if the work failed.
  virtual void synchronize() = 0;
};

}  // namespace tt
