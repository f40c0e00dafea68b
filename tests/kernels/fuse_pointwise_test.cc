// Fused pointwise instructions: same values as unfused ones, and no allocation for results that are dropped unread.

#include "engine/program/passes/fuse_pointwise.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "engine/composites/composites.h"
#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/ops.h"
#include "engine/program/chain_code.h"
#include "engine/program/executor.h"
#include "engine/program/poison.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "tests/kernels/backend.h"

namespace tt {
namespace {

using namespace testing;  // NOLINT: tensors.h

constexpr int64_t kLarge = 1 << 15;
constexpr Slot kA = 1, kB = 2;

Arg slot(Slot name) { return slot_arg(name); }

class Frame {
 public:
  // `release`: dropped before the instruction runs.
  void add(uint16_t op, Slot result, std::vector<Arg> args, std::vector<Slot> release = {}, uint8_t flags = 0) {
    Instruction& instruction = program_.add(*find_op(op), args, {result}, release);
    instruction.flags = flags;
    instruction.site = static_cast<uint32_t>(program_.instructions().size());
  }
  void read_at_end(std::vector<Slot> names) { program_.set_outputs(names); }
  void release_at_end(std::vector<Slot> names) { program_.set_release(names); }
  const Program& program() const { return program_; }

 private:
  Program program_;
};

class FusePointwise : public ::testing::Test {
 protected:
  FusePointwise() {
    have_backend();
    register_composites(Dispatcher::instance());
    a_ = filled({kLarge});
    b_ = filled({kLarge});
    slots_.put(kA, {a_, nullptr});
    slots_.put(kB, {b_, nullptr});
  }
  // Returns how many instructions were fused into another instruction's loop.
  uint64_t run(const Frame& frame) {
    const uint64_t before = executor_.stats().fused;
    Program program = frame.program();
    fuse_pointwise(&program, slots_, reads_);
    instructions_ = program.instructions().size();
    for (const ReadPoint& read : reads_) {
      executor_.run(program, slots_, read.instruction);
      const SlotValue* value = slots_.find(read.slot);
      read_values_.push_back(value == nullptr ? Tensor() : ops::clone(value->tensor));
    }
    executor_.run(program, slots_);
    for (Slot name : program.release()) EXPECT_TRUE(slots_.release(name)) << name;
    return executor_.stats().fused - before;
  }
  void expect_value(Slot name, const Tensor& want) {
    const SlotValue* value = slots_.find(name);
    ASSERT_TRUE(value && !value->poison);
    expect_close(value->tensor, want, 0);
  }

  Context context_;
  ContextScope scope_{&context_};
  Tensor a_, b_;
  SlotTable slots_;
  std::vector<ReadPoint> reads_;
  std::vector<Tensor> read_values_;  // of reads_
  size_t instructions_ = 0;          // number in the last Program, after fusion
  Executor executor_;
};

TEST_F(FusePointwise, RunsChainAsOneLoop) {
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
  frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)});
  frame.add(op_id::kRelu, 12, {slot(11)}, {10});
  frame.release_at_end({11});
  Allocator& memory = Devices::instance().allocator(Device{});
  const uint64_t allocations = memory.stats().allocations;
  EXPECT_EQ(run(frame), 2u);
  EXPECT_EQ(memory.stats().allocations, allocations + 1);
  EXPECT_EQ(slots_.find(10), nullptr);
  EXPECT_EQ(slots_.find(11), nullptr);
  expect_value(12, ops::relu(ops::mul(ops::add(a_, b_), 2.0)));
}

// An operator in autocast's lists is executed alone, because it casts its argument.
TEST_F(FusePointwise, LeavesListedOperatorsToAutocast) {
  for (bool autocasts : {false, true}) {
    Frame frame;
    frame.add(op_id::kExp, 10, {slot(kA)});
    frame.add(op_id::kNeg, 11, {slot(10)});
    frame.release_at_end({10});
    Program program = frame.program();
    fuse_pointwise(&program, slots_, {}, autocasts);
    EXPECT_EQ(program.instructions().size(), autocasts ? 2u : 1u);
  }
}

