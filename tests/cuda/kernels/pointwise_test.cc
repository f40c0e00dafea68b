// Every operator with a `body:`, in every dtype and with all kinds of operand layouts: CUDA gives the CPU's results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/schema/op_ids.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::transposed;

constexpr DType kAll[] = {DType::kBool,      DType::kUInt8,      DType::kInt8,     DType::kInt16,   DType::kInt32,
                          DType::kInt64,     DType::kFloat16,    DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                          DType::kComplex64, DType::kComplex128, DType::kUInt64};

std::string label(const Op& op, DType dtype) { return std::string(op.name) + " " + std::string(name(dtype)); }

class PointwiseTest : public ::testing::Test {
 protected:
  SimulatedEngine engine_;
};

// Calls any pointwise operator: cycles through `tensors` for tensor parameters, and uses numbers that are always
// valid. Returns the error message, if any.
std::string outcome(const Op& op, absl::Span<const Tensor> tensors, Tensor* result) {
  std::vector<Arg> args;
  size_t next = 0;
  for (const Param& p : op.params) {
    if (p.type == ParamType::kTensor) {
      args.push_back(Arg(tensors[next++ % tensors.size()].get()));
    } else if (p.default_value.is_none()) {
      args.push_back(p.type == ParamType::kInt ? Arg(2) : p.type == ParamType::kBool ? Arg(true) : Arg(0.5));
    } else {
      args.push_back(p.default_value);
    }
  }
  try {
    *result = ops::call(op.id, args)[0];
    *result = copy_to_cpu(*result);
    return "";
  } catch (const Error& error) {
    // Errors that a device reports later start with the operator's name.
    std::string text = error.what();
    const std::string front = "[" + std::string(op.name) + "] ";
    if (text.rfind(front, 0) == 0) text.erase(0, front.size());
    return absl::StrCat(static_cast<int>(error.kind()), " ", text);
  }
}

int compared = 0;  // results; errors are not counted

void expect_as_on_the_cpu(const Op& op, const Tensors& tensors, Device gpu, const std::string& what) {
  Tensors moved;
  for (const Tensor& t : tensors) moved.push_back(copy_to_device(t, gpu));
  Tensor want, got;
  const std::string refused = outcome(op, tensors, &want), refused_there = outcome(op, moved, &got);
  ASSERT_EQ(refused_there, refused) << what;
  if (!refused.empty()) return;
  ++compared;
  // libm and its vector forms differ by a few ulps; sums with cancellation by more.
  const DType real = to_real(got.dtype());
  const double tolerance = real == DType::kFloat32 ? 2e-5 : testing::tolerance_of(real);
  expect_same(got, want, has_gradients(got.dtype()) ? tolerance : 0, what);
}

