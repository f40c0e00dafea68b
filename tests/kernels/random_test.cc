// Random numbers: independent of threads and instruction set, and correctly distributed.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "engine/dispatch/ops.h"
#include "engine/session/context.h"
#include "engine/session/generator.h"
#include "kernels/cpu/iteration/block.h"
#include "tests/kernels/backend.h"

namespace tt {
namespace {

using namespace testing;  // NOLINT: tensors.h

constexpr int64_t kMany = 200'000;

class Random : public ::testing::Test {
 protected:
  Random() : scope_(&context_) {
    have_backend();
    context_.generator = {42, 0};
  }

  Context context_;
  ContextScope scope_;
};

struct Moments {
  double mean = 0, variance = 0, low = INFINITY, high = -INFINITY;
};

Moments moments(const Tensor& t) {
  Moments m;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double v = at(t, i);
    m.mean += v / t.numel();
    m.variance += v * v / t.numel();
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  m.variance -= m.mean * m.mean;
  return m;
}

TEST_F(Random, RandomWordsEqualPhilox) {
  uint32_t words[kGroupWords];
  const uint64_t counter = (uint64_t{1} << 32) - 5;  // the counter carries into the second word
  cpu::blocks().random_functions.words(0x123456789abcdef0, counter, words);
  for (int block = 0; block < kGroupBlocks; ++block) {
    const auto want = philox(0x123456789abcdef0, counter + block);
    for (int word = 0; word < 4; ++word) ASSERT_EQ(words[word * kGroupBlocks + block], want[word]);
  }
}

TEST_F(Random, PhiloxMatchesThePublishedVectors) {  // Random123's known answers for Philox 4x32-10
  const std::array<uint32_t, 4> zeros = philox(0, 0);
  EXPECT_EQ(zeros, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST_F(Random, DrawsDependOnSeedAndOffsetOnly) {
  const Tensor long_draw = ops::rand({{100'001}}, DType::kFloat32, Device{});
  context_.generator = {42, 0};
  const Tensor short_draw = ops::rand({{777}}, DType::kFloat32, Device{});
  for (int64_t i = 0; i < 777; ++i) ASSERT_EQ(at(short_draw, i), at(long_draw, i));
  const Tensor next = ops::rand({{777}}, DType::kFloat32, Device{});
  int64_t same = 0;
  for (int64_t i = 0; i < 777; ++i) same += at(next, i) == at(short_draw, i);
  EXPECT_LT(same, 3);
}

TEST_F(Random, UniformNumbersFillTheirRange) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Moments m = moments(ops::rand({{kMany}}, dtype, Device{}));
    EXPECT_NEAR(m.mean, 0.5, dtype == DType::kBFloat16 ? 0.005 : 0.003) << name(dtype);
    EXPECT_NEAR(m.variance, 1.0 / 12, 0.001) << name(dtype);
    EXPECT_GE(m.low, 0);
    EXPECT_LT(m.high, 1);
  }
}

// Calls an operator that overwrites its first argument, `t`.
void call_into(const Tensor& t, const char* op, std::initializer_list<Arg> rest) {
  std::vector<Arg> args{t.get()};
  args.insert(args.end(), rest);
  Call call;
  call.op = find_op(op);
  call.args = args;
  call.outputs.push_back(t);
  call.into = true;
  Dispatcher::instance().dispatch(call);
}

TEST_F(Random, UniformNumbersExcludeTheUpperBound) {
  struct Case {
    DType dtype;
    double from, to;
    int64_t distinct;  // numbers of the dtype in [from, to); 0: too many to draw each
  };
  const Case cases[] = {{DType::kBFloat16, 1, 2, 128},        {DType::kFloat16, 1, 2, 1024},
                        {DType::kBFloat16, -1, 3, 0},         {DType::kFloat16, -2, -1, 1024},
                        {DType::kBFloat16, -1, 0, 0},         {DType::kFloat16, 1000, 1001, 2},
                        {DType::kFloat32, 1000, 1001, 16384}, {DType::kFloat64, 0x1p53, 0x1p53 + 8, 4},
                        {DType::kBFloat16, 1000, 1001, 1},    {DType::kFloat32, 3, 3, 1}};
  for (const Case& c : cases) {
    const Tensor t = empty({kMany}, c.dtype, Device{});
    call_into(t, "uniform_like", {Arg(c.from), Arg(c.to)});
    std::map<double, int64_t> counts;
    for (int64_t i = 0; i < kMany; ++i) ++counts[at(t, i)];
    EXPECT_GE(counts.begin()->first, c.from) << name(c.dtype);
    EXPECT_LT(counts.rbegin()->first, c.distinct == 1 ? c.from + 1e-6 : c.to) << name(c.dtype);
    if (c.distinct == 0) continue;
    EXPECT_LE(static_cast<int64_t>(counts.size()), c.distinct) << name(c.dtype);
    if (c.distinct > 1024) continue;
    ASSERT_EQ(static_cast<int64_t>(counts.size()), c.distinct) << name(c.dtype);
    const double expected = static_cast<double>(kMany) / c.distinct;
    for (const auto& [value, count] : counts) EXPECT_NEAR(count, expected, 6 * std::sqrt(expected) + 1) << value;
  }
}

TEST_F(Random, UniformBoundsMustFitTheDType) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto draw = [](DType dtype, double from, double to) {
    call_into(empty({3}, dtype, Device{}), "uniform_like", {Arg(from), Arg(to)});
  };
  EXPECT_THROW(draw(DType::kFloat16, 0, 70'000), Error);
  EXPECT_THROW(draw(DType::kFloat16, -60'000, 60'000), Error);
  EXPECT_THROW(draw(DType::kBFloat16, 0, 1e39), Error);
  EXPECT_THROW(draw(DType::kFloat32, -inf, 0), Error);
  EXPECT_THROW(draw(DType::kFloat64, -1.7e308, 1.7e308), Error);
  EXPECT_THROW(draw(DType::kFloat32, std::nan(""), 1), Error);
  draw(DType::kFloat16, 0, 65504);
}

TEST_F(Random, NormalNumbersHaveNormalDistribution) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor t = ops::randn({{kMany}}, dtype, Device{});
    const Moments m = moments(t);
    EXPECT_NEAR(m.mean, 0, 0.01);
    EXPECT_NEAR(m.variance, 1, 0.015);
    // Adjacent values, and the two values of a pair, are independent.
    for (int64_t lag : {1, 128}) {
      double product = 0;
      for (int64_t i = 0; i + lag < kMany; ++i) product += at(t, i) * at(t, i + lag) / kMany;
      EXPECT_NEAR(product, 0, 0.01) << name(dtype) << " lag " << lag;
    }
    int64_t inside = 0;
    for (int64_t i = 0; i < kMany; ++i) inside += std::fabs(at(t, i)) < 1;
    EXPECT_NEAR(static_cast<double>(inside) / kMany, 0.6827, 0.005);
  }
}

TEST_F(Random, IntegersAreUniform) {
  for (DType dtype : {DType::kInt64, DType::kInt32, DType::kUInt8, DType::kFloat32}) {
    const Tensor t = ops::randint_from(3, 11, {{kMany}}, dtype, Device{});
    std::vector<int> counts(11);
    for (int64_t i = 0; i < kMany; ++i) {
      ASSERT_TRUE(at(t, i) >= 3 && at(t, i) < 11);
      ++counts[static_cast<int>(at(t, i))];
    }
    for (int value = 3; value < 11; ++value) EXPECT_NEAR(counts[value], kMany / 8, 700);
  }
  const Moments wide =
      moments(ops::randint_from(-(int64_t{1} << 40), int64_t{1} << 40, {{kMany}}, DType::kInt64, Device{}));
  EXPECT_NEAR(wide.mean / (int64_t{1} << 40), 0, 0.01);
  EXPECT_LT(wide.low, -0.99 * (int64_t{1} << 40));
}

TEST_F(Random, RandomFillsTheRangeOfUnsignedDTypes) {
  for (const auto& [dtype, last] : {std::pair{DType::kUInt8, 0x1p8 - 1}, std::pair{DType::kUInt16, 0x1p16 - 1},
                                    std::pair{DType::kUInt32, 0x1p32 - 1}, std::pair{DType::kUInt64, 0x1p64}}) {
    const Tensor t = empty({kMany}, dtype, Device{});
    call_into(t, "random_like", {Arg(), Arg()});
    const Moments m = moments(t);
    EXPECT_NEAR(m.mean / last, 0.5, 0.003) << name(dtype);
    EXPECT_LT(m.low, 0.001 * last) << name(dtype);
    EXPECT_GT(m.high, 0.999 * last) << name(dtype);
  }
}

TEST_F(Random, ExponentialNumbersArePositive) {
  context_.generator = {42, 5'366'786};  // the second word of this block gives the uniform number 0
  const Tensor uniform = ops::rand({{kGroupWords}}, DType::kFloat32, Device{});
  ASSERT_EQ(at(uniform, kGroupBlocks), 0);
  context_.generator = {42, 5'366'786};
  const Tensor t = empty({kGroupWords}, DType::kFloat32, Device{});
  call_into(t, "exponential_like", {Arg(2.0)});
  EXPECT_EQ(at(t, kGroupBlocks), 0x1p-25);
}

TEST_F(Random, PermutationsContainEachNumberOnce) {
  const Tensor t = ops::randperm(10'000, DType::kInt64, Device{});
  std::vector<int64_t> seen(t.data_as<int64_t>(), t.data_as<int64_t>() + t.numel());
  int64_t fixed = 0;
  for (int64_t i = 0; i < t.numel(); ++i) fixed += seen[i] == i;
  EXPECT_LT(fixed, 20);
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < t.numel(); ++i) ASSERT_EQ(seen[i], i);
}

TEST_F(Random, BernoulliFollowsItsProbabilities) {
  const Tensor p = empty({kMany}, DType::kFloat32, Device{});
  for (int64_t i = 0; i < kMany; ++i) put(p, i, i % 2 ? 0.25 : 1.0);
  const Tensor t = ops::bernoulli(p);
  double odd = 0, even = 0;
  for (int64_t i = 0; i < kMany; ++i) (i % 2 ? odd : even) += at(t, i);
  EXPECT_EQ(even, kMany / 2);
  EXPECT_NEAR(odd / (kMany / 2), 0.25, 0.01);
  EXPECT_THROW(ops::bernoulli(constant({3}, 1.5)), Error);
}

TEST_F(Random, MultinomialFollowsItsWeights) {
  const Tensor weights = values({2, 3}, {1, 0, 3, 0, 5, 0});
  const Tensor with = ops::multinomial(weights, 20'000, true);
  double first = 0;
  for (int64_t i = 0; i < 20'000; ++i) {
    ASSERT_NE(at(with, i), 1);
    ASSERT_EQ(at(with, 20'000 + i), 1);
    first += at(with, i) == 0;
  }
  EXPECT_NEAR(first / 20'000, 0.25, 0.02);
  const Tensor without = ops::multinomial(values({3}, {1, 0, 3}), 2, false);
  EXPECT_EQ(at(without, 0) + at(without, 1), 2);  // 0 and 2 in some order
  EXPECT_THROW(ops::multinomial(values({3}, {1, 0, 3}), 3, false), Error);
}

TEST_F(Random, InPlaceFormsWriteAnyLayout) {
  const Tensor base = constant({300, 200}, 7);
  const Tensor columns = view_of(base, {{300, 100}, {200, 2}, 0, true});
  call_into(columns, "normal_like", {Arg(10.0), Arg(0.5)});
  double written = 0;
  for (int64_t i = 0; i < base.numel(); i += 2) {
    written += at(base, i) / 30'000;
    ASSERT_EQ(at(base, i + 1), 7);
  }
  EXPECT_NEAR(written, 10, 0.02);
}

}  // namespace
}  // namespace tt
