// remove_copies: texts before and after, and the values of random Programs that write in place.
#include "engine/program/passes/remove_copies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "engine/dispatch/dispatcher.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/program_run.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

constexpr uint8_t kInto = Instruction::kInto;

std::string without_copies(Program program, const InputMetas& inputs) {
  remove_copies(&program, inputs.types(program), inputs.size());
  return to_string(program);
}

// Whether the pass leaves the Program as it is.
::testing::AssertionResult stays(const Program& program, const InputMetas& inputs) {
  const std::string after = without_copies(program, inputs);
  return after == to_string(program) ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << after;
}

TEST(RemoveCopies, ReturnsTheSourceItself) {
  Program program;
  const std::vector<int64_t> sizes = {16};
  add(&program, "mul", {slot(1), slot(1)}, {2});
  add(&program, "reshape", {slot(2), Arg(absl::Span<const int64_t>(sizes))}, {3});  // a view of a value of its size
  add(&program, "clone", {slot(3)}, {4});
  program.set_outputs({4});
  EXPECT_EQ(without_copies(program, InputMetas(Sizes{4, 4})),
            "%2 = mul(%1, %1)\n%3 = reshape(%2, shape=[16])\nread %3\n");
}

TEST(RemoveCopies, PassesWritesOfOtherMemory) {
  Program program;
  add(&program, "mul", {slot(1), slot(1)}, {3});
  add(&program, "add", {slot(3), Arg(1.0)}, {3}, kInto);  // before the copy
  add(&program, "clone", {slot(3)}, {4});
  add(&program, "sub", {slot(2), slot(4)}, {2}, kInto);  // of an input, by the copy
  program.set_outputs({4});
  EXPECT_EQ(without_copies(program, InputMetas(Sizes{4}, Sizes{4})),
            "%3 = mul(%1, %1)\n%3 <- add(%3, other=1)\n%2 <- sub(%2, %3)\nread %3\n");
}

TEST(RemoveCopies, TheCopyMayBeWrittenIfNothingReadsTheSource) {
  Program program;
  add(&program, "mul", {slot(1), slot(1)}, {2});
  add(&program, "clone", {slot(2)}, {3});
  add(&program, "relu", {slot(3)}, {3}, kInto);
  program.set_outputs({3});
  EXPECT_EQ(without_copies(program, InputMetas(Sizes{4})), "%2 = mul(%1, %1)\n%2 <- relu(%2)\nread %2\n");
}

TEST(RemoveCopies, StayIfAWriteWouldChangeTheOther) {
  Program source, view, copy, output;
  add(&source, "mul", {slot(1), slot(1)}, {2});
  add(&source, "clone", {slot(2)}, {3});
  add(&source, "relu", {slot(2)}, {2}, kInto);
  source.set_outputs({3});
  EXPECT_TRUE(stays(source, InputMetas(Sizes{4})));
  add(&view, "mul", {slot(1), slot(1)}, {2});
  add(&view, "view_as", {slot(2), slot(1)}, {3});
  add(&view, "clone", {slot(2)}, {4});
  add(&view, "relu", {slot(3)}, {3}, kInto);
  view.set_outputs({4});
  EXPECT_TRUE(stays(view, InputMetas(Sizes{4})));
  add(&copy, "mul", {slot(1), slot(1)}, {2});
  add(&copy, "clone", {slot(2)}, {3});
  add(&copy, "relu", {slot(3)}, {3}, kInto);
  add(&copy, "add", {slot(2), slot(3)}, {4});
  copy.set_outputs({4});
  EXPECT_TRUE(stays(copy, InputMetas(Sizes{4})));
  add(&output, "mul", {slot(1), slot(1)}, {2});
  add(&output, "clone", {slot(2)}, {3});
  add(&output, "relu", {slot(3)}, {3}, kInto);
  output.set_outputs({2});
  EXPECT_TRUE(stays(output, InputMetas(Sizes{4})));
}

TEST(RemoveCopies, StayIfOutputsOrInputsWouldShareMemory) {
  Program two, input, both;
  add(&two, "mul", {slot(1), slot(1)}, {2});
  add(&two, "clone", {slot(2)}, {3});
  two.set_outputs({2, 3});
  EXPECT_TRUE(stays(two, InputMetas(Sizes{4})));
  add(&input, "view_as", {slot(1), slot(1)}, {2});
  add(&input, "clone", {slot(2)}, {3});
  input.set_outputs({3});
  EXPECT_TRUE(stays(input, InputMetas(Sizes{4})));
  add(&both, "mul", {slot(1), slot(1)}, {2});
  add(&both, "clone", {slot(2)}, {3});
  add(&both, "clone", {slot(2)}, {4});
  both.set_outputs({3, 4});
  EXPECT_EQ(without_copies(both, InputMetas(Sizes{4})), "%2 = mul(%1, %1)\n%4 = clone(%2)\nread %2, %4\n");
}