// The chain 10 to 13, whose intermediate results are released, with a read at every point.
TEST_F(FusePointwise, ReadsBetweenInstructions) {
  const auto chain = [] {
    Frame frame;
    frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
    frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)});
    frame.add(op_id::kRelu, 12, {slot(11)}, {10});
    frame.add(op_id::kNeg, 13, {slot(12)}, {11});
    frame.release_at_end({12});
    return frame;
  };
  const Tensor sum = ops::add(a_, b_), product = ops::mul(sum, 2.0);
  const std::vector<Tensor> results = {a_, sum, product, ops::relu(product)};
  const std::vector<Slot> names = {kA, 10, 11, 12};
  for (size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(i);
    reads_ = {{i, names[i]}};
    read_values_.clear();
    const uint64_t fused = run(chain());
    EXPECT_EQ(fused, i == 0 ? 3u : 2u);  // four instructions in one chain, or in two parts
    ASSERT_TRUE(read_values_[0]);
    expect_close(read_values_[0], results[i], 0);
    expect_value(13, ops::neg(results[3]));
    slots_.release(13);
  }
  reads_ = {{2, kA}, {2, 11}, {4, 13}};
  read_values_.clear();
  run(chain());
  expect_close(read_values_[1], product, 0);
  expect_close(read_values_[2], ops::neg(results[3]), 0);
}

// Another value may be read between a chain and the release of its intermediate results.
TEST_F(FusePointwise, ReadAfterChainKeepsOnlyWhatItReads) {
  for (const Slot read : {Slot{10}, Slot{11}}) {
    Frame frame;
    frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
    frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)});
    frame.add(op_id::kSum, 12, {slot(kA)}, {10});
    reads_ = {{2, read}};
    read_values_.clear();
    EXPECT_EQ(run(frame), read == 11 ? 1u : 0u);
    ASSERT_TRUE(read_values_[0]);
    expect_close(read_values_[0], read == 10 ? ops::add(a_, b_) : ops::mul(ops::add(a_, b_), 2.0), 0);
    for (Slot name : {11, 12}) slots_.release(name);
  }
}

TEST_F(FusePointwise, UsesResultTwiceAndMixesBooleans) {
  Frame frame;
  frame.add(op_id::kSub, 10, {slot(kA), slot(kB)});
  frame.add(op_id::kGt, 11, {slot(10), Arg(0.5)});
  frame.add(op_id::kWhere, 12, {slot(11), slot(10), slot(kA)}, {});
  frame.add(op_id::kPow, 13, {slot(12), Arg(int64_t{3})}, {10, 11});
  frame.add(op_id::kNeg, 14, {slot(kB)}, {12});
  EXPECT_EQ(run(frame), 3u);
  const Tensor difference = ops::sub(a_, b_);
  expect_value(13, ops::pow(ops::where(ops::gt(difference, 0.5), difference, a_), int64_t{3}));
  expect_value(14, ops::neg(b_));
}

TEST_F(FusePointwise, KeepsUnreleasedResults) {
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
  frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)});
  frame.add(op_id::kRelu, 12, {slot(11)}, {10});
  EXPECT_EQ(run(frame), 1u);  // result 11 is still used, so only the first two are fused
  expect_value(11, ops::mul(ops::add(a_, b_), 2.0));
  expect_value(12, ops::relu(ops::mul(ops::add(a_, b_), 2.0)));
}

TEST_F(FusePointwise, ReleasesArgumentsWithinChain) {
  Frame frame;
  frame.add(op_id::kMul, 10, {slot(kA), slot(kA)});
  frame.add(op_id::kAdd, 11, {slot(10), slot(kB)}, {kA});
  frame.add(op_id::kNeg, 12, {slot(11)}, {10, kB});
  frame.release_at_end({11});
  EXPECT_EQ(run(frame), 2u);
  EXPECT_EQ(slots_.find(kA), nullptr);
  EXPECT_EQ(slots_.find(kB), nullptr);
  expect_value(12, ops::neg(ops::add(ops::mul(a_, a_), b_)));
}

