#include "engine/program/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/device/cancellation.h"
#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/program/chain_code.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

using testing::HasSubstr;

Arg slot(Slot number) { return slot_arg(number); }

struct Frame {
  Instruction& add(std::vector<Arg> args, std::vector<Slot> results, std::vector<Slot> release = {}) {
    return program.add(*find_op(op_id::kAdd), args, results, release);
  }
  Program program;
};

struct ExecutorTest : testing::Test {
  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }
  ExecutorTest() {
    slots.put(1, {filled({3}, 1), nullptr});
    slots.put(2, {filled({3}, 2), nullptr});
    slots.put(9, {filled({4}, 9), nullptr});
  }
  static Tensor filled(SizesView sizes, float value) {
    Tensor t = empty(sizes, DType::kFloat32, {});
    std::fill_n(t.data_as<float>(), t.numel(), value);
    return t;
  }
  void run() { executor.run(frame.program, slots); }
  float value(Slot name) {
    const SlotValue* v = slots.find(name);
    return v && v->tensor ? *v->tensor.data_as<float>() : -1;
  }
  const Poison* poison(Slot name) { return slots.find(name) ? slots.find(name)->poison.get() : nullptr; }
  // Runs, expects a fault at instruction `at`, and returns its message.
  std::string fault(size_t at) {
    try {
      run();
    } catch (const ProgramFault& f) {
      EXPECT_EQ(f.instruction, at);
      return f.error.message();
    }
    return "no fault";
  }

  Context context;
  ContextScope scope{&context};
  SlotTable slots;
  Frame frame;
  Executor executor;
};

TEST_F(ExecutorTest, RunsInOrder) {
  frame.add({slot(1), slot(2)}, {3});
  frame.add({slot(3), slot(3), Arg(int64_t{10})}, {4});
  run();
  EXPECT_EQ(value(4), 33);
  EXPECT_EQ(executor.stats().instructions, 2u);
}

TEST_F(ExecutorTest, ReleasesBeforeTheInstructionRuns) {
  Allocator& pool = Devices::instance().allocator({});
  frame.add({slot(1), slot(2)}, {3});
  frame.add({slot(1), slot(2)}, {4}, {3});
  uint64_t before = pool.stats().all.requested.now;
  run();
  EXPECT_EQ(pool.stats().all.requested.now, before + 12);
  EXPECT_EQ(slots.find(3), nullptr);
}

// A chain over the names 1, `second` and 2: 20 = tanh(1), 21 = 20 + 2, 22 = (20 + second) + 21.
void add_chain(Frame* frame, Slot second, const std::vector<Slot>& results = {20, 21, 22}) {
  const Op &add = *find_op(op_id::kAdd), &tanh = *find_op(op_id::kTanh);
  ChainWriter writer;
  writer.begin_step(tanh, 5, 20, 1, /*kept=*/true);
  writer.add_input(0);
  writer.begin_step(add, 6, 30, 2);
  writer.add_result(0);
  writer.add_input(1);
  writer.begin_step(add, 7, 21, 2, /*kept=*/true);
  writer.add_result(0);
  writer.add_input(2);
  writer.begin_step(add, 8, 22, 2);
  writer.add_result(1);
  writer.add_result(2);
  const Slot names[] = {1, second, 2};
  Arg inputs;
  inputs.kind = Arg::Kind::kSlots;
  inputs.size = 3;
  inputs.slots = names;
  frame->program.add(*find_op(op_id::kPointwiseChain), {inputs, Arg(writer.code())}, results, {}).count = 4;
}

TEST_F(ExecutorTest, ResultsOfAChainHaveTheErrorsOfWhatTheyDependOn) {
  frame.add({slot(1), slot(9)}, {3}).site = 77;
  add_chain(&frame, 3);
  run();
  EXPECT_FLOAT_EQ(value(20), std::tanh(1.0F));
  EXPECT_FLOAT_EQ(value(21), std::tanh(1.0F) + 2);
  EXPECT_EQ(poison(22), poison(3));
  EXPECT_EQ(slots.size(), 3u + 4u);  // without names of steps
  EXPECT_EQ(executor.stats().instructions, 5u);
}

