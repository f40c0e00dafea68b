// Errors detected by kernels: which values they poison.
#include "kernels/cuda/launch/device_error.h"

#include <gtest/gtest.h>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "engine/program/slot_table.h"
#include "engine/schema/op_ids.h"
#include "kernels/cuda/launch/launch.h"
#include "tests/cuda/simulated/engine.h"

namespace tt::cuda {
namespace {

// x[index], as a kernel with error checks computes it.
Tensor pick(const Tensor& x, const Tensor& index) {
  Tensor out = empty(index.sizes(), x.dtype(), x.device());
  const Queue queue = queue_of(x);
  DeviceErrorCell* cell = open_error_cell(queue, &index_out_of_range);
  const float* from = x.data_as<float>();
  const auto* at = index.data_as<int64_t>();
  auto* to = out.data_as<float>();
  const int64_t size = x.numel();
  for_each(queue, out.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t j = at[i];
    to[i] = from[in_range(j, size) ? j : report_error(cell, j, 0, size)];
  });
  const Arg args[] = {x.get(), Arg(int64_t{0}), index.get()};
  Call call;
  call.op = find_op("index_select");
  call.args = args;
  call.outputs.push_back(out);
  Context::current().site = 7;
  Context::current().async_errors().attach(call);
  return out;
}

Tensor numbers(const SimulatedEngine& engine, int64_t end, DType dtype) {
  return ops::arange(end, dtype, engine.gpu());
}

class FaultTest : public testing::Test {
 protected:
  // Waits for the device; the results are then poisoned.
  void retire_all() {
    Devices::instance().backend(engine_.gpu()).synchronize();
    while (!log().empty()) log().retire_completed(slots_);
  }
  AsyncErrorTracker& log() { return engine_.context().async_errors(); }
  const Poison* poison(Slot slot) { return slots_.find(slot)->poison.get(); }

  SimulatedEngine engine_;
  SlotTable slots_;
};

TEST_F(FaultTest, InvalidIndexPoisonsDependentsOnly) {
  const Tensor x = numbers(engine_, 4, DType::kFloat32);
  const Tensor good = numbers(engine_, 3, DType::kInt64),
               bad = ops::full({3}, int64_t{9}, DType::kInt64, engine_.gpu());
  slots_.put(1, {pick(x, good), nullptr});
  const Tensor wrong = pick(x, bad);
  slots_.put(2, {wrong, nullptr});
  slots_.put(3, {ops::clone(wrong), nullptr});
  slots_.put(4, {ops::clone(x), nullptr});
  EXPECT_FALSE(poison(2)) << "the device was not synchronized yet";
  retire_all();
  EXPECT_FALSE(poison(1));
  EXPECT_FALSE(poison(4));
  ASSERT_TRUE(poison(2));
  EXPECT_EQ(poison(2)->message, "[index_select] index 9 is out of bounds for dimension 0 with size 4");
  EXPECT_EQ(poison(2)->kind, ErrorKind::kIndex);
  EXPECT_EQ(poison(2)->site, 7u);
  EXPECT_EQ(poison(3), poison(2)) << "expected the same error object";
}

TEST_F(FaultTest, InPlaceWritePropagatesError) {
  const Tensor x = numbers(engine_, 4, DType::kFloat32);
  const Tensor wrong = pick(x, ops::full({4}, int64_t{-5}, DType::kInt64, engine_.gpu()));
  copy_into(x, wrong);
  slots_.put(1, {x, nullptr});
  retire_all();
  EXPECT_TRUE(poison(1));
}

TEST_F(FaultTest, ReadThrowsError) {
  const Tensor x = numbers(engine_, 4, DType::kFloat32);
  const Tensor wrong = pick(x, ops::full({1}, int64_t{4}, DType::kInt64, engine_.gpu()));
  try {
    ops::to_device(wrong, Device{});
    FAIL() << "reading the value did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIndex);
  }
  EXPECT_EQ(ops::to_device(x, Device{}).data_as<float>()[3], 3);
}

TEST_F(FaultTest, ExcessCallsWaitForOldestCell) {
  const Tensor x = numbers(engine_, 4, DType::kFloat32), index = numbers(engine_, 4, DType::kInt64);
  Tensor last;
  for (uint64_t i = 0; i < 3 * PendingErrors::kMaxTickets; ++i) last = pick(x, index);
  slots_.put(1, {last, nullptr});
  retire_all();
  EXPECT_FALSE(poison(1));
}

TEST_F(FaultTest, RetiredTicketsDoNotAffectLaterOnes) {
  const Tensor x = numbers(engine_, 4, DType::kFloat32);
  slots_.put(1, {pick(x, numbers(engine_, 4, DType::kInt64)), nullptr});
  retire_all();
  slots_.put(2, {pick(x, ops::full({1}, int64_t{4}, DType::kInt64, engine_.gpu())), nullptr});
  retire_all();
  EXPECT_FALSE(poison(1));
  EXPECT_TRUE(poison(2));
}

TEST_F(FaultTest, CellOfFailedKernelIsNotReusedByNextCall) {
  Dispatcher dispatcher;
  dispatcher.set(op_id::kNeg, Key::kCUDA, [](Call& call) {
    const Queue queue = queue_of(call.tensor(0));
    DeviceErrorCell* cell = open_error_cell(queue, &index_out_of_range);
    for_each(queue, 1, [=] TT_DEVICE(int64_t) { report_error(cell, 9, 0, 4); });
    fail(ErrorKind::kRuntime, "failed after the launch");
  });
  const Tensor x = numbers(engine_, 4, DType::kFloat32), index = numbers(engine_, 4, DType::kInt64);
  const Arg args[] = {x.get()};
  Call call;
  call.op = find_op("neg");
  call.args = args;
  EXPECT_THROW(dispatcher.dispatch(call), Error);
  slots_.put(1, {pick(x, index), nullptr});
  retire_all();
  EXPECT_FALSE(poison(1));
}

TEST_F(FaultTest, LostDeviceKeepsNoEvent) {
  Stream& stream = engine_.context().stream(engine_.gpu(1));
  stream.record();  // an event can be recorded, and is destroyed with its object
  const int before = engine_.runtime().events();
  engine_.runtime().lose(1, "the device is lost");
  EXPECT_THROW(stream.record(), Error);
  EXPECT_THROW(stream.record_timed(), Error);
  EXPECT_EQ(engine_.runtime().events(), before);
  engine_.runtime().lose(1, "");  // the next tests use the device
}

}  // namespace
}  // namespace tt::cuda