TEST_F(FusePointwise, BroadcastsArgumentsButNotResults) {
  slots_.put(3, {filled({128, 1}), nullptr});
  const Tensor column = slots_.find(3)->tensor;
  slots_.put(4, {filled({kLarge / 128}), nullptr});
  const Tensor row = slots_.find(4)->tensor;
  slots_.put(5, {filled({128, kLarge / 128}), nullptr});
  const Tensor matrix = slots_.find(5)->tensor;
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(5), slot(4)});
  frame.add(op_id::kMul, 11, {slot(10), slot(3)});
  frame.add(op_id::kNeg, 12, {slot(kA)}, {10});
  EXPECT_EQ(run(frame), 1u);
  expect_value(11, ops::mul(ops::add(matrix, row), column));
}

TEST_F(FusePointwise, LeavesErrorsToTheirInstruction) {
  slots_.put(3, {constant({kLarge}, 0, DType::kInt32), nullptr});
  slots_.put(4, {filled({kLarge}, DType::kInt32), nullptr});
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(4), slot(4)});
  frame.add(op_id::kFloorDivide, 11, {slot(10), slot(3)});
  frame.add(op_id::kNeg, 12, {slot(11)}, {10});
  frame.release_at_end({11});
  EXPECT_EQ(run(frame), 0u);
  EXPECT_EQ(instructions_, 1u);
  ASSERT_TRUE(slots_.find(12)->poison);
  EXPECT_EQ(slots_.find(12)->poison->op, "floor_divide");
  EXPECT_EQ(slots_.find(12)->poison->site, 2u);

  Frame bad_shape;
  bad_shape.add(op_id::kAdd, 20, {slot(kA), slot(kB)});
  bad_shape.add(op_id::kMul, 21, {slot(20), slot(30)});
  slots_.put(30, {filled({7}), nullptr});
  run(bad_shape);
  EXPECT_EQ(slots_.find(21)->poison->op, "mul");
  expect_value(20, ops::add(a_, b_));
}

TEST_F(FusePointwise, RejectsInvalidProgramsLikeExecutor) {
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
  frame.add(op_id::kMul, 11, {slot(10), slot(10)}, {10});  // reads a released slot
  EXPECT_THROW(run(frame), ProgramFault);
  Frame twice;
  twice.add(op_id::kAdd, 20, {slot(kA), slot(kB)});
  twice.add(op_id::kMul, 20, {slot(20), Arg(2.0)});
  EXPECT_THROW(run(twice), ProgramFault);
}

TEST_F(FusePointwise, SplitsChainThatOneLoopCannotRun) {
  const Tensor wide = filled({kLarge}, DType::kFloat64);
  slots_.put(3, {wide, nullptr});
  Frame frame;
  frame.add(op_id::kMul, 10, {slot(kA), Arg(2.0)});
  frame.add(op_id::kAdd, 11, {slot(10), slot(3)});  // computes in float64
  frame.add(op_id::kNeg, 12, {slot(11)}, {10});
  frame.release_at_end({11});
  EXPECT_EQ(run(frame), 1u);
  EXPECT_EQ(instructions_, 1u);
  expect_value(12, ops::neg(ops::add(ops::mul(a_, 2.0), wide)));
}

// The bits of the operators one by one, for every way in which the driver reads its input.
class FuseReduction : public FusePointwise, public ::testing::WithParamInterface<int> {
 protected:
  FuseReduction() { set_num_threads(GetParam()); }
  ~FuseReduction() override { set_num_threads(before_); }

 private:
  const int before_ = num_threads();
};

INSTANTIATE_TEST_SUITE_P(Threads, FuseReduction, ::testing::Values(1, 4));

