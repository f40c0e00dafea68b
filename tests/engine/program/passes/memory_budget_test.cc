// recompute within a budget of memory: what is computed again, in which order, and what is kept.
#include <gtest/gtest.h>

#include <string>

#include "engine/program/passes/memory_budget.h"
#include "engine/program/passes/peak_memory.h"
#include "engine/program/passes/recompute.h"
#include "engine/program/passes/remove_unused.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

constexpr int64_t kEach = 64 * 64 * 4;  // bytes of a value

// h = x w1; a = tanh(h); b = a w2; c = sin(b); the backward part reads h, a, b and c.
Program two_layers() {
  Program program;
  add(&program, "matmul", {slot(1), slot(2)}, {4});
  add(&program, "tanh", {slot(4)}, {5});
  add(&program, "matmul", {slot(5), slot(3)}, {6});
  add(&program, "sin", {slot(6)}, {7});
  add(&program, "mul", {slot(7), slot(6)}, {8});
  add(&program, "mul", {slot(8), slot(5)}, {9});
  add(&program, "mul", {slot(9), slot(4)}, {10});
  program.set_outputs({10});
  return program;
}

const std::vector<bool> kTwoLayersBackward = {false, false, false, false, true, true, true};

Recomputed within(double budget, Program* program, const InputMetas& inputs, const std::vector<bool>& is_backward) {
  const ProgramTypes types = inputs.types(*program);
  const Recomputed recomputed = recompute(is_backward, &types, inputs.metas(), budget, program);
  remove_unused(program);
  return recomputed;
}

const InputMetas& squares() {
  static const InputMetas inputs(Sizes{64, 64}, Sizes{64, 64}, Sizes{64, 64});
  return inputs;
}

TEST(MemoryBudget, OneKeepsAll) {
  Program program = two_layers();
  const Recomputed recomputed = within(1, &program, squares(), kTwoLayersBackward);
  EXPECT_EQ(recomputed.calls, 0u);
  Program before = two_layers();
  remove_unused(&before);
  EXPECT_EQ(to_string(program), to_string(before));
}

TEST(MemoryBudget, ComputesPointwiseCallsAgainFirst) {
  Program program = two_layers();
  const Recomputed recomputed = within(0.5, &program, squares(), kTwoLayersBackward);
  EXPECT_EQ(recomputed.all_bytes, 4 * kEach);
  EXPECT_EQ(recomputed.kept_bytes, 2 * kEach);  // of the products
  EXPECT_EQ(recomputed.calls, 2u);
  EXPECT_EQ(to_string(program),
            "%4 = matmul(%1, %2)\n%5 = tanh(%4)  # drops %1, %2\n%6 = matmul(%5, %3)\n%11 = sin(%6)  # drops %5, %3\n"
            "%8 = mul(%11, %6)\n%12 = tanh(%4)  # drops %11, %6\n%9 = mul(%8, %12)\n"
            "%10 = mul(%9, %4)  # drops %8, %12\nread %10\n")
      << "the first sin is not used";
}

TEST(MemoryBudget, ZeroComputesAllAgain) {
  Program program = two_layers();
  const Recomputed recomputed = within(0, &program, squares(), kTwoLayersBackward);
  EXPECT_EQ(recomputed.kept_bytes, 0);
  EXPECT_EQ(recomputed.calls, 6u) << "each call, and two of them once more, which lowers the peak";
}

TEST(MemoryBudget, LowersThePeak) {
  // Eight layers of which backward reads every value, the last first.
  Program program;
  std::vector<bool> is_backward;
  for (Slot k = 2; k <= 33; ++k) {
    add(&program, k % 4 == 2 ? "matmul" : "sin",
        k % 4 == 2 ? std::vector<Arg>{slot(k - 1), slot(1)} : std::vector<Arg>{slot(k - 1)}, {k});
    is_backward.push_back(false);
  }
  for (Slot k = 34; k <= 65; ++k) {
    add(&program, "mul", {slot(k - 1), slot(67 - k)}, {k});
    is_backward.push_back(true);
  }
  program.set_outputs({65});
  const InputMetas inputs(Sizes{64, 64});
  int64_t last = 0;
  for (double budget : {1.0, 0.75, 0.5, 0.25}) {
    Program changed = program;
    const Recomputed recomputed = within(budget, &changed, inputs, is_backward);
    if (budget < 1) {
      EXPECT_LE(static_cast<double>(recomputed.kept_bytes), budget * static_cast<double>(recomputed.all_bytes));
    }
    const int64_t peak = peak_bytes(changed, inputs.metas(), /*grad_enabled=*/false);
    if (last != 0) {
      EXPECT_LT(peak, last) << budget;
    }
    last = peak;
  }
  // The least budget computes in parts: without, all values would be computed again before backward begins.
  Program changed = program;
  EXPECT_EQ(within(0, &changed, inputs, is_backward).kept_bytes, 0);
  EXPECT_LE(peak_bytes(changed, inputs.metas(), /*grad_enabled=*/false), last);
}

TEST(MemoryBudget, KeepsDrawsAndWhatIsWritten) {
  Program program;
  add(&program, "rand_like", {slot(1)}, {3});
  add(&program, "mul", {slot(1), slot(3)}, {4});
  add(&program, "add", {slot(2), slot(1)}, {5});                       // reads what is written later
  add(&program, "add", {slot(2), Arg(1.0)}, {2}, Instruction::kInto);  // an input
  add(&program, "mul", {slot(4), slot(5)}, {6});
  program.set_outputs({6});
  const InputMetas inputs(Sizes{64, 64}, Sizes{64, 64});
  const std::vector<bool> constant = instructions_with_constant_values(program);
  EXPECT_EQ(constant, (std::vector<bool>{false, true, false, false, true}));
  const Recomputed recomputed = within(0, &program, inputs, {false, false, false, false, true});
  EXPECT_EQ(recomputed.calls, 0u) << "the product would keep the drawn numbers instead of itself";
  EXPECT_EQ(recomputed.kept_bytes, 2 * kEach);
}

TEST(MemoryBudget, ViewsTakeNothing) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "transpose", {slot(2), Arg(0), Arg(1)}, {3});
  add(&program, "mul", {slot(3), slot(3)}, {4});
  program.set_outputs({4});
  const Recomputed recomputed = within(0, &program, InputMetas(Sizes{64, 64}), {false, false, true});
  EXPECT_EQ(recomputed.all_bytes, kEach);
  EXPECT_EQ(recomputed.kept_bytes, 0);
  EXPECT_EQ(to_string(program),
            "%5 = exp(%1)\n%6 = transpose(%5, dim0=0, dim1=1)  # drops %1\n"
            "%4 = mul(%6, %6)  # drops %5\nread %4\n");
}

}  // namespace
}  // namespace tt
