// Cost of the engine itself: dispatching one small operation, and allocating from the pool.
//
//   ninja -C build dispatch_bench && build/bin/dispatch_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine/device/devices.h"
#include "engine/program/executor.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

struct Add {
  Add() {
    cpu::register_backend(Dispatcher::instance());
    for (Tensor* t : {&x, &y}) {
      *t = empty({8, 8}, DType::kFloat32, {});
      std::fill_n(t->data_as<float>(), 64, 1.5f);
    }
  }
  Tensor x, y;
  const Op* op = find_op(op_id::kAdd);
};

void dispatch_add_8x8(benchmark::State& state) {
  Add add;
  const Arg args[] = {add.x.get(), add.y.get(), int64_t{1}};
  for (auto _ : state) {
    Call call;
    call.op = add.op;
    call.args = args;
    Dispatcher::instance().dispatch(call);
    benchmark::DoNotOptimize(call.outputs[0].data());
  }
}
BENCHMARK(dispatch_add_8x8);

void infer_add_8x8(benchmark::State& state) {
  Add add;
  const Arg args[] = {add.x.get(), add.y.get(), int64_t{1}};
  for (auto _ : state) {
    Inference inferred;
    infer(*add.op, args, true, &inferred);
    benchmark::DoNotOptimize(inferred.outputs.data());
  }
}
BENCHMARK(infer_add_8x8);

void empty_8x8(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(empty({8, 8}, DType::kFloat32, {}).data());
}
BENCHMARK(empty_8x8);

// Measures a frame of 64 chained adds, each releasing the previous result.
void execute_add_8x8(benchmark::State& state) {
  constexpr Slot kFirst = 10, kCount = 64;
  Add add;
  SlotTable slots;
  slots.put(1, {add.x, nullptr});
  slots.put(kFirst, {add.y, nullptr});
  Program program;
  for (Slot last = kFirst; last < kFirst + kCount; ++last) {
    const Slot release[] = {last - 1}, result[] = {last + 1};
    const Arg args[] = {slot_arg(last), slot_arg(1)};
    program.add(*add.op, args, result, absl::MakeConstSpan(release, last > kFirst ? 1 : 0));
  }
  Executor executor;
  for (auto _ : state) {
    executor.run(program, slots);
    slots.release(kFirst + kCount - 1);
    slots.release(kFirst + kCount);
    slots.put(kFirst, {add.y, nullptr});
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kCount));
}
BENCHMARK(execute_add_8x8);

void allocate_cached(benchmark::State& state) {
  Allocator& pool = Devices::instance().allocator({});
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* p = pool.allocate(bytes);
    benchmark::DoNotOptimize(p);
    pool.deallocate(p, bytes);
  }
}
BENCHMARK(allocate_cached)->Arg(256)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20);

// Alternates between sizes from 4 KiB to 64 MiB and writes all bytes, so that page faults of new memory are measured.
template <typename Allocate, typename Free>
void fill_alternating(benchmark::State& state, Allocate allocate, Free free) {
  for (auto _ : state) {
    for (size_t bytes = 4 << 10; bytes <= size_t{64} << 20; bytes *= 4) {
      void* p = allocate(bytes);
      std::memset(p, 1, bytes);
      benchmark::ClobberMemory();
      free(p, bytes);
    }
  }
}
void fill_alternating_pool(benchmark::State& state) {
  Allocator& pool = Devices::instance().allocator({});
  fill_alternating(
      state, [&](size_t bytes) { return pool.allocate(bytes); },
      [&](void* p, size_t bytes) { pool.deallocate(p, bytes); });
}
BENCHMARK(fill_alternating_pool)->Unit(benchmark::kMillisecond);

void fill_alternating_malloc(benchmark::State& state) {
  fill_alternating(
      state, [](size_t bytes) { return std::malloc(bytes); }, [](void* p, size_t) { std::free(p); });
}
BENCHMARK(fill_alternating_malloc)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tt

BENCHMARK_MAIN();
