// Random numbers on CUDA: equal to the CPU's for the same generator state.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/schema/op_ids.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using Drawn = std::function<Tensor(Device)>;

class RandomTest : public ::testing::Test {
 protected:
  // Expects the same elements and the same generator state afterwards.
  void expect_equal(const std::string& what, double tolerance, const Drawn& draw) {
    engine_.context().generator = {42, 7};
    const Tensor want = draw(Device{});
    const uint64_t offset = engine_.context().generator.offset;
    engine_.context().generator = {42, 7};
    const Tensor got = draw(engine_.gpu());
    EXPECT_EQ(engine_.context().generator.offset, offset) << what;
    expect_same(got, want, tolerance, what);
  }
  std::string error_of(const std::function<Tensor()>& draw) {
    try {
      copy_to_cpu(draw());
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  SimulatedEngine engine_;
};

constexpr DType kFloats[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
// libm's vector forms round differently from the scalar ones.
double ulps(DType dtype) { return dtype == DType::kFloat64 ? 1e-14 : dtype == DType::kFloat32 ? 1e-6 : 1e-2; }

TEST_F(RandomTest, FloatingNumbers) {
  for (DType dtype : kFloats) {
    for (int64_t n : {0, 1, 127, 512, 1000, 2049}) {
      const std::string what = std::string(name(dtype)) + " " + std::to_string(n);
      expect_equal("rand " + what, 0, [&](Device device) { return ops::rand({{n}}, dtype, device); });
      expect_equal("randn " + what, ulps(dtype), [&](Device device) { return ops::randn({{n}}, dtype, device); });
      expect_equal("uniform " + what, 0,
                   [&](Device device) { return ops::uniform_like(empty({{n}}, dtype, device), -2.0, 3.0); });
      expect_equal("normal " + what, 4 * ulps(dtype),
                   [&](Device device) { return ops::normal_like(empty({{n}}, dtype, device), 1.0, 2.0); });
      expect_equal("exponential " + what, ulps(dtype),
                   [&](Device device) { return ops::exponential_like(empty({{n}}, dtype, device), 0.5); });
      expect_equal("bernoulli_ " + what, 0,
                   [&](Device device) { return ops::bernoulli_like(empty({{n}}, dtype, device), 0.3); });
    }
  }
}

TEST_F(RandomTest, Integers) {
  for (DType dtype : {DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat32, DType::kBool}) {
    const std::string what(name(dtype));
    expect_equal("randint " + what, 0, [&](Device device) {
      return ops::randint_from(0, dtype == DType::kBool ? 2 : 100, {{7, 300}}, dtype, device);
    });
    expect_equal("random " + what, 0, [&](Device device) {
      return ops::random_like(empty({{1500}}, dtype, device), std::nullopt, std::nullopt);
    });
  }
  expect_equal("wide", 0, [&](Device device) {
    return ops::randint_from(-(int64_t{1} << 62), int64_t{1} << 62, {{1000}}, DType::kInt64, device);
  });
}

TEST_F(RandomTest, InPlaceWritesAnyLayout) {
  expect_equal("transposed", 0, [&](Device device) {
    const Tensor whole = ops::zeros({{30, 40}}, DType::kFloat32, device);
    const Tensor across = testing::transposed(whole, 0, 1);
    ops::call(op_id::kUniformLike, {Arg(across.get()), Arg(0.0), Arg(1.0)}, {{across}});
    return whole;
  });
}

TEST_F(RandomTest, Bernoulli) {
  for (DType dtype : kFloats) {
    const Tensor p = ops::clamp(ops::abs(testing::filled({40, 50}, dtype)), 0.0, 1.0);
    const Tensor gpu_p = copy_to_device(p, engine_.gpu());
    expect_equal(std::string(name(dtype)), 0, [&](Device device) {
      return ops::bernoulli(testing::transposed(device == Device{} ? p : gpu_p, 0, 1));
    });
  }
  EXPECT_THAT(error_of([&] {
                return ops::bernoulli(copy_to_device(testing::values({2}, {0.5, 1.5}), engine_.gpu()));
              }),
              ::testing::HasSubstr("Expected p_in >= 0 && p_in <= 1"));
}

TEST_F(RandomTest, Permutations) {
  for (int64_t n : {0, 1, 2, 1000}) {
    expect_equal("randperm", 0, [&](Device device) { return ops::randperm(n, std::nullopt, device); });
  }
  expect_equal("int32", 0, [&](Device device) { return ops::randperm(300, DType::kInt32, device); });
}

TEST_F(RandomTest, Multinomial) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor weights = ops::abs(testing::filled({6, 50}, dtype));
    for (const bool replacement : {true, false}) {
      expect_equal("multinomial", 0,
                   [&](Device device) { return ops::multinomial(copy_to_device(weights, device), 20, replacement); });
    }
  }
  const auto draw = [&](std::vector<double> weights, bool replacement) {
    const Tensor there_weights = copy_to_device(testing::values({3}, weights), engine_.gpu());
    return error_of([&] { return ops::multinomial(there_weights, 2, replacement); });
  };
  EXPECT_EQ(draw({1, 0, 2}, false), "");
  EXPECT_THAT(draw({1, -1, 2}, true), ::testing::HasSubstr("either `inf`, `nan` or element < 0"));
  EXPECT_THAT(draw({1, NAN, 2}, true), ::testing::HasSubstr("either `inf`, `nan` or element < 0"));
  EXPECT_THAT(draw({0, 0, 0}, true), ::testing::HasSubstr("sum of probabilities <= 0"));
  EXPECT_THAT(draw({1, 0, 0}, false), ::testing::HasSubstr("not enough non-negative category"));
}

TEST_F(RandomTest, RejectionSampling) {
  for (DType dtype : kFloats) {
    const std::string what(name(dtype));
    const Tensor positive = ops::add(ops::abs(testing::filled({30, 40}, dtype)), 0.01);
    const Tensor shares = ops::div(positive, ops::amax(positive, {}, false));
    const auto expect = [&](const std::string& which, const Tensor& x, const auto& draw) {
      expect_equal(which + " " + what, ulps(dtype),
                   [&](Device device) { return draw(testing::transposed(copy_to_device(x, device), 0, 1)); });
    };
    expect("gamma", positive, [](const Tensor& x) { return ops::standard_gamma(x); });
    for (const double scale : {1.0, 8.0, 100.0}) {  // small and large rates
      expect("poisson", ops::mul(positive, scale), [](const Tensor& x) { return ops::poisson(x); });
    }
    expect("binomial", shares, [](const Tensor& p) { return ops::binomial(ops::full_like(p, int64_t{20}), p); });
  }
  const auto fault = [&](double x, const std::function<Tensor(const Tensor&)>& draw) {
    return error_of([&] { return draw(copy_to_device(testing::values({2}, {0.5, x}), engine_.gpu())); });
  };
  for (const double x : {-1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_THAT(fault(x, [](const Tensor& t) { return ops::standard_gamma(t); }),
                ::testing::HasSubstr("invalid gamma"));
  }
  EXPECT_THAT(fault(-2.5, [](const Tensor& t) { return ops::poisson(t); }),
              ::testing::HasSubstr("invalid Poisson rate, expected rate to be non-negative, got -2.5"));
  EXPECT_THAT(fault(1.5, [](const Tensor& p) { return ops::binomial(ops::ones_like(p), p); }),
              ::testing::HasSubstr("binomial expects prob to be in [0, 1], got 1.5"));
  EXPECT_THAT(fault(2e9, [](const Tensor& n) { return ops::binomial(n, ops::zeros_like(n)); }),
              ::testing::HasSubstr("binomial expects counts"));
}

TEST_F(RandomTest, StateRoundTrip) {
  engine_.context().generator = {5, 77};
  const Tensor state = ops::to_device(ops::get_rng_state(), engine_.gpu());
  ops::manual_seed(1);
  ops::set_rng_state(state);
  EXPECT_EQ(engine_.context().generator.seed, 5u);
  EXPECT_EQ(engine_.context().generator.offset, 77u);
}

}  // namespace
}  // namespace tt::cuda
