// Pointwise kernels compared with memory bandwidth: memcpy and a triad over the same bytes, in the same run.

#include <cmath>
#include <cstring>

#include "benchmark/benchmark.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/ops.h"
#include "engine/program/executor.h"
#include "engine/program/passes/fuse_pointwise.h"
#include "engine/schema/op_ids.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

constexpr int64_t kLarge = 10'000'000;

Tensor ramp(Sizes sizes, DType dtype = DType::kFloat32) {
  const Tensor t = ops::full(sizes, 0.0, dtype, Device{});
  const Tensor values = ops::arange_from(int64_t{0}, t.numel(), int64_t{1}, DType::kFloat32, Device{});
  const Tensor scaled = view_of(ops::sin(values), {t.sizes(), t.strides(), 0, true});
  const Arg args[] = {t.get(), scaled.get()};
  ops::call(op_id::kAssign, args, {&t, 1});
  return t;
}

void bytes(benchmark::State& state, int64_t each) { state.SetBytesProcessed(state.iterations() * each); }

void floor_memcpy(benchmark::State& state) {
  const Tensor a = ramp({kLarge}), b = ramp({kLarge});
  for (auto _ : state) {
    parallel_for(kLarge, 1 << 15, [&](int64_t begin, int64_t end) {
      std::memcpy(b.data_as<float>() + begin, a.data_as<float>() + begin, (end - begin) * sizeof(float));
    });
  }
  bytes(state, 2 * kLarge * 4);
}

void floor_triad(benchmark::State& state) {
  const Tensor a = ramp({kLarge}), b = ramp({kLarge}), c = ramp({kLarge});
  for (auto _ : state) {
    parallel_for(kLarge, 1 << 15, [&](int64_t begin, int64_t end) {
      const float *x = a.data_as<float>(), *y = b.data_as<float>();
      float* z = c.data_as<float>();
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) z[i] = x[i] + 2.5f * y[i];
    });
    benchmark::ClobberMemory();
  }
  bytes(state, 3 * kLarge * 4);
}

// Measures f(a, b), with each result in newly allocated memory, as in eager code.
template <typename F>
void binary(benchmark::State& state, const Tensor& a, const Tensor& b, F f) {
  for (auto _ : state) benchmark::DoNotOptimize(f(a, b));
  const int64_t read = (a.numel() + b.numel()) * static_cast<int64_t>(item_size(a.dtype()));
  bytes(state, read + f(a, b).numel() * static_cast<int64_t>(item_size(a.dtype())));
}

template <typename F>
void unary(benchmark::State& state, const Tensor& a, F f) {
  for (auto _ : state) benchmark::DoNotOptimize(f(a));
  bytes(state, 2 * a.numel() * static_cast<int64_t>(item_size(a.dtype())));
}

Tensor add(const Tensor& a, const Tensor& b) { return ops::add(a, b); }

// Returns the transposed matrix, as a view.
Tensor transposed(const Tensor& t) { return view_of(t, {{t.size(1), t.size(0)}, {1, t.size(1)}, 0, true}); }

// relu((a + b) * 2) as in a client's frame: three instructions, which are fused into one loop.
void fused_frame(benchmark::State& state) {
  enum : Slot { kA = 1, kB, kSum, kDouble, kResult };
  Program frame;
  frame.add(*find_op(op_id::kAdd), {slot_arg(kA), slot_arg(kB)}, {kSum});
  frame.add(*find_op(op_id::kMul), {slot_arg(kSum), Arg(2.0)}, {kDouble});
  frame.add(*find_op(op_id::kRelu), {slot_arg(kDouble)}, {kResult}, {kSum});
  frame.set_release({kDouble});
  SlotTable slots;
  slots.put(kA, {ramp({kLarge}), nullptr});
  slots.put(kB, {ramp({kLarge}), nullptr});
  Executor executor;
  for (auto _ : state) {
    Program program = frame;
    fuse_pointwise(&program, slots);
    executor.run(program, slots);
    slots.release(kResult);
  }
  if (executor.stats().fused == 0) state.SkipWithError("nothing was fused");
  bytes(state, 3 * kLarge * 4);
}