TEST_F(PointwiseTest, EveryOperatorInEveryDType) {
  compared = 0;
  for (const Op* op : all_ops()) {
    if (!op->is_pointwise) continue;
    for (DType dtype : kAll) {
      // The product of the two largest numbers is 2^128, infinite in float32 unless the compiler fuses it with the sum.
      if (op->id == op_id::kPoissonNll && dtype == DType::kUInt64) continue;
      const std::string what = label(*op, dtype);
      // 45 elements: not a multiple of the vector width.
      expect_as_on_the_cpu(*op, {filled_any({5, 9}, dtype), filled_any({5, 9}, dtype), filled_any({5, 9}, dtype)},
                           engine_.gpu(), what);
      expect_as_on_the_cpu(
          *op, {transposed(filled_any({9, 5}, dtype), 0, 1), filled_any({9}, dtype), filled_any({5, 1}, dtype)},
          engine_.gpu(), what + " strided");
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(compared, 2000);
}

TEST_F(PointwiseTest, MixedDTypes) {
  for (uint16_t id : {op_id::kAdd, op_id::kMul, op_id::kLt, op_id::kMaximum}) {
    for (DType a : kAll) {
      for (DType b : kAll) {
        expect_as_on_the_cpu(*find_op(id), {filled_any({5, 9}, a), filled_any({5, 9}, b)}, engine_.gpu(),
                             label(*find_op(id), a) + " " + std::string(name(b)));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(PointwiseTest, Layouts) {
  const Tensor long_one = filled({4099});
  const Tensors pairs[] = {
      {filled({0, 9}), filled({9})},
      {filled({7, 9}), filled({})},
      {filled({}), filled({})},
      {filled({7, 1}), filled({1, 9})},
      {transposed(filled({3, 5, 4}), 0, 2), filled({4, 1, 3})},
      {filled({4096}), view_of(long_one, {{4096}, {1}, 1, true})},  // not aligned to a vector
      {filled({2048}), view_of(long_one, {{2048}, {2}, 1, true})},
      {filled({3, 4096}), view_of(long_one, {{3, 4096}, {0, 1}, 3, true})},
      // Vectors of four along rows: several dtypes, one repeated element, rows that are not aligned to a vector.
      {filled({6, 8}, DType::kBFloat16), filled({8})},
      {filled({6, 8}), filled({6, 1}, DType::kInt32)},
      {view_of(long_one, {{6, 8}, {20, 1}, 1, true}), filled({6, 8}, DType::kFloat64)},
      {view_of(long_one, {{6, 9}, {20, 1}, 0, true}), filled({6, 9})},
      {transposed(filled({2, 1, 2, 1, 2, 3, 2}), 1, 5), filled({2, 3, 2, 1, 2, 1, 2})},
  };
  for (const Tensors& pair : pairs) {
    expect_as_on_the_cpu(*find_op(op_id::kSub), pair, engine_.gpu(), absl::StrCat(pair[0].numel()));
  }
}

TEST_F(PointwiseTest, NumbersAndCpuTensors) {
  const Tensor x = filled({5, 9}), n = filled({45}, DType::kInt32);
  const Tensor gpu_x = copy_to_device(x, engine_.gpu()), gpu_n = copy_to_device(n, engine_.gpu());
  expect_same(ops::add(gpu_x, 2.5), ops::add(x, 2.5), 0);
  expect_same(ops::sub(7, gpu_x), ops::sub(7, x), 0);
  expect_same(ops::mul(gpu_n, 3), ops::mul(n, 3), 0);
  expect_same(ops::mul(gpu_n, 0.5), ops::mul(n, 0.5), 0);
  expect_same(ops::add(gpu_n, int64_t{1} << 33), ops::add(n, int64_t{1} << 33), 0);
  const Tensor one = testing::constant({}, 1.5);
  expect_same(ops::mul(gpu_x, one), ops::mul(x, one), 0);
  expect_same(ops::mul(gpu_x, copy_to_device(one, engine_.gpu())), ops::mul(x, one), 0);
  for (double exponent : {2.0, 3.0, 0.5, -0.5, -1.0, 1.7}) {
    expect_same(ops::pow(ops::abs(gpu_x), exponent), ops::pow(ops::abs(x), exponent), 2e-6);
  }
}

TEST_F(PointwiseTest, InPlaceAndInto) {
  for (const bool across : {false, true}) {
    Tensor x = filled({6, 6}), y = filled({6, 6});
    Tensor gpu_x = copy_to_device(x, engine_.gpu()), gpu_y = copy_to_device(y, engine_.gpu());
    const auto target = [&](const Tensor& t) { return across ? transposed(t, 0, 1) : t; };
    ops::call(op_id::kAdd, {Arg(x.get()), Arg(y.get()), Arg(1)}, {{target(x)}});
    ops::call(op_id::kAdd, {Arg(gpu_x.get()), Arg(gpu_y.get()), Arg(1)}, {{target(gpu_x)}});
    expect_same(gpu_x, x, 0);
  }
  Tensor wide = filled({5}, DType::kFloat64), gpu_wide = copy_to_device(wide, engine_.gpu());
  const Tensor n = filled({5}, DType::kInt8), m = filled({5}, DType::kInt8);
  ops::call(op_id::kMul, {Arg(n.get()), Arg(m.get())}, {{wide}});
  const Tensor gpu_n = copy_to_device(n, engine_.gpu()), gpu_m = copy_to_device(m, engine_.gpu());
  ops::call(op_id::kMul, {Arg(gpu_n.get()), Arg(gpu_m.get())}, {{gpu_wide}});
  expect_same(gpu_wide, wide, 0);
}

TEST_F(PointwiseTest, NanToNum) {
  for (DType dtype : kAll) {
    Tensor x = filled_any({6, 7}, dtype);
    if (is_floating(dtype)) {
      testing::put(x, 3, NAN);
      testing::put(x, 4, INFINITY);
      testing::put(x, 5, -INFINITY);
    }
    const Tensor gpu_x = copy_to_device(x, engine_.gpu());
    const std::string what(name(dtype));
    expect_same(ops::nan_to_num(gpu_x, 0.0, std::nullopt, std::nullopt),
                ops::nan_to_num(x, 0.0, std::nullopt, std::nullopt), 0, what);
    expect_same(ops::nan_to_num(transposed(gpu_x, 0, 1), 1.0, 2.0, 3.0),
                ops::nan_to_num(transposed(x, 0, 1), 1.0, 2.0, 3.0), 0, what);
  }
}

// The body for 16-bit dtypes, for all 65,536 values, compared with the rounded result in double.
TEST_F(PointwiseTest, GeluOf16BitsIsCorrectlyRounded) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const bool half = dtype == DType::kFloat16;
    const int digits = half ? 10 : 7, least = half ? -14 : -126;
    Tensor x = empty({1 << 16}, dtype, Device{});
    for (int i = 0; i < 1 << 16; ++i) x.data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
    const Tensor y = copy_to_cpu(ops::gelu(copy_to_device(x, engine_.gpu())));
    for (int i = 0; i < 1 << 16; ++i) {
      const double of = testing::at(x, i), want = 0.5 * of * std::erfc(-of * std::sqrt(0.5)), got = testing::at(y, i);
      const std::string what = absl::StrCat(std::string(name(dtype)), " ", of);
      if (!std::isfinite(want)) {
        EXPECT_TRUE(got == want || (std::isnan(want) && std::isnan(got))) << what;
        continue;
      }
      const int exponent = want == 0 ? least : std::max(std::ilogb(want), least);
      ASSERT_LE(std::fabs(got - want), 0.52 * std::ldexp(1.0, exponent - digits))
          << what << ": " << got << ", " << want;
      ASSERT_EQ(std::signbit(got), std::signbit(of)) << what;
    }
  }
}

// All 65,536 values in both directions, compared with the CPU's results, and with the order of the bit patterns.
TEST_F(PointwiseTest, NextAfterOf16Bits) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const int infinity = dtype == DType::kFloat16 ? 0x7c00 : 0x7f80;
    Tensor x = empty({1 << 16}, dtype, Device{});
    for (int i = 0; i < 1 << 16; ++i) x.data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
    const Tensor gpu_x = copy_to_device(x, engine_.gpu());
    for (const double goal : {double{INFINITY}, -double{INFINITY}, 0.0, double{NAN}}) {
      const Tensor y = copy_to_cpu(ops::nextafter(gpu_x, goal));
      expect_same(y, ops::nextafter(x, goal), 0, absl::StrCat(std::string(name(dtype)), " towards ", goal));
      if (goal != INFINITY) continue;
      for (int i = 1; i < infinity; ++i) ASSERT_EQ(y.data_as<uint16_t>()[i], i + 1);
      for (int i = 0x8001; i <= 0x8000 + infinity; ++i) ASSERT_EQ(y.data_as<uint16_t>()[i], i - 1);
    }
  }
}

TEST_F(PointwiseTest, IntegerDivisionByZeroPoisonsResult) {
  const Tensor x = copy_to_device(testing::values({3}, {1, 2, 3}, DType::kInt64), engine_.gpu());
  const Tensor zero = copy_to_device(testing::values({3}, {1, 0, 3}, DType::kInt64), engine_.gpu());
  const Tensor divided = ops::floor_divide(x, zero);  // errors are reported asynchronously
  try {
    copy_to_cpu(divided);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("ZeroDivisionError"));
  }
  expect_same(ops::floor_divide(x, x), testing::values({3}, {1, 1, 1}, DType::kInt64), 0);
}

}  // namespace
}  // namespace tt::cuda
