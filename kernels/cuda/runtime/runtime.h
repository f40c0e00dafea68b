// Runtime: all calls that the backend makes to CUDA.
//
// One instance per process, set before any other use of the backend. For GPUs, it calls cudart and the driver. The
// tests' runtime simulates devices in host memory, implements streams as queues that delay work as long as stream order
// allows, and records every call. Thread-safe. Functions act on the calling thread's current device. They throw Error
// (RuntimeError, "CUDA error: ...") on failure unless stated otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "engine/schema/device.h"

namespace tt::cuda {

struct KernelLaunch;

using StreamHandle = void*;       // cudaStream_t
using EventHandle = void*;        // cudaEvent_t
using GraphHandle = void*;        // cudaGraphExec_t
using PhysicalHandle = uint64_t;  // CUmemGenericAllocationHandle

struct Properties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  uint64_t total_memory = 0;
  int multiprocessors = 0;
  int max_threads_per_block = 1024;
  bool virtual_memory = false;  // whether expandable segments are supported
};

// An executable graph of launches that run in sequence. Not thread-safe. Must outlive the execution of its launches.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  // Replaces launch number `place` by a launch of the same function, starting with the next launch(). Returns false on
  // failure; the graph can then no longer be used.
  virtual bool change(size_t place, const KernelLaunch& launch) = 0;
  virtual void launch(StreamHandle stream) = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Returns 0 if there is no driver, if it is too old, or if there is no device. `why` is then a one-line reason.
  virtual int device_count(std::string* why) = 0;
  virtual Properties properties(int device) = 0;
  virtual std::string driver_version() = 0;
  virtual void set_device(int device) = 0;

  // Memory. The allocation functions return null, without throwing, if memory is exhausted.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* p) noexcept = 0;
  virtual void* allocate_host(size_t bytes) = 0;  // pinned, mapped and portable
  virtual void free_host(void* p) noexcept = 0;
  // Pins host memory that the caller allocated. Returns false, without throwing, if that is not possible.
  virtual bool register_host(void* p, size_t bytes) = 0;
  virtual void unregister_host(void* p) noexcept = 0;  // requires that no pending work uses the memory
  virtual void memory_info(uint64_t* free, uint64_t* total) = 0;

  // Virtual memory: reserved address ranges, to which physical memory is mapped. unmap() requires that no pending work
  // uses the memory.
  virtual size_t granularity() = 0;
  virtual void* reserve(size_t bytes) = 0;  // null: address space exhausted
  virtual void release(void* addresses, size_t bytes) noexcept = 0;
  virtual bool map(void* at, size_t bytes, PhysicalHandle* piece) = 0;  // false: memory exhausted
  virtual void unmap(void* at, size_t bytes, PhysicalHandle piece) noexcept = 0;

  // Streams and events. Streams do not synchronize with the legacy default stream.
  virtual StreamHandle create_stream() = 0;
  virtual void destroy_stream(StreamHandle stream) noexcept = 0;
  virtual void synchronize(StreamHandle stream) = 0;
  virtual void synchronize_device() = 0;
  virtual EventHandle create_event(bool timing) = 0;
  virtual void destroy_event(EventHandle event) noexcept = 0;
  virtual void record(EventHandle event, StreamHandle stream) = 0;
  virtual void wait(StreamHandle stream, EventHandle event) = 0;
  virtual bool done(EventHandle event) = 0;
  virtual void synchronize_event(EventHandle event) = 0;
  virtual float elapsed_ms(EventHandle from, EventHandle to) = 0;

  // Copies and fills. The direction of a copy follows from the addresses.
  virtual void copy(void* to, const void* from, size_t bytes, StreamHandle stream) = 0;
  virtual void fill(void* to, int byte, size_t bytes, StreamHandle stream) = 0;
  // Must be called after each kernel launch. Throws if the launch failed.
  virtual void check_launch() = 0;

  // Creates a graph of launches. Throws Error (RuntimeError) if one of the launches cannot be part of a graph.
  virtual std::unique_ptr<LaunchGraph> make_graph(absl::Span<const KernelLaunch* const> launches) = 0;

  // Captured graphs. Work issued to the stream between begin_capture() and end_capture() is recorded and not executed.
  // end_capture() returns null, and stores the reason in `why`, if some of the work cannot be captured.
  virtual void begin_capture(StreamHandle stream) = 0;
  virtual GraphHandle end_capture(StreamHandle stream, std::string* why) = 0;
  virtual bool is_capturing(StreamHandle stream) = 0;
  virtual void launch(GraphHandle graph, StreamHandle stream) = 0;
  virtual void destroy_graph(GraphHandle graph) noexcept = 0;
};

// Returns the process-wide instance.
Runtime& runtime();
// Returns a device's compute capability, as 89 for 8.9.
int compute_capability(int device);
// Creates an event and records it in the stream. Throws Error as Runtime::record() does, and then leaves no event.
EventHandle record_event(StreamHandle stream, bool timed);
// Makes `device` the calling thread's current device. Cheap if it already is.
void make_current(Device device);
void set_runtime(std::unique_ptr<Runtime> runtime);
// Creates the runtime of cudart and the driver (libraries/), or the tests' runtime.
std::unique_ptr<Runtime> make_runtime();

}  // namespace tt::cuda
