// An engine in this process for tests of the tape, with a CPU, its kernels, composites and autograd.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/graph_task.h"
#include "autograd/nodes/history.h"
#include "autograd/record.h"
#include "engine/composites/composites.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/tensors.h"

namespace tt::autograd::testing {

using tt::testing::values;

class AutogradTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool ready = [] {
      cpu::register_backend(Dispatcher::instance());
      register_composites(Dispatcher::instance());
      register_autograd(Dispatcher::instance());
      return true;
    }();
    (void)ready;
  }
  AutogradTest() : scope_(&context_) {}

  Context context_;
  ContextScope scope_;
};

inline Tensor leaf(Sizes sizes, std::vector<double> numbers, DType dtype = DType::kFloat64) {
  Tensor t = values(std::move(sizes), std::move(numbers), dtype);
  t->requires_grad = true;
  return t;
}

inline std::vector<double> read(const Tensor& t) {
  GradMode off(false);
  Tensor flat = ops::clone(t);
  std::vector<double> numbers;
  for (int64_t i = 0; i < flat.numel(); ++i) numbers.push_back(tt::testing::at(flat, i));
  return numbers;
}

inline std::vector<double> grad_of(const Tensor& leaf) {
  const History* history = find_history(*leaf.get());
  return history && history->grad ? read(history->grad) : std::vector<double>();
}

inline void backward(const Tensor& root, GraphTaskOptions options = {}) {
  GraphTask(absl::MakeConstSpan(&root, 1), {}, {}, options).finish({});
}

// The gradients of sum(root) with respect to `inputs`.
inline Tensors grad(const Tensor& root, const std::vector<Tensor>& inputs, bool create_graph = false) {
  Tensor scalar = root.numel() == 1 ? root : ops::sum(root, std::nullopt, false, std::nullopt);
  GraphTaskOptions options{false, create_graph, create_graph};
  return GraphTask(absl::MakeConstSpan(&scalar, 1), {}, inputs, options).finish(inputs);
}

// `target op= other` and similar: writes the result of the call into `target`.
inline void in_place(uint16_t op, const Tensor& target, std::vector<Arg> rest) {
  std::vector<Arg> args{Arg(target.get())};
  args.insert(args.end(), rest.begin(), rest.end());
  ops::call(op, args, absl::MakeConstSpan(&target, 1));
}

template <typename F>
std::string error_of(F run) {
  try {
    run();
  } catch (const Error& e) {
    return e.message();
  }
  return {};
}

}  // namespace tt::autograd::testing
