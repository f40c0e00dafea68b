#include "engine/dispatch/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cancellation.h"
#include "engine/device/fair_queue.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The path of the call. The kernels of these tests append to it, since kernels are plain functions.
std::vector<std::string>& path() {
  static std::vector<std::string> path;
  return path;
}
const Dispatcher*& table() {
  static const Dispatcher* table = nullptr;
  return table;
}

template <Key kKey>
void pass(Call& call) {
  path().push_back("pass " + std::to_string(static_cast<int>(kKey)));
  table()->redispatch(call, kKey);
}
template <Key kKey>
void compute(Call& call) {
  path().push_back("compute " + std::to_string(static_cast<int>(kKey)));
  allocate_outputs(call);
}
void composite(Call& call) {
  path().push_back("composite");
  allocate_outputs(call);
}

struct DispatcherTest : testing::Test {
  DispatcherTest() {
    path().clear();
    table() = &dispatcher;
  }
  Call call_add(const Tensor& x, const Tensor& y) {
    operands[0] = x;  // keeps temporaries alive
    operands[1] = y;
    args[0] = Arg(x.get());
    args[1] = Arg(y.get());
    args[2] = Arg(int64_t{1});
    Call call;
    call.op = find_op(op_id::kAdd);
    call.args = args;
    return call;
  }
  void run_add(const Tensor& x, const Tensor& y) {
    Call call = call_add(x, y);
    dispatcher.dispatch(call);
  }
  std::string error_of(Call call, ErrorKind kind = ErrorKind::kRuntime) {
    try {
      dispatcher.dispatch(call);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      return e.message();
    }
    return "no error";
  }
  static Tensor make(SizesView sizes, DType dtype = DType::kFloat32, Device device = {}) {
    return empty(sizes, dtype, device);
  }

  Dispatcher dispatcher;
  Context context;
  ContextScope scope{&context};
  Tensor operands[2];
  Arg args[3];
};

TEST_F(DispatcherTest, KeysRunInOrder) {
  dispatcher.set_fallback(Key::kAutograd, &pass<Key::kAutograd>);
  dispatcher.set(op_id::kAdd, Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  x->requires_grad = true;
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("pass 1", "compute 4"));
}

void cast(Call& call) {
  path().push_back("cast");
  table()->dispatch(call);
}

// Autocast applies to an instruction's call of a listed operator that creates its results, not to the calls inside.
TEST_F(DispatcherTest, AutocastComesFirst) {
  dispatcher.set_fallback(Key::kAutocast, &cast);
  dispatcher.set_fallback(Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2}), out = make({2});
  const Arg arg[] = {x.get()};
  const auto path_of = [&](uint16_t op, bool into) {
    path().clear();
    Call call;
    call.op = find_op(op);
    call.args = arg;
    call.into = into;
    if (into) call.outputs.push_back(out);
    context.autocasts = true;
    dispatcher.dispatch(call);
    EXPECT_FALSE(context.autocasts);
    return path();
  };
  EXPECT_THAT(path_of(op_id::kExp, false), ElementsAre("cast", "compute 4"));
  EXPECT_THAT(path_of(op_id::kExp, true), ElementsAre("compute 4"));
  EXPECT_THAT(path_of(op_id::kSin, false), ElementsAre("compute 4"));  // in no list
}

TEST_F(DispatcherTest, KeysThatDoNotApplyAreSkipped) {
  dispatcher.set_fallback(Key::kAutograd, &pass<Key::kAutograd>);
  dispatcher.set(op_id::kAdd, Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("compute 4"));
}

TEST_F(DispatcherTest, AutogradIsSkippedWithoutGradMode) {
  dispatcher.set_fallback(Key::kAutograd, &pass<Key::kAutograd>);
  dispatcher.set(op_id::kAdd, Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  x->requires_grad = true;
  GradMode off(false);
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("compute 4"));
}

TEST_F(DispatcherTest, AutogradKernelOfOperatorAlwaysRuns) {
  dispatcher.set(op_id::kAdd, Key::kAutograd, &pass<Key::kAutograd>);
  dispatcher.set(op_id::kAdd, Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("pass 1", "compute 4"));
}

TEST_F(DispatcherTest, KernelPrecedesFallbackAndNullFallsThrough) {
  dispatcher.set_fallback(Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  x->requires_grad = true;  // ignored, because no autograd kernels are registered
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("compute 4"));
  path().clear();
  dispatcher.set(op_id::kAdd, Key::kCPU, &composite);
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("composite"));
}