TEST_P(FuseReduction, HasTheBitsOfTheOperators) {
  const int threads = GetParam();
  const int64_t all[] = {0, 1}, rows[] = {1}, columns[] = {0};
  const std::vector<absl::Span<const int64_t>> dims = {{}, all, rows, columns};
  Allocator& memory = Devices::instance().allocator(Device{});
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Sizes& sizes : {Sizes{64, 1000}, Sizes{700, 1500}, Sizes{3, 40000}, Sizes{2500, 512}}) {
      const Tensor x = filled(sizes, dtype), y = filled({sizes[1]}, dtype);
      slots_.put(3, {x, nullptr});
      slots_.put(4, {y, nullptr});
      for (const uint16_t op : {op_id::kSum, op_id::kNansum, op_id::kMean, op_id::kProd}) {
        for (const absl::Span<const int64_t> dim : dims) {
          if (op == op_id::kProd && dim.size() > 1) continue;  // the same as all dimensions
          SCOPED_TRACE(::testing::Message()
                       << name(dtype) << to_string(sizes) << " op " << op << " dims " << dim.size());
          const Arg dim_arg = dim.empty() ? Arg() : Arg(dim);
          Frame frame;
          frame.add(op_id::kMul, 10, {slot(3), slot(4)});
          frame.add(op_id::kTanh, 11, {slot(10)});
          frame.add(op, 12, {slot(11), dim_arg, Arg(dim.size() == 1), Arg()}, {10});
          frame.release_at_end({11});
          const uint64_t allocations = memory.stats().allocations;
          const uint64_t fused = run(frame);
          const int64_t outputs = slots_.find(12)->tensor.numel();
          if (std::max(outputs, x.numel() >> 18) >= threads) {  // what the reduction can be divided into
            EXPECT_EQ(fused, 2u);
            EXPECT_EQ(memory.stats().allocations, allocations + 1);
          } else {
            EXPECT_EQ(fused, 1u);
          }
          const Tensor reduced = ops::tanh(ops::mul(x, y));
          const std::vector<Arg> args = {Arg(reduced.get()), dim_arg, Arg(dim.size() == 1), Arg()};
          Call alone;
          alone.op = find_op(op);
          alone.args = args;
          ASSERT_EQ(try_dispatch(alone, 0), nullptr);
          const Tensor got = slots_.find(12)->tensor, want = alone.outputs[0];
          ASSERT_EQ(got.sizes(), want.sizes());
          const size_t bytes = static_cast<size_t>(want.numel()) * item_size(dtype);
          EXPECT_EQ(std::memcmp(got.data(), want.data(), bytes), 0);
          slots_.release(12);
        }
      }
      slots_.release(3);
      slots_.release(4);
    }
  }
}

