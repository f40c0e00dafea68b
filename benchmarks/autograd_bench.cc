// Cost of recording gradients: an 8x8 operation without recording, with recording, and with recording and backward.
//
//   build/bin/autograd_bench

#include "autograd/graph_task.h"
#include "autograd/record.h"
#include "benchmark/benchmark.h"
#include "engine/composites/composites.h"
#include "engine/dispatch/ops.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

Tensor tensor(bool requires_grad) {
  static const bool ready = [] {
    cpu::register_backend(Dispatcher::instance());
    register_composites(Dispatcher::instance());
    autograd::register_autograd(Dispatcher::instance());
    return true;
  }();
  (void)ready;
  Tensor t = ops::ones(Sizes{8, 8}, DType::kFloat32, Device{});
  t->requires_grad = requires_grad;
  return t;
}

using Operator = Tensor (*)(const Tensor& x, const Tensor& y);
Tensor add(const Tensor& x, const Tensor& y) { return ops::add(x, y); }
Tensor mul(const Tensor& x, const Tensor& y) { return ops::mul(x, y); }

template <Operator F>
void plain(benchmark::State& state) {
  Tensor x = tensor(false), y = tensor(false);
  for (auto _ : state) benchmark::DoNotOptimize(F(x, y));
}

// The graph of each call is freed with its result.
template <Operator F>
void recorded(benchmark::State& state) {
  Tensor x = tensor(true), y = tensor(true);
  for (auto _ : state) benchmark::DoNotOptimize(F(x, y));
}

template <Operator F>
void chain(benchmark::State& state) {
  constexpr int kLength = 1000;
  Tensor x = tensor(true), y = tensor(true), one = tensor(false);
  for (auto _ : state) {
    Tensor z = x;
    for (int i = 0; i < kLength; ++i) z = F(z, y);
    benchmark::DoNotOptimize(autograd::GraphTask({&z, 1}, {&one, 1}, {}, {}).finish({}));
  }
  state.SetItemsProcessed(state.iterations() * kLength);
}

BENCHMARK(plain<add>);
BENCHMARK(recorded<add>);
BENCHMARK(chain<add>);
BENCHMARK(plain<mul>);
BENCHMARK(recorded<mul>);
BENCHMARK(chain<mul>);

}  // namespace
}  // namespace tt
