// Operators on bfloat16: bit-identical to float32 results rounded to nearest even.

#include <cmath>
#include <functional>
#include <numeric>

#include "engine/dispatch/ops.h"
#include "tests/kernels/backend.h"

namespace tt {
namespace {

using namespace testing;  // NOLINT: tensors.h

class BFloat16Operators : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { have_backend(); }
};

// Every bit pattern, including zeros, denormals, infinities and NaNs of both signs.
Tensor every_pattern(uint32_t factor = 1) {
  Tensor t = empty({1 << 16}, DType::kBFloat16, Device{});
  for (uint32_t i = 0; i < 1 << 16; ++i) t.data_as<BFloat16>()[i].bits = static_cast<uint16_t>(i * factor);
  return t;
}
Tensor floats(const Tensor& t) {
  Tensor wide = empty(t.sizes(), DType::kFloat32, Device{});
  for (int64_t i = 0; i < t.numel(); ++i) wide.data_as<float>()[i] = static_cast<float>(t.data_as<BFloat16>()[i]);
  return wide;
}
void expect_rounded(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.dtype(), DType::kBFloat16) << what;
  ASSERT_EQ(want.dtype(), DType::kFloat32) << what;
  for (int64_t i = 0; i < got.numel(); ++i) {
    if (std::isnan(want.data_as<float>()[i])) {  // of any sign and payload
      ASSERT_TRUE(std::isnan(static_cast<float>(got.data_as<BFloat16>()[i]))) << what << " at " << i;
      continue;
    }
    ASSERT_EQ(got.data_as<BFloat16>()[i].bits, BFloat16(want.data_as<float>()[i]).bits) << what << " at " << i;
  }
}

using Unary = std::function<Tensor(const Tensor&)>;
const std::pair<const char*, Unary> kUnary[] = {
    {"neg", [](const Tensor& x) { return ops::neg(x); }},
    {"abs", [](const Tensor& x) { return ops::abs(x); }},
    {"sign", [](const Tensor& x) { return ops::sign(x); }},
    {"square", [](const Tensor& x) { return ops::square(x); }},
    {"reciprocal", [](const Tensor& x) { return ops::reciprocal(x); }},
    {"sqrt", [](const Tensor& x) { return ops::sqrt(x); }},
    {"rsqrt", [](const Tensor& x) { return ops::rsqrt(x); }},
    {"floor", [](const Tensor& x) { return ops::floor(x); }},
    {"trunc", [](const Tensor& x) { return ops::trunc(x); }},
    {"frac", [](const Tensor& x) { return ops::frac(x); }},
    {"round", [](const Tensor& x) { return ops::round_half_even(x); }},
    {"relu", [](const Tensor& x) { return ops::relu(x); }},
    {"hardswish", [](const Tensor& x) { return ops::hardswish(x); }},
    {"leaky_relu", [](const Tensor& x) { return ops::leaky_relu(x, 0.1); }},
    {"x ** 2", [](const Tensor& x) { return ops::pow(x, 2); }},
    {"x ** -1", [](const Tensor& x) { return ops::pow(x, -1); }},
    // Scalars that bfloat16 cannot represent are not rounded, here or in the reference.
    {"x + 0.1", [](const Tensor& x) { return ops::add(x, 0.1); }},
    {"x - 0.1 * 3.3", [](const Tensor& x) { return ops::sub(x, 3.3, 0.1); }},
    {"x * 1.1", [](const Tensor& x) { return ops::mul(x, 1.1); }},
    {"0.7 / x", [](const Tensor& x) { return ops::true_divide(0.7, x); }},
    {"clamp", [](const Tensor& x) { return ops::clamp_min(x, 0.3); }},
};

TEST_F(BFloat16Operators, RoundsEveryPattern) {
  const Tensor x = every_pattern(), wide = floats(x);
  for (const auto& [name, op] : kUnary) expect_rounded(op(x), op(wide), name);
}