TEST(RemoveCopies, StayIfTheSourceIsLaidOutDifferently) {
  Program part, expanded;
  add(&part, "mul", {slot(1), slot(1)}, {2});
  add(&part, "select", {slot(2), Arg(0), Arg(0)}, {3});
  add(&part, "clone", {slot(3)}, {4});
  part.set_outputs({4});
  EXPECT_TRUE(stays(part, InputMetas(Sizes{4, 4}))) << "the output would keep four times its bytes";
  const std::vector<int64_t> sizes = {4, 4};
  add(&expanded, "sum", {slot(1)}, {2});
  add(&expanded, "expand", {slot(2), Arg(absl::Span<const int64_t>(sizes))}, {3});
  add(&expanded, "clone", {slot(3)}, {4});
  expanded.set_outputs({4});
  EXPECT_TRUE(stays(expanded, InputMetas(Sizes{4, 4})));
}

// The values of random Programs, before and after the pass.
class RandomPrograms : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 2, kColumns = 3;

  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  // Of two inputs, of which it may change the second. All values have the same number of elements.
  Program make() {
    Program program;
    std::vector<Slot> matrices = {1, 2}, computed;  // of kRows x kColumns; without inputs
    const std::vector<int64_t> flat = {kRows * kColumns}, shape = {kRows, kColumns};
    Slot last = 2;
    const size_t calls = 4 + below(14);
    for (size_t i = 0; i < calls; ++i) {
      const Slot a = matrices[below(matrices.size())], b = matrices[below(matrices.size())];
      const auto result = [&] {
        matrices.push_back(++last);
        computed.push_back(last);
        return std::vector<Slot>{last};
      };
      switch (below(8)) {
        case 0: add(&program, "add", {slot(a), slot(b)}, result()); break;
        case 1: add(&program, "mul", {slot(a), Arg(0.5)}, result()); break;
        case 2: {
          const Slot view = ++last;
          add(&program, "reshape", {slot(a), Arg(absl::Span<const int64_t>(flat))}, {view});
          add(&program, "reshape", {slot(view), Arg(absl::Span<const int64_t>(shape))}, result());
          break;
        }
        case 3:
        case 4:
        case 5: add(&program, "clone", {slot(a)}, result()); break;
        default: {
          const std::vector<Slot>& targets = below(3) == 0 || computed.empty() ? std::vector<Slot>{2} : computed;
          const Slot target = targets[below(targets.size())];
          if (writes_input_1(program, target)) continue;
          add(&program, "add", {slot(target), slot(b)}, {target}, kInto);
        }
      }
    }
    std::vector<Slot> outputs;
    for (Slot name : computed) {
      if (below(3) == 0) outputs.push_back(name);
    }
    program.set_outputs(outputs);
    return program;
  }

  // Whether the name is a view of the input that may not be changed.
  static bool writes_input_1(const Program& program, Slot target) {
    for (Slot name = target; name > 2;) {
      Slot source = 0;
      for (const Instruction& instruction : program.instructions()) {
        if (instruction.op->name == "reshape" && instruction.results[0] == name) source = instruction.args[0].slot;
      }
      if (source == 0) return false;
      name = source;
      if (name == 1) return true;
    }
    return target == 1;
  }

  static Tensor filled(float first) {
    Tensor tensor = empty({kRows, kColumns}, DType::kFloat32, {});
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<float>()[i] = first + static_cast<float>(i);
    return tensor;
  }
  static std::vector<float> values_of(const Tensor& tensor) {
    const float* const first = tensor.data_as<float>();
    return {first, first + tensor.numel()};
  }

  // The values of the inputs and outputs after a run, and after each output is written, as a caller may do.
  static std::vector<std::vector<float>> run(Program program) {
    remove_unused(&program);
    check_program(program, 2);
    const Tensor read[] = {filled(1)}, written[] = {filled(-2)};
    const Tensors outputs = run_program(program, {read, written}, [](uint32_t) { return std::string(); });
    std::vector<std::vector<float>> values = {values_of(read[0]), values_of(written[0])};
    for (const Tensor& output : outputs) values.push_back(values_of(output));
    for (const Tensor& output : outputs) {
      output.data_as<float>()[0] += 100;
      for (const Tensor& other : outputs) values.push_back(values_of(other));
      values.push_back(values_of(read[0]));
      values.push_back(values_of(written[0]));
    }
    return values;
  }

  Context context_;
  ContextScope scope_{&context_};
  std::mt19937 random_{20261129};
};

TEST_F(RandomPrograms, KeepTheirValuesAndWhatSharesMemory) {
  const InputMetas inputs(Sizes{kRows, kColumns}, Sizes{kRows, kColumns});
  int removed = 0;
  for (int round = 0; round < 3000; ++round) {
    const Program before = make();
    Program after = before;
    remove_copies(&after, inputs.types(after), inputs.size());
    removed += static_cast<int>(before.instructions().size() - after.instructions().size());
    ASSERT_EQ(run(after), run(before)) << to_string(before) << "became\n" << to_string(after);
  }
  EXPECT_GT(removed, 1000);
}

}  // namespace
}  // namespace tt