// Chains as a Program contains them, with any of their results kept, also after they were planned.
TEST_P(FuseReduction, RandomChainsHaveTheBitsOfTheOperators) {
  constexpr uint16_t kUnary[] = {op_id::kTanh, op_id::kExp, op_id::kRelu, op_id::kNeg, op_id::kSqrt};
  constexpr uint16_t kBinary[] = {op_id::kMul, op_id::kSub, op_id::kMaximum};
  constexpr uint16_t kReductions[] = {op_id::kSum, op_id::kMean, op_id::kNansum};
  std::minstd_rand random(7);
  const auto draw = [&](size_t n) { return random() % n; };
  const int64_t rows[] = {1}, columns[] = {0};
  const auto run_alone = [](uint16_t op, std::vector<Arg> args) {
    Call call;
    call.op = find_op(op);
    args.resize(call.op->params.size());
    if (op == op_id::kSub) args[2] = Arg(int64_t{1});
    call.args = args;
    Dispatcher::instance().dispatch(call);
    return call.outputs[0];
  };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const Sizes sizes = std::vector<Sizes>{{16, 1024}, {8, 64}, {3, 5}, {2, 40000}, {600, 2}}[draw(5)];
    const DType dtype = draw(4) == 0 ? DType::kFloat64 : DType::kFloat32;
    Tensors inputs = {filled(sizes, dtype), filled({sizes[1]}, dtype), filled({sizes[1], sizes[0]}, dtype)};
    inputs[2] = ops::permute(inputs[2], {1, 0});
    if (draw(4) == 0) inputs[1] = inputs[0];
    ChainWriter writer;
    Tensors made, expected;
    const size_t steps = 1 + draw(7);
    for (size_t i = 0; i < steps; ++i) {
      const bool is_unary = draw(2) == 0;
      const uint16_t op = is_unary ? kUnary[draw(std::size(kUnary))] : kBinary[draw(std::size(kBinary))];
      const bool is_kept = draw(3) == 0;
      writer.begin_step(*find_op(op), 1, 10 + i, find_op(op)->params.size(), is_kept);
      std::vector<Arg> args;
      for (size_t a = 0; a < (is_unary ? 1u : 2u); ++a) {
        // The first argument leads to the one before, so that the results have the chain's sizes.
        if (a == 0 && i > 0) {
          const size_t from = draw(4) == 0 ? draw(i) : i - 1;
          writer.add_result(from);
          args.emplace_back(made[from].get());
        } else {
          const size_t from = a == 0 ? 0 : draw(3);
          writer.add_input(from);
          args.emplace_back(inputs[from].get());
        }
      }
      if (op == op_id::kSub) writer.add_value(Arg(int64_t{1}));
      made.push_back(run_alone(op, args));
      if (is_kept || i + 1 == steps) expected.push_back(made.back());
      if (i + 1 == steps && draw(2) == 0) {
        if (!is_kept) expected.pop_back();
        const uint16_t reduction = kReductions[draw(std::size(kReductions))];
        const size_t dims = draw(3);
        std::vector<Arg> more = {dims == 0 ? Arg() : Arg(absl::MakeConstSpan(dims == 1 ? rows : columns)), Arg(false),
                                 Arg()};
        writer.begin_step(*find_op(reduction), 1, 10 + steps, more.size() + 1);
        writer.add_result(steps - 1);
        for (const Arg& arg : more) writer.add_value(arg);
        more.insert(more.begin(), Arg(made.back().get()));
        expected.push_back(run_alone(reduction, more));
      }
    }
    for (int run = 0; run < 6; ++run) {
      const Tensors results = ops::pointwise_chain(inputs, writer.code());
      ASSERT_EQ(results.size(), expected.size());
      for (size_t i = 0; i < results.size(); ++i) {
        const Tensor got = ops::contiguous(results[i]), want = ops::contiguous(expected[i]);
        ASSERT_EQ(got.sizes(), want.sizes());
        const size_t bytes = static_cast<size_t>(want.numel()) * item_size(dtype);
        ASSERT_EQ(std::memcmp(got.data(), want.data(), bytes), 0) << "run " << run << ", result " << i;
      }
    }
  }
}

TEST_F(FusePointwise, LeavesShortRowsAndOtherTypesToTheReduction) {
  const int64_t dim[] = {1};
  slots_.put(3, {filled({4096, 16}), nullptr});
  slots_.put(4, {filled({64, 1000}, DType::kInt64), nullptr});
  for (const Slot input : {Slot{3}, Slot{4}}) {
    const Tensor x = slots_.find(input)->tensor;
    Frame frame;
    frame.add(op_id::kMul, 10, {slot(input), slot(input)});
    frame.add(op_id::kNeg, 11, {slot(10)});
    frame.add(op_id::kSum, 12, {slot(11), Arg(absl::MakeConstSpan(dim)), Arg(false), Arg()}, {10});
    frame.release_at_end({11});
    EXPECT_EQ(run(frame), 1u);
    expect_value(12, ops::sum(ops::neg(ops::mul(x, x)), absl::MakeConstSpan(dim), false, std::nullopt));
    slots_.release(12);
  }
}

// assign() drops leading dimensions of its second argument, which loops do not.
TEST_F(FusePointwise, LeavesArgumentsOfMoreDimensionsToTheirStep) {
  const int64_t dim[] = {0};
  const Tensor wide = filled({1, kLarge});
  slots_.put(3, {wide, nullptr});
  Frame frame;
  frame.add(op_id::kAssign, 10, {slot(kA), slot(3)});
  frame.add(op_id::kSum, 11, {slot(10), Arg(absl::MakeConstSpan(dim)), Arg(false), Arg()});
  frame.add(op_id::kNeg, 12, {slot(kA)}, {10});
  frame.add(op_id::kAssign, 13, {slot(12), slot(3)});
  frame.release_at_end({12});
  run(frame);
  expect_value(11, ops::sum(wide));
  expect_value(13, ops::reshape(wide, {kLarge}));
}