TEST_F(ExecutorTest, AStepOfAChainThatFailsPoisonsItsDependents) {
  add_chain(&frame, 9);  // [3] and [4] do not broadcast
  run();
  EXPECT_FLOAT_EQ(value(20), std::tanh(1.0F));
  EXPECT_FLOAT_EQ(value(21), std::tanh(1.0F) + 2);
  ASSERT_NE(poison(22), nullptr);
  EXPECT_EQ(poison(22)->op, "add");
  EXPECT_EQ(poison(22)->site, 6u);
  EXPECT_EQ(slots.size(), 3u + 3u);
  EXPECT_EQ(executor.stats().instructions, 4u);
  EXPECT_EQ(executor.stats().failed, 1u);
}

TEST_F(ExecutorTest, StepsOfAChainNeedNoNames) {
  constexpr Slot kLarge = Slot{1} << 63;
  slots.put(kLarge, {filled({3}, 5), nullptr});
  slots.set_limit(slots.size() + 3);
  add_chain(&frame, 9, {20, kLarge + 1, kLarge + 2});
  run();
  EXPECT_FLOAT_EQ(value(20), std::tanh(1.0F));
  EXPECT_FLOAT_EQ(value(kLarge + 1), std::tanh(1.0F) + 2);
  ASSERT_NE(poison(kLarge + 2), nullptr);
  EXPECT_EQ(value(kLarge), 5);
  EXPECT_EQ(slots.size(), 4u + 3u);
}

TEST_F(ExecutorTest, StepsOfAChainAreNotExecutedInACancelledFrame) {
  frame.add({slot(1), slot(9)}, {3});
  run();
  frame.program.clear();
  Cancellation cancellation;
  cancellation.request(CancelReason::kClient);
  const CancellationScope cancelled(&cancellation);
  add_chain(&frame, 3);
  run();
  for (Slot name : {20, 21, 22}) EXPECT_EQ(poison(name), poison(3)) << name;
}

TEST_F(ExecutorTest, FailurePoisonsDependents) {
  frame.add({slot(1), slot(9)}, {3}).site = 77;  // [3] and [4] do not broadcast
  frame.add({slot(3), slot(2)}, {4});
  frame.add({slot(2), slot(4)}, {5});
  frame.add({slot(1), slot(2)}, {6});
  run();
  ASSERT_NE(poison(3), nullptr);
  EXPECT_EQ(poison(3)->kind, ErrorKind::kRuntime);
  EXPECT_THAT(poison(3)->message, HasSubstr("[add] "));
  EXPECT_EQ(poison(3)->op, "add");
  EXPECT_EQ(poison(3)->site, 77u);
  EXPECT_FALSE(poison(3)->retriable);
  EXPECT_EQ(poison(4), poison(3));  // the same error object
  EXPECT_EQ(poison(5), poison(3));
  EXPECT_EQ(value(6), 3);  // independent instructions still run
  EXPECT_EQ(executor.stats().failed, 1u);
}

TEST_F(ExecutorTest, OutOfMemoryCanBeRetried) {
  context.account = std::make_shared<Account>("session 3", 16);
  frame.add({slot(1), slot(2)}, {3});
  frame.add({slot(1), slot(2)}, {4});
  run();
  EXPECT_EQ(value(3), 3);
  ASSERT_NE(poison(4), nullptr);
  EXPECT_EQ(poison(4)->kind, ErrorKind::kOutOfMemory);
  EXPECT_TRUE(poison(4)->retriable);
}

TEST_F(ExecutorTest, IntoWritesNamedTensor) {
  void* bytes = slots.find(1)->tensor.data();
  uint32_t version = slots.find(1)->tensor.version();
  frame.add({slot(1), slot(2)}, {1}).flags |= Instruction::kInto;
  run();
  EXPECT_EQ(value(1), 3);
  EXPECT_EQ(slots.find(1)->tensor.data(), bytes);
  EXPECT_GT(slots.find(1)->tensor.version(), version);
}