void register_small() {
  const auto small = [](const char* name, Tensor a, Tensor b) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& s) { binary(s, a, b, &add); });
  };
  small("add 8x8", ramp({8, 8}), ramp({8, 8}));
  small("add 8x8, a row", ramp({8, 8}), ramp({8}));
  small("add 8x8, transposed", ramp({8, 8}), transposed(ramp({8, 8})));
  small("add 8x8, float16", ramp({8, 8}, DType::kFloat16), ramp({8, 8}, DType::kFloat16));
  small("add 128x512, a row", ramp({128, 512}), ramp({512}));
  benchmark::RegisterBenchmark("8x8 times a number", [](benchmark::State& s) {
    unary(s, ramp({8, 8}), [](const Tensor& x) { return ops::mul(x, 2.5); });
  });
}

void register_large() {
  const auto large = [](const char* name, auto f) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& s) { f(s); })->Unit(benchmark::kMicrosecond);
  };
  large("floor: memcpy 1e7", &floor_memcpy);
  large("floor: triad 1e7", &floor_triad);
  large("add 1e7", [](auto& s) { binary(s, ramp({kLarge}), ramp({kLarge}), &add); });
  large("add 1e7, a row of 4000", [](auto& s) { binary(s, ramp({2500, 4000}), ramp({4000}), &add); });
  large("add 1e7, rows of 4", [](auto& s) { binary(s, ramp({2'500'000, 4}), ramp({4}), &add); });
  large("add 1e7, transposed", [](auto& s) { binary(s, ramp({2500, 4000}), transposed(ramp({4000, 2500})), &add); });
  large("add 1e7, float16",
        [](auto& s) { binary(s, ramp({kLarge}, DType::kFloat16), ramp({kLarge}, DType::kFloat16), &add); });
  large("add 1e7, int8", [](auto& s) { binary(s, ramp({kLarge}, DType::kInt8), ramp({kLarge}, DType::kInt8), &add); });
  large("less 1e7", [](auto& s) {
    binary(s, ramp({kLarge}), ramp({kLarge}), [](const Tensor& a, const Tensor& b) { return ops::lt(a, b); });
  });
  large("relu((a + b) * 2) 1e7", [](auto& s) {
    binary(s, ramp({kLarge}), ramp({kLarge}),
           [](const Tensor& a, const Tensor& b) { return ops::relu(ops::mul(ops::add(a, b), 2)); });
  });
  large("relu((a + b) * 2) 1e7, one frame", &fused_frame);
  large("square by pow 1e7", [](auto& s) { unary(s, ramp({kLarge}), [](const Tensor& x) { return ops::pow(x, 2); }); });
  large("exp 1e7", [](auto& s) { unary(s, ramp({kLarge}), [](const Tensor& x) { return ops::exp(x); }); });
  large("tanh 1e7", [](auto& s) { unary(s, ramp({kLarge}), [](const Tensor& x) { return ops::tanh(x); }); });
  large("gelu 1e7", [](auto& s) { unary(s, ramp({kLarge}), [](const Tensor& x) { return ops::gelu_erf(x); }); });
  large("transposed copy 1e7", [](auto& s) {
    const Tensor source = transposed(ramp({4000, 2500})), target = ramp({2500, 4000});
    const Arg args[] = {target.get(), source.get()};
    for (auto _ : s) ops::call(op_id::kAssign, args, {&target, 1});
    bytes(s, 2 * kLarge * 4);
  });
  const auto draw = [&](const char* name, auto f) {
    large(name, [=](auto& s) {
      for (auto _ : s) benchmark::DoNotOptimize(f());
      bytes(s, 4'000'000);
    });
  };
  draw("rand 1e6", [] { return ops::rand({{1'000'000}}, DType::kFloat32, Device{}); });
  draw("randn 1e6", [] { return ops::randn({{1'000'000}}, DType::kFloat32, Device{}); });
}

}  // namespace
}  // namespace tt

int main(int argc, char** argv) {
  tt::cpu::register_backend(tt::Dispatcher::instance());
  tt::register_small();
  tt::register_large();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