TEST_F(FusePointwise, LeavesReductionsToProfiles) {
  for (const bool is_observed : {false, true}) {
    for (const bool starts : {false, true}) {
      Frame frame;
      if (starts) frame.add(op_id::kProfilerStart, 9, {Arg(false), Arg(int64_t{10}), Arg(false)});
      frame.add(op_id::kExp, 10, {slot(kA)});
      frame.add(op_id::kSum, 11, {slot(10)});
      frame.release_at_end({10});
      Program program = frame.program();
      fuse_pointwise(&program, slots_, {}, /*autocasts=*/false, is_observed);
      EXPECT_EQ(program.instructions().size(), (starts ? 2u : 1u) + (is_observed || starts ? 1u : 0u));
    }
  }
}

TEST_F(FusePointwise, LeavesErrorsToTheReduction) {
  const int64_t dim[] = {3};
  Frame frame;
  frame.add(op_id::kMul, 10, {slot(kA), slot(kB)});
  frame.add(op_id::kSum, 11, {slot(10), Arg(absl::MakeConstSpan(dim)), Arg(false), Arg()});
  frame.release_at_end({10});
  EXPECT_EQ(run(frame), 0u);
  ASSERT_TRUE(slots_.find(11)->poison);
  EXPECT_EQ(slots_.find(11)->poison->op, "sum");
  EXPECT_EQ(slots_.find(11)->poison->site, 2u);
}

TEST_F(FusePointwise, FusesLargeTensorsAtRunTime) {
  const int64_t small[] = {4}, large[] = {kLarge};
  for (absl::Span<const int64_t> sizes : {absl::MakeConstSpan(small), absl::MakeConstSpan(large)}) {
    Frame frame;
    frame.add(op_id::kOnes, 10, {Arg(sizes), Arg(), Arg()});
    frame.add(op_id::kAdd, 11, {slot(10), Arg(1.0)});
    frame.add(op_id::kMul, 12, {slot(11), Arg(3.0)});
    frame.release_at_end({10, 11});
    EXPECT_EQ(run(frame), sizes[0] == kLarge ? 1u : 0u);
    EXPECT_EQ(instructions_, 2u);
    expect_value(12, ops::full(sizes, Scalar(6.0), DType::kFloat32, std::nullopt));
    slots_.release(12);
  }
}

TEST_F(FusePointwise, SkipsSmallAndRecordedChains) {
  slots_.put(3, {filled({8}), nullptr});
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(3), slot(3)});
  frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)});
  frame.add(op_id::kNeg, 12, {slot(11)}, {10});
  frame.release_at_end({11});
  EXPECT_EQ(run(frame), 0u);
  EXPECT_EQ(instructions_, 3u);
}

TEST_F(FusePointwise, KeepsResultsThatAreRead) {
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
  frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)});
  frame.read_at_end({10});
  frame.release_at_end({10});
  EXPECT_EQ(run(frame), 0u);
  expect_value(11, ops::mul(ops::add(a_, b_), 2.0));
}