TEST_F(DispatcherTest, CompositesRunAtAutogradKey) {
  dispatcher.set_fallback(Key::kAutograd, &pass<Key::kAutograd>);
  dispatcher.set_composite(op_id::kAdd, &composite);
  Tensor x = make({2});
  run_add(x, x);
  x->requires_grad = true;
  run_add(x, x);
  run_add(make({2}, DType::kFloat32, {DeviceType::kMeta}), make({2}, DType::kFloat32, {DeviceType::kMeta}));
  EXPECT_THAT(path(), ElementsAre("composite", "composite", "composite"));
}

TEST_F(DispatcherTest, OnlySuspendingOperatorsRunInACancelledFrame) {
  dispatcher.set(op_id::kAdd, Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  Cancellation cancellation;
  CancellationScope cancelled(&cancellation);
  cancellation.request(CancelReason::kClient);
  EXPECT_THAT(error_of(call_add(x, x)), HasSubstr("cancelled"));
  EXPECT_TRUE(path().empty());
  dispatcher.set_suspending(op_id::kAdd);
  run_add(x, x);
  EXPECT_THAT(path(), ElementsAre("compute 4"));
}

TEST_F(DispatcherTest, ATurnIsOfferedBeforeEachKernel) {
  dispatcher.set(op_id::kAdd, Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2});
  FairQueue queue(1);
  Share share("alice");
  Flow flow, other;
  std::atomic<bool> had_turn{false};
  std::thread waiting;
  {
    Turn turn(&queue, &share, &flow);
    turn.add(std::chrono::seconds(1));
    waiting = std::thread([&] {
      const Turn its(&queue, &share, &other);
      had_turn = true;
    });
    while (queue.waiting() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(2 * FairQueue::kQuantum);  // not offered earlier
    run_add(x, x);
    EXPECT_TRUE(had_turn);
  }
  waiting.join();
}

TEST_F(DispatcherTest, MissingKernelIsNotImplemented) {
  Tensor x = make({2});
  EXPECT_EQ(error_of(call_add(x, x), ErrorKind::kNotImplemented), "[add] is not implemented for cpu");
}

TEST_F(DispatcherTest, MetaRunsRulesOnly) {
  Device meta{DeviceType::kMeta};
  Tensor x = make({int64_t{1} << 20, 1 << 20}, DType::kInt32, meta), y = make({1 << 20}, DType::kFloat16, meta);
  Call call = call_add(x, y);
  dispatcher.dispatch(call);
  ASSERT_EQ(call.outputs.size(), 1u);
  EXPECT_EQ(describe(call.outputs[0].meta()), "float16[1048576, 1048576]");
  EXPECT_EQ(call.outputs[0].device(), meta);
  EXPECT_EQ(call.outputs[0]->storage->data(), nullptr);
}

TEST_F(DispatcherTest, RejectsTensorsOnTwoDevicesExceptScalars) {
  Device meta{DeviceType::kMeta};
  Tensor x = make({2}, DType::kFloat32, meta);
  EXPECT_THAT(error_of(call_add(x, make({2}))), HasSubstr("Expected all tensors to be on the same device"));
  Call zero_dim = call_add(make({}), x);
  dispatcher.dispatch(zero_dim);
  EXPECT_EQ(zero_dim.outputs[0].device(), meta);
}

TEST_F(DispatcherTest, RejectsOversizedTensors) {
  Device meta{DeviceType::kMeta};
  Tensor x = make({int64_t{1} << 40, 1}, DType::kFloat32, meta), y = make({1, int64_t{1} << 40}, DType::kFloat32, meta);
  EXPECT_THAT(error_of(call_add(x, y)), HasSubstr("[add] Storage size calculation overflowed"));
}

TEST_F(DispatcherTest, ResultsRequireGradIfArgumentsDo) {
  dispatcher.set_fallback(Key::kCPU, &compute<Key::kCPU>);
  Tensor x = make({2}), i = make({2}, DType::kInt64);
  x->requires_grad = true;
  Call floats = call_add(x, i);
  dispatcher.dispatch(floats);
  EXPECT_TRUE(floats.outputs[0].requires_grad());
  Call integers = call_add(i, i);
  dispatcher.dispatch(integers);
  EXPECT_FALSE(integers.outputs[0].requires_grad());
}

}  // namespace
}  // namespace tt
