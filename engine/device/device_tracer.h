// DeviceTracer: records when devices executed kernels, copies and fills, and which call launched them.
//
// Implemented by a backend whose devices have such records (CUDA: CUPTI), and used by Profiler. A trace belongs to one
// session; several can run at once. Between traces the tracer records nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tt {

// Times are nanoseconds of the engine's monotonic clock (Profiler::now()). The profile's bytes contain it.
struct DeviceActivity {
  enum Kind : uint16_t {
    kKernel = 0,
    kCopy = 1,
    kFill = 2,
    kCall = 3,  // the host's call that launched one of the above; has the same `correlation`
  };
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;        // of a copy or a fill
  uint32_t launch = 0;       // the number passed to begin_launches()
  uint32_t correlation = 0;  // identifies the call in the device's library
  uint32_t context = 0;
  uint32_t stream = 0;
  uint32_t grid[3] = {};  // of a kernel, as the following members
  uint32_t block[3] = {};
  uint32_t static_shared = 0;   // bytes per block
  uint32_t dynamic_shared = 0;  // bytes per block
  uint32_t name = 0;            // index in DeviceTrace::names
  uint32_t device = 0;
  uint16_t kind = 0;
  uint16_t registers = 0;  // per thread
  uint32_t unused = 0;
};
static_assert(sizeof(DeviceActivity) == 88);

struct DeviceTrace {
  std::vector<DeviceActivity> activities;  // sorted by start
  std::vector<std::string> names;          // of kernels and calls, readable
  uint64_t dropped = 0;                    // records that were lost
  std::string notice;                      // what is missing or less exact, for the user; may be empty
};

class DeviceTracer {
 public:
  virtual ~DeviceTracer() = default;
  // Starts a trace of at most `max_activities` and returns its number, which is not 0. Thread-safe, like all functions
  // of this class. Throws Error (RuntimeError) with the reason if the devices cannot be traced.
  virtual uint32_t start(uint64_t max_activities) = 0;
  // Work that the calling thread launches until the matching end_launches() belongs to launch `launch` of the trace.
  // Calls nest; the innermost one applies.
  virtual void begin_launches(uint32_t trace, uint32_t launch) noexcept = 0;
  virtual void end_launches() noexcept = 0;
  // Ends a trace and returns what was recorded. Requires that the traced work is done. Does not throw.
  virtual DeviceTrace stop(uint32_t trace) = 0;
  // Host memory used by the records of all running traces.
  virtual uint64_t host_bytes() const = 0;
};

// Null if no backend has one.
DeviceTracer* device_tracer();
// Called at start, by a backend. The tracer must outlive all sessions.
void set_device_tracer(DeviceTracer* tracer);

// Sets the trace to which the copies of an account's copy streams belong; 0: none. Thread-safe.
void set_trace_of(const void* account, uint32_t trace);
uint32_t trace_of(const void* account);

// Makes the work that this thread launches part of an account's trace, without an operator. Does nothing if there is no
// trace.
class TracedCopies {
 public:
  explicit TracedCopies(const void* account);
  ~TracedCopies();
  TracedCopies(const TracedCopies&) = delete;
  TracedCopies& operator=(const TracedCopies&) = delete;

 private:
  const bool traced_;
};

}  // namespace tt