TEST_F(ExecutorTest, FailedWriteWithholdsOtherViews) {
  slots.put(3, {detach(slots.find(1)->tensor), nullptr});
  frame.add({slot(1), slot(9)}, {4});
  frame.add({slot(1), slot(4)}, {1}).flags |= Instruction::kInto;
  frame.add({slot(3), slot(2)}, {5});
  run();
  ASSERT_NE(poison(4), nullptr);
  EXPECT_EQ(poison(3), poison(4));
  EXPECT_EQ(poison(5), poison(4));
  slots.acknowledge(slots.find(4)->poison);
  EXPECT_EQ(poison(3), nullptr);
  EXPECT_EQ(value(3), 1);
  EXPECT_NE(poison(5), nullptr);
}

TEST_F(ExecutorTest, FailedIntoPoisonsTarget) {
  frame.add({slot(1), slot(2)}, {9}).flags |= Instruction::kInto;
  frame.add({slot(9), slot(2)}, {1}).flags |= Instruction::kInto;
  frame.add({slot(2), slot(2)}, {9}).flags |= Instruction::kInto;  // a poisoned target stays poisoned
  run();
  ASSERT_NE(poison(9), nullptr);
  EXPECT_EQ(poison(1), poison(9));
}

TEST_F(ExecutorTest, FlagsSetContext) {
  slots.find(1)->tensor->requires_grad = true;
  frame.add({slot(1), slot(2)}, {3});
  frame.add({slot(1), slot(2)}, {4}).flags = 0;
  frame.add({slot(1), slot(2)}, {5}).flags = Instruction::kGrad | Instruction::kInference;
  run();
  EXPECT_TRUE(slots.find(3)->tensor.requires_grad());
  EXPECT_FALSE(slots.find(4)->tensor.requires_grad());
  EXPECT_FALSE(slots.find(5)->tensor.requires_grad());
}

TEST_F(ExecutorTest, FaultKeepsEarlierResults) {
  frame.add({slot(1), slot(2)}, {3});
  frame.add({slot(1), slot(55)}, {4});
  EXPECT_THAT(fault(1), HasSubstr("tensor 55 does not exist"));
  EXPECT_EQ(value(3), 3);
  EXPECT_EQ(slots.find(4), nullptr);
}

struct InvalidInstruction {
  friend void PrintTo(const InvalidInstruction& invalid, std::ostream* out) { *out << invalid.message; }
  const char* message;
  std::vector<Arg> args;
  std::vector<Slot> results;
  std::vector<Slot> release;
  uint8_t flags = Instruction::kGrad;
};

class ExecutorFault : public ExecutorTest, public testing::WithParamInterface<InvalidInstruction> {};

TEST_P(ExecutorFault, IsReportedAsFault) {
  const InvalidInstruction& invalid = GetParam();
  frame.add(invalid.args, invalid.results, invalid.release).flags = invalid.flags;
  EXPECT_THAT(fault(0), HasSubstr(invalid.message));
  EXPECT_EQ(executor.stats().instructions, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    InvalidFrames, ExecutorFault,
    testing::Values(InvalidInstruction{"is in use", {slot(1), slot(2)}, {1}},
                    InvalidInstruction{"name 0 is invalid", {slot(1), slot(2)}, {0}},
                    InvalidInstruction{"expected 1 result names, 2 were given", {slot(1), slot(2)}, {3, 4}},
                    InvalidInstruction{"expected 1 result names, 0 were given", {slot(1), slot(2)}, {}},
                    InvalidInstruction{"out tensor 3 does not exist", {slot(1), slot(2)}, {3}, {}, Instruction::kInto},
                    InvalidInstruction{"cannot release tensor 7: it does not exist", {slot(1), slot(2)}, {3}, {7}},
                    InvalidInstruction{"tensor 2 does not exist", {slot(1), slot(2)}, {3}, {2}},
                    InvalidInstruction{"takes 3 arguments, got 4", {slot(1), slot(2), Arg(1.0), Arg(1.0)}, {3}},
                    InvalidInstruction{"argument 'other' must be Tensor, not NoneType", {slot(1)}, {3}},
                    InvalidInstruction{"argument 'alpha' must be Number, not str",
                                       {slot(1), slot(2), Arg(std::string_view("x"))},
                                       {3}},
                    InvalidInstruction{"argument 'other' must be Tensor, not list of ints",
                                       {slot(1), Arg(absl::Span<const int64_t>())},
                                       {3}}));

}  // namespace
}  // namespace tt
