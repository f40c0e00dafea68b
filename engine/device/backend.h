// Backend: what a device computes with: its memory and its streams. Owned by Devices; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/stream.h"

namespace tt {

class Allocator;  // memory/allocator.h

// A library that a backend computes with.
struct LibraryInfo {
  std::string name;     // "cuDNN"
  std::string version;  // "9.13.0"; empty where it is missing
  std::string missing;  // why, as the loader says it; empty where the library is there
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Allocator& allocator() = 0;
  // Host memory that the device reads and writes by itself. The CPU's is its allocator.
  virtual Allocator& staging() = 0;
  // Makes whole pages of somebody else's host memory as good as staging memory, for all devices of this one's kind.
  // False where that cannot be, which is no error: copies from and to them wait, as with any host memory.
  virtual bool pin(void*, size_t) { return false; }
  // What pin() made true, before the pages go; nothing under way may use them any more. Does not throw.
  virtual void unpin(void*) {}
  // The order of all work that no session asked for.
  virtual Stream& stream() = 0;
  // A stream for one session, or for one direction of copies; goes back when it is dropped, after what
  // is under way in it. Streams are many sessions' in turn, and may be two sessions' at once where there
  // are more sessions than streams.
  virtual std::unique_ptr<Stream> lease_stream() = 0;
  // Those that something has needed so far.
  virtual std::vector<LibraryInfo> libraries() const { return {}; }
  // What the system could still give, to anybody; 0: not known.
  virtual uint64_t free_memory() { return 0; }
  // Blocks until the device has done everything. Throws Error where it failed.
  virtual void synchronize() = 0;
};

}  // namespace tt
