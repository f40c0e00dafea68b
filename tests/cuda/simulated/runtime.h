// SimulatedRuntime: CUDA devices simulated in host memory, to test the backend without a GPU.
//
// Streams are queues. Work is deferred until a caller waits for it, as far as events and streams allow, so that a
// missing wait gives a wrong value; freeing memory waits for the device, as in CUDA. Faults can be injected: a failed
// allocation, a failed kernel, a lost device. All calls are recorded. Host code that touches device memory ends the
// process (guarded_memory.h). Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/runtime/runtime.h"
#include "tests/cuda/simulated/cupti.h"
#include "tests/cuda/simulated/guarded_memory.h"

namespace tt::cuda {

class SimulatedRuntime final : public Runtime {
 public:
  struct Options {
    int devices = 2;
    uint64_t memory = uint64_t{1} << 30;  // per device
    bool eager = false;                   // runs work immediately: faster, for tests that do not depend on order
    std::string losses;                   // a folder; if it contains a file "lost-1", device 1 is lost
    bool refuses_pinning = false;         // refuses to pin memory that it did not allocate
  };
  SimulatedRuntime() : SimulatedRuntime(Options()) {}
  explicit SimulatedRuntime(Options options);
  ~SimulatedRuntime() override;

  // Faults to inject, and queries.
  void fail_next_kernel(std::string why);  // reported by the next wait; the device stays usable
  void lose_device(std::string why);       // loses the current device: every later call on it fails with `why`
  void lose(int device, std::string why);
  void fail_work(std::string why);  // called by running work; reported by the next wait, and on stderr
  void fail_allocations(bool fail);
  void refuse_graphs(bool refuse);  // refuses to create and to update graphs
  bool refuses_graphs() const;
  void refuse_pinning(bool refuse);          // refuses to pin memory that it did not allocate
  bool has_work(StreamHandle stream) const;  // whether work was issued and is still deferred
  void note(const char* call, uint64_t value = 0);
  std::vector<std::string> calls() const;  // "cudaMalloc 2097152", in order
  void forget_calls();
  uint64_t held() const;                  // bytes of device memory
  int events() const { return events_; }  // that exist

  void enqueue(StreamHandle stream, std::function<void()> work, SimulatedWork what = {});

  int device_count(std::string* why) override;
  Properties properties(int device) override;
  std::string driver_version() override { return "simulated"; }
  void set_device(int device) override;
  void* allocate(size_t bytes) override;
  void free(void* p) noexcept override;
  void* allocate_host(size_t bytes) override;
  void free_host(void* p) noexcept override;
  bool register_host(void* p, size_t bytes) override;
  void unregister_host(void* p) noexcept override;  // aborts if work in progress uses it
  void memory_info(uint64_t* free, uint64_t* total) override;
  size_t granularity() override { return size_t{2} << 20; }
  void* reserve(size_t bytes) override;
  void release(void* addresses, size_t bytes) noexcept override;
  bool map(void* at, size_t bytes, PhysicalHandle* piece) override;
  void unmap(void* at, size_t bytes, PhysicalHandle piece) noexcept override;
  StreamHandle create_stream() override;
  void destroy_stream(StreamHandle stream) noexcept override;
  void synchronize(StreamHandle stream) override;
  void synchronize_device() override;
  EventHandle create_event(bool timing) override;
  void destroy_event(EventHandle event) noexcept override;
  void record(EventHandle event, StreamHandle stream) override;
  void wait(StreamHandle stream, EventHandle event) override;
  bool done(EventHandle event) override;
  void synchronize_event(EventHandle event) override;
  float elapsed_ms(EventHandle from, EventHandle to) override;
  void copy(void* to, const void* from, size_t bytes, StreamHandle stream) override;
  void fill(void* to, int byte, size_t bytes, StreamHandle stream) override;
  void check_launch() override;
  std::unique_ptr<LaunchGraph> make_graph(absl::Span<const KernelLaunch* const> launches) override;
  void begin_capture(StreamHandle stream) override;
  GraphHandle end_capture(StreamHandle stream, std::string* why) override;
  bool is_capturing(StreamHandle stream) override;
  void launch(GraphHandle graph, StreamHandle stream) override;
  void destroy_graph(GraphHandle graph) noexcept override;

 private:
  struct Stream;
  struct Mark;  // the position of an event in a stream
  struct Event {
    std::shared_ptr<Mark> mark;  // null: never recorded
  };
  struct Job {
    std::function<void()> run;      // null if the job only marks a position
    std::shared_ptr<Mark> mark;     // done when the stream reaches it
    std::shared_ptr<Mark> awaited;  // must be done before the job runs
  };
  struct Mark {
    Stream* stream;
    bool done = false;
  };
  struct Stream {
    int device;
    uint32_t number;  // of the process's streams
    std::deque<Job> queue;
    bool capturing = false;
    std::string refusal;  // why the captured work cannot become a graph
    std::vector<std::function<void()>> captured;
  };
  struct Graph {
    std::vector<std::function<void()>> work;
  };
  struct Registered {
    size_t bytes;
    std::shared_ptr<char> use = std::make_shared<char>();  // also held by every copy in progress
  };
  struct Device {
    uint64_t held = 0;
    std::string lost;  // why the device is lost, if it is
  };

  Device& current();
  void check_device(int device);
  void add(Stream& stream, Job job);
  void run_first(Stream& stream);
  void run_until(const std::shared_ptr<Mark>& mark);
  void drain(Stream& stream);
  void drain_device(int device);
  void raise_failure();
  bool reachable(const void* p) const;  // whether a device can access it directly
  std::shared_ptr<void> use_registered(const void* p) const;

  const Options options_;
  std::atomic<int> events_{0};
  mutable std::recursive_mutex mutex_;  // guards all members below
  GuardedMemory guarded_;
  std::vector<Device> devices_;
  std::set<std::unique_ptr<Stream>> streams_;
  std::map<const char*, std::pair<size_t, int>> memory_;  // device memory: bytes and device
  std::map<const char*, size_t> pinned_;
  std::map<const char*, Registered> registered_;
  PhysicalHandle next_piece_ = 1;
  uint32_t next_stream_ = 7;  // a CUDA context creates streams of its own
  std::vector<std::string> calls_;
  std::string failing_kernel_;
  std::string failure_;
  bool fail_allocations_ = false;
  bool refuse_graphs_ = false;
  bool refuse_pinning_;
};

// The runtime of the process, which must be a SimulatedRuntime.
SimulatedRuntime& simulated_runtime();

}  // namespace tt::cuda
