// Runtime: the calls that the backend makes into CUDA, and no others.
//
// One a process, set before anything else of the backend runs. The real one wraps cudart and the driver; the tests'
// simulates devices in host memory, keeps streams as queues whose work is put off as long as their order allows, and
// records every call. Thread-safe. Everything throws Error (RuntimeError, "CUDA error: ...") unless it says else; calls
// act on the calling thread's current device.
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
  bool virtual_memory = false;  // whether expandable segments work
};

// An executable graph of launches, each after the one before. Not thread-safe. Must outlive the execution of its
// launches.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  // Replaces the launch at `place`, of the same function, from the next launch() on. Returns false if that fails; the
  // graph cannot be used then.
  virtual bool change(size_t place, const KernelLaunch& launch) = 0;
  virtual void launch(StreamHandle stream) = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // 0 where there is no driver, it is too old, or there is no device; `why` then says which, in a line.
  virtual int device_count(std::string* why) = 0;
  virtual Properties properties(int device) = 0;
  virtual std::string driver_version() = 0;
  virtual void set_device(int device) = 0;

  // Memory. Null, and nothing else, where there is none left.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* p) noexcept = 0;
  virtual void* allocate_host(size_t bytes) = 0;  // pinned, mapped and portable
  virtual void free_host(void* p) noexcept = 0;
  // Somebody else's host memory as if it were allocate_host()'s. False, and nothing else, where it cannot be.
  virtual bool register_host(void* p, size_t bytes) = 0;
  virtual void unregister_host(void* p) noexcept = 0;  // when nothing under way uses it
  virtual void memory_info(uint64_t* free, uint64_t* total) = 0;

  // Virtual memory: addresses reserved once, physical pieces mapped in, and out when nothing under way uses them.
  virtual size_t granularity() = 0;
  virtual void* reserve(size_t bytes) = 0;  // null: none left
  virtual void release(void* addresses, size_t bytes) noexcept = 0;
  virtual bool map(void* at, size_t bytes, PhysicalHandle* piece) = 0;  // false: no memory left
  virtual void unmap(void* at, size_t bytes, PhysicalHandle piece) noexcept = 0;

  // Order. Streams do not wait for the legacy default stream.
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

  // Copies and fills. Whether an address is the host's or a device's is inferred from it.
  virtual void copy(void* to, const void* from, size_t bytes, StreamHandle stream) = 0;
  virtual void fill(void* to, int byte, size_t bytes, StreamHandle stream) = 0;
  // After a kernel launch: throws what was wrong with it.
  virtual void check_launch() = 0;

  // Throws Error (RuntimeError) if one of the launches cannot be part of a graph.
  virtual std::unique_ptr<LaunchGraph> make_graph(absl::Span<const KernelLaunch* const> launches) = 0;

  // Captured graphs. What is issued to the stream between begin and end is kept instead of done; end gives null, and
  // `why`, where something among it cannot be kept.
  virtual void begin_capture(StreamHandle stream) = 0;
  virtual GraphHandle end_capture(StreamHandle stream, std::string* why) = 0;
  virtual bool is_capturing(StreamHandle stream) = 0;
  virtual void launch(GraphHandle graph, StreamHandle stream) = 0;
  virtual void destroy_graph(GraphHandle graph) noexcept = 0;
};

// The process's.
Runtime& runtime();
// Makes `device` the calling thread's; cheap where it is already.
void make_current(Device device);
void set_runtime(std::unique_ptr<Runtime> runtime);
// cudart's and the driver's (libraries/), or the tests'.
std::unique_ptr<Runtime> make_runtime();

}  // namespace tt::cuda
