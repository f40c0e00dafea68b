// Measures the cost of an allocation and its free from cached memory, on the CPU's pool and on a pool configured like a
// GPU's, whose blocks belong to streams and record their owners. The GPU pool's segments are host memory here, which
// does not affect the results.
//
//   build/bin/allocator_bench
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>

#include "engine/memory/caching_pool.h"
#include "engine/memory/system_memory.h"
#include "engine/session/context.h"

namespace tt {
namespace {

class DoneEvent final : public Event {
 public:
  bool done() const override { return true; }
  void synchronize() override {}
};

class DoneEvents final : public StreamEvents {
 public:
  std::unique_ptr<Event> record(const StreamId&) override { return std::make_unique<DoneEvent>(); }
};

class NamedStream final : public Stream {
 public:
  explicit NamedStream(uintptr_t id) : id_(id) {}
  Device device() const override { return {DeviceType::kCUDA, 0}; }
  uintptr_t id() const override { return id_; }
  std::unique_ptr<Event> record() override { return std::make_unique<DoneEvent>(); }
  void wait(const Event&) override {}
  void synchronize() override {}
  void copy(void*, const void*, size_t) override {}
  void zero(void* p, size_t bytes) override { std::memset(p, 0, bytes); }

 private:
  uintptr_t id_;
};

constexpr Tenant kTenant = 1;

struct CpuPool {
  CachingPool pool{Device{}, std::make_unique<SystemMemory>()};
  Stream* stream = nullptr;
};

struct GpuPool {
  static PoolParts parts() {
    PoolParts parts;
    parts.segments = std::make_unique<SystemMemory>();
    parts.events = std::make_unique<DoneEvents>();
    return parts;
  }
  static PoolSizes sizes() {
    PoolSizes sizes;
    sizes.granule = 512;
    return sizes;
  }
  GpuPool() { context.account = std::make_shared<Account>("session 1"); }

  CachingPool pool{{DeviceType::kCUDA, 0}, parts(), sizes(), {}};
  NamedStream on{1}, other{2};
  Stream* stream = &on;
  Context context;
  ContextScope scope{&context};
};

template <typename Pool>
void cached(benchmark::State& state) {
  Pool made;
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* p = made.pool.allocate(bytes, {made.stream, kTenant});
    benchmark::DoNotOptimize(p);
    made.pool.deallocate(p, bytes, kTenant);
  }
}
BENCHMARK(cached<CpuPool>)->Arg(256)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20);
BENCHMARK(cached<GpuPool>)->Arg(256)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20);

// Measures allocations as in a training step: 256 tensors of different sizes are alive, and are freed in a different
// order than they were allocated.
template <typename Pool>
void churn(benchmark::State& state) {
  Pool made;
  std::mt19937 random(1);
  struct Live {
    void* p;
    size_t bytes;
  };
  std::vector<Live> live;
  std::vector<size_t> sizes;
  for (int i = 0; i < 1024; ++i) sizes.push_back(size_t{256} << random() % 15);
  for (int i = 0; i < 256; ++i) live.push_back({made.pool.allocate(sizes[i], {made.stream, kTenant}), sizes[i]});
  size_t next = 0;
  for (auto _ : state) {
    Live& block = live[(next * 97) % live.size()];
    made.pool.deallocate(block.p, block.bytes, kTenant);
    block.bytes = sizes[next++ % sizes.size()];
    block.p = made.pool.allocate(block.bytes, {made.stream, kTenant});
  }
  for (const Live& block : live) made.pool.deallocate(block.p, block.bytes);
}
BENCHMARK(churn<CpuPool>);
BENCHMARK(churn<GpuPool>);

// Measures a block that alternates between two sessions and is therefore zeroed at each use.
template <typename Pool>
void handed_over(benchmark::State& state) {
  Pool made;
  const auto bytes = static_cast<size_t>(state.range(0));
  Tenant tenant = 1;
  for (auto _ : state) {
    tenant = 3 - tenant;
    void* p = made.pool.allocate(bytes, {made.stream, tenant});
    benchmark::DoNotOptimize(p);
    made.pool.deallocate(p, bytes, tenant);
  }
}
BENCHMARK(handed_over<CpuPool>)->Arg(256)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20);

// Measures a block that a second stream reads, so that the block is free only after an event has passed.
void shared_with_a_stream(benchmark::State& state) {
  GpuPool made;
  for (auto _ : state) {
    void* p = made.pool.allocate(4096, {made.stream});
    made.pool.record_stream(p, made.other);
    made.pool.deallocate(p, 4096);
  }
}
BENCHMARK(shared_with_a_stream);

}  // namespace
}  // namespace tt

BENCHMARK_MAIN();
