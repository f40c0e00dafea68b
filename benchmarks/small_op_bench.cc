// Cost of small calls of each kind in the engine, with and without recording.
//
//   build/bin/small_op_bench
#include <benchmark/benchmark.h>

#include <vector>

#include "autograd/record.h"
#include "engine/composites/composites.h"
#include "engine/dispatch/ops.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

using Ints = std::vector<int64_t>;

struct Operands {
  explicit Operands(bool requires_grad)
      : x(ops::randn(Ints{8, 8})), y(ops::randn(Ints{8, 8})), bias(ops::randn(Ints{8})), pair{x, y} {
    for (Tensor* t : {&x, &y, &bias}) (*t)->requires_grad = requires_grad;
  }
  Tensor x, y, bias;
  Tensors pair;
};

template <typename Call>
void add_rows(const char* name, Call call) {
  for (bool requires_grad : {false, true}) {
    std::string row = std::string(name) + (requires_grad ? "/grad" : "");
    benchmark::RegisterBenchmark(row.c_str(), [=](benchmark::State& state) {
      Operands operands(requires_grad);
      for (auto _ : state) benchmark::DoNotOptimize(call(operands));
    });
  }
}

void add_all() {
  static const Ints kFlat{64}, kRows{1}, kSize{8, 8};
  add_rows("add", [](Operands& o) { return ops::add(o.x, o.y); });
  add_rows("add_number", [](Operands& o) { return ops::add(o.x, 2.0); });
  add_rows("relu", [](Operands& o) { return ops::relu(o.x); });
  add_rows("sum", [](Operands& o) { return ops::sum(o.x); });
  add_rows("sum_dim", [](Operands& o) { return ops::sum(o.x, absl::MakeConstSpan(kRows)); });
  add_rows("softmax", [](Operands& o) { return ops::softmax(o.x, 1); });
  add_rows("matmul", [](Operands& o) { return ops::matmul(o.x, o.y); });
  add_rows("linear", [](Operands& o) { return ops::linear(o.x, o.y, o.bias); });
  add_rows("transpose", [](Operands& o) { return ops::transpose(o.x, 0, 1); });
  add_rows("reshape", [](Operands& o) { return ops::reshape(o.x, kFlat); });
  add_rows("select", [](Operands& o) { return ops::select(o.x, 0, 3); });
  add_rows("cat", [](Operands& o) { return ops::cat(o.pair, 0); });
  add_rows("zeros", [](Operands&) { return ops::zeros(kSize); });
}

}  // namespace
}  // namespace tt

int main(int argc, char** argv) {
  tt::Dispatcher& dispatcher = tt::Dispatcher::instance();
  tt::cpu::register_backend(dispatcher);
  tt::register_composites(dispatcher);
  tt::autograd::register_autograd(dispatcher);
  tt::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