TEST_F(FusePointwise, LeavesInvalidInstructionsToExecutor) {
  const auto refused_at = [&](Frame& frame) {
    try {
      run(frame);
    } catch (const ProgramFault& fault) {
      return static_cast<int>(fault.instruction);
    }
    return -1;
  };
  Frame kind;
  kind.add(op_id::kAdd, 10, {slot(kA), slot(kB)});
  kind.add(op_id::kMul, 11, {slot(10), Arg(std::string_view("x"))});
  kind.add(op_id::kRelu, 12, {slot(11)}, {10});
  kind.release_at_end({11});
  EXPECT_EQ(refused_at(kind), 1);
  Frame missing;
  missing.add(op_id::kAdd, 20, {slot(kA), slot(kB)});
  missing.add(op_id::kMul, 21, {slot(20), slot(99)});
  missing.release_at_end({20});
  EXPECT_EQ(refused_at(missing), 1);
  Frame dropped_twice;
  dropped_twice.add(op_id::kAdd, 30, {slot(kA), slot(kB)});
  dropped_twice.add(op_id::kMul, 31, {slot(30), Arg(2.0)});
  dropped_twice.add(op_id::kNeg, 32, {slot(kB)}, {30, 30});
  EXPECT_EQ(refused_at(dropped_twice), 2);
  Frame many;
  std::vector<Slot> names(1000);
  for (size_t i = 0; i < names.size(); ++i) names[i] = 1000 + i;
  many.add(op_id::kAdd, 40, {slot(kA), slot(kB)});
  many.add(op_id::kMul, 41, {slot(40), Arg(2.0)}, names);
  EXPECT_EQ(refused_at(many), 1);
}

TEST_F(FusePointwise, ReleasesInputsOfOtherTypesAtTheirStep) {
  const Tensor half = filled({kLarge}, DType::kFloat16);
  slots_.put(3, {half, nullptr});
  Frame frame;
  frame.add(op_id::kRelu, 10, {slot(3)});
  frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)}, {3});
  frame.release_at_end({10});
  EXPECT_EQ(run(frame), 0u);
  EXPECT_EQ(instructions_, 2u);
}

// The fused operator, sent by a client.
TEST_F(FusePointwise, ChecksChainFromWire) {
  ChainWriter writer;
  writer.begin_step(*find_op(op_id::kMul), 5, 0, 2);
  writer.add_input(0);
  writer.add_input(1);
  const std::vector<int64_t> code(writer.code().begin(), writer.code().end());
  const auto poison_of = [&](Slot result, std::vector<Slot> inputs, const std::vector<int64_t>& steps) {
    Arg list;
    list.kind = Arg::Kind::kSlots;
    list.size = static_cast<uint32_t>(inputs.size());
    list.slots = inputs.data();
    Program program;
    program.add(*find_op(op_id::kPointwiseChain), {list, Arg(absl::MakeConstSpan(steps))}, {result});
    executor_.run(program, slots_);
    const SlotValue* value = slots_.find(result);
    return value->poison ? value->poison->message : "";
  };
  EXPECT_EQ(poison_of(10, {kA, kB}, code), "");
  expect_value(10, ops::mul(a_, b_));
  EXPECT_NE(poison_of(11, {kA}, code), "");
  EXPECT_NE(poison_of(12, std::vector<Slot>(300, kA), code), "");
  std::vector<int64_t> far = code;
  far[3] = 1 | 200 << 8;
  EXPECT_NE(poison_of(13, std::vector<Slot>(300, kA), far), "");
  writer.clear();
  writer.begin_step(*find_op(op_id::kMul), 5, 0, 2);
  writer.add_value(Arg(std::string_view("x")));
  writer.add_input(0);
  EXPECT_NE(poison_of(14, {kA}, {writer.code().begin(), writer.code().end()}), "");
  EXPECT_EQ(slots_.find(14)->poison->op, "mul");
}

TEST_F(FusePointwise, RecordsGradientOfEachStep) {
  a_->requires_grad = true;
  Frame frame;
  frame.add(op_id::kAdd, 10, {slot(kA), slot(kB)}, {}, Instruction::kGrad);
  frame.add(op_id::kMul, 11, {slot(10), Arg(2.0)}, {}, Instruction::kGrad);
  frame.add(op_id::kRelu, 12, {slot(11)}, {10}, Instruction::kGrad);
  frame.release_at_end({11});
  EXPECT_EQ(run(frame), 0u);
  EXPECT_EQ(instructions_, 3u);
  Frame without;
  without.add(op_id::kAdd, 20, {slot(kA), slot(kB)});
  without.add(op_id::kMul, 21, {slot(20), Arg(2.0)});
  without.release_at_end({20});
  EXPECT_EQ(run(without), 1u);
}

}  // namespace
}  // namespace tt