TEST_F(BFloat16Operators, RoundsPairs) {
  const std::pair<const char*, std::function<Tensor(const Tensor&, const Tensor&)>> binary[] = {
      {"add", [](const Tensor& x, const Tensor& y) { return ops::add(x, y); }},
      {"add, scaled", [](const Tensor& x, const Tensor& y) { return ops::add(x, y, 1.1); }},
      {"mul", [](const Tensor& x, const Tensor& y) { return ops::mul(x, y); }},
      {"true_divide", [](const Tensor& x, const Tensor& y) { return ops::true_divide(x, y); }},
      {"maximum", [](const Tensor& x, const Tensor& y) { return ops::maximum(x, y); }},
      {"fmin", [](const Tensor& x, const Tensor& y) { return ops::fmin(x, y); }},
      {"copysign", [](const Tensor& x, const Tensor& y) { return ops::copysign(x, y); }},
      {"addcmul", [](const Tensor& x, const Tensor& y) { return ops::addcmul(x, x, y, 0.3); }},
  };
  const Tensor x = every_pattern(), wide_x = floats(x);
  for (uint32_t factor : {1u, 3u, 40503u}) {  // odd, so that the product is a permutation
    const Tensor y = every_pattern(factor), wide_y = floats(y);
    for (const auto& [name, op] : binary) expect_rounded(op(x, y), op(wide_x, wide_y), name);
  }
}

// A value halfway between two bfloat16 numbers, 1 + (2 k + 1) / 256, rounds to the even one.
TEST_F(BFloat16Operators, RoundsTiesToEven) {
  Tensor x = constant({128}, 1, DType::kBFloat16), y = constant({128}, 0, DType::kBFloat16);
  for (int64_t k = 0; k < 128; ++k) put(y, k, (2 * k + 1) / 256.0);
  const Tensor sum = ops::add(x, y);
  for (int64_t k = 0; k < 128; ++k) {
    const double exact = 1 + at(y, k), units = std::nearbyint(exact * 128);  // half to even
    ASSERT_EQ(at(sum, k), units / 128) << k;
  }
}

TEST_F(BFloat16Operators, HandleEveryLengthAndAlignment) {
  const Tensor x = every_pattern(40503), wide = floats(x);
  for (int64_t length : {1, 2, 15, 16, 17, 31, 33, 63, 65, 511, 513, 2049, 5000}) {
    for (int64_t from : {0, 1, 7, 16, 33}) {
      const auto part = [&](const Tensor& t) { return view_of(t, {{length}, {1}, from, true}); };
      expect_rounded(ops::mul(part(x), 1.1), ops::mul(part(wide), 1.1), std::to_string(length));
    }
  }
}

TEST_F(BFloat16Operators, HandleEveryLayout) {
  const Tensor x = every_pattern(40503), wide = floats(x);
  const Geometry layouts[] = {
      {{300, 200}, {200, 1}, 5, true},  // plain
      {{200, 300}, {1, 200}, 0, true},  // transposed
      {{200, 300}, {1, 0}, 3, true},    // a column, broadcast
      {{200, 300}, {0, 1}, 0, true},    // a row, broadcast
      {{3000, 20}, {0, 1}, 0, true},    // a short row, repeated
      {{100, 300}, {600, 2}, 1, true},  // every second element
  };
  for (const Geometry& layout : layouts) {
    const Tensor a = view_of(x, layout), wide_a = view_of(wide, layout);
    const Geometry plain{layout.sizes, {layout.sizes[1], 1}, 0, true};
    const Tensor b = view_of(x, plain), wide_b = view_of(wide, plain);
    expect_rounded(ops::add(a, b), ops::add(wide_a, wide_b), to_string(layout.strides));
  }
}

TEST_F(BFloat16Operators, ReplaceNonfiniteValues) {
  const Tensor x = every_pattern(), all = ops::nan_to_num(x, 0.5, std::nullopt, -3);
  const Tensor every_second = view_of(x, {{1 << 15}, {2}, 1, true});
  const Tensor some = ops::nan_to_num(every_second, 0.5, std::nullopt, -3);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = at(x, i), want = std::isnan(v) ? 0.5 : std::isfinite(v) ? v : v < 0 ? -3 : 0x1.fep127;
    ASSERT_EQ(at(all, i), want) << i;
    if (i % 2) {
      ASSERT_EQ(at(some, i / 2), want) << i;
    }
  }
}

TEST_F(BFloat16Operators, WriteInPlace) {
  const Tensor x = every_pattern(3), y = every_pattern(), want = ops::mul(floats(x), floats(y));
  Call call;
  call.op = find_op("mul");
  const Arg args[] = {x.get(), y.get()};
  call.args = args;
  call.outputs.push_back(x);
  call.into = true;
  Dispatcher::instance().dispatch(call);
  expect_rounded(x, want, "mul_");
}

}  // namespace
}  // namespace tt
