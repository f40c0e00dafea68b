// The reduction framework compared with plain loops: layouts, dtypes, dimensions, sizes.
#include <gtest/gtest.h>

#include "kernels/cpu/loops/reduce_extremum.h"
#include "kernels/cpu/loops/reduce_fold.h"
#include "kernels/cpu/loops/reduce_moments.h"
#include "kernels/cpu/loops/reduce_power.h"
#include "tests/kernels/samples.h"

namespace tt::cpu {
namespace {

struct Case {
  std::string name;
  Tensor input;
};

std::vector<Case> layouts(DType dtype) {
  Tensor small = random_tensor({5, 6, 7}, dtype);
  Tensor wide = random_tensor({2, 20, 1100}, dtype);
  return {
      {"contiguous", small},
      {"transposed", transpose(small, 0, 2)},
      {"inner swapped", transpose(small, 1, 2)},
      {"sliced inside", every_second(small, 2)},
      {"sliced outside", every_second(small, 0)},
      {"expanded", expand(small, 1, 3)},
      {"single", random_tensor({1}, dtype)},
      {"zero-dim", random_tensor({}, dtype)},
      {"ones", random_tensor({1, 9, 1}, dtype)},
      {"wide", wide},
      {"wide transposed", transpose(wide, 0, 2)},
      {"long and thin", random_tensor({3000, 3}, dtype)},
      {"tiny rows", random_tensor({500, 2}, dtype)},
      {"nothing reduced away", random_tensor({4, 0, 3}, dtype)},
  };
}

std::vector<std::vector<int64_t>> dim_sets(int64_t ndim) {
  std::vector<std::vector<int64_t>> sets = {{}};
  for (int64_t d = 0; d < ndim; ++d) sets.push_back({d});
  if (ndim >= 1) sets.push_back({-1});
  if (ndim >= 3) sets.insert(sets.end(), {{0, 2}, {2, 1}, {0, 1}, {0, 1, 2}});
  return sets;
}

// For each output, the elements reduced into it, in logical order.
std::vector<std::vector<double>> groups_of(const Tensor& input, const std::vector<int64_t>& dims) {
  std::vector<bool> goes(input.dim(), dims.empty());
  for (int64_t d : dims) goes[d < 0 ? d + input.dim() : d] = true;
  int64_t outputs = 1;
  for (int64_t d = 0; d < input.dim(); ++d) outputs *= goes[d] ? 1 : input.size(d);
  std::vector<std::vector<double>> groups(outputs);
  const std::vector<double> values = values_of(input);
  for (int64_t i = 0; i < input.numel(); ++i) {
    int64_t rest = i, group = 0, scale = 1;
    for (int64_t d = input.dim(); d-- > 0;) {
      if (!goes[d]) {
        group += rest % input.size(d) * scale;
        scale *= input.size(d);
      }
      rest /= input.size(d);
    }
    groups[group].push_back(values[i]);
  }
  return groups;
}

// Compares reduce(R) with `expected` of each group.
template <typename R, typename Result, typename Expected>
void expect_reduces(const R& reduction, DType dtype, Order order, Result result, Expected expected, double tolerance) {
  for (const Case& c : layouts(dtype)) {
    for (const std::vector<int64_t>& dims : dim_sets(c.input.dim())) {
      const ReducePlan plan(c.input, dims, order);
      const auto groups = groups_of(c.input, dims);
      ASSERT_EQ(plan.outputs, static_cast<int64_t>(groups.size())) << c.name;
      std::vector<double> got(groups.size(), -12345);
      reduce(reduction, c.input, plan, [&](int64_t first, const typename R::Total* totals, int64_t n) {
        for (int64_t i = 0; i < n; ++i) got[first + i] = static_cast<double>(result(totals[i]));
      });
      for (size_t g = 0; g < groups.size(); ++g) {
        const double want = expected(groups[g]);
        ASSERT_NEAR(got[g], want, tolerance * (1 + std::abs(want)))
            << c.name << ", " << name(dtype) << ", output " << g << " of dims " << to_string(dims);
      }
    }
  }
}

double sum_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum;
}

TEST(ReduceDriver, SumsEveryLayoutAndDType) {
  auto id = [](auto t) { return t; };
  for (DType dtype : kAllDTypes) expect_reduces(Fold<Sum<float>>(), dtype, Order::kAny, id, sum_of, 1e-5);
  for (DType dtype : {DType::kInt16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    expect_reduces(Fold<Sum<double>>(), dtype, Order::kAny, id, sum_of, 1e-12);
  }
  for (DType dtype : {DType::kBool, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    expect_reduces(Fold<Sum<int64_t>>(), dtype, Order::kAny, id, sum_of, 0);
  }
}

TEST(ReduceDriver, ReadsBFloat16InPlace) {
  auto id = [](auto t) { return t; };
  auto largest = [](const std::vector<double>& v) {
    return v.empty() ? -INFINITY : *std::max_element(v.begin(), v.end());
  };
  expect_reduces(Fold<Sum<float>, BFloat16>(), DType::kBFloat16, Order::kAny, id, sum_of, 1e-5);
  expect_reduces(
      Fold<Largest<float>, BFloat16>(), DType::kBFloat16, Order::kAny, [](float t) { return std::max(t, -1e30f); },
      [&](auto& v) { return std::max(largest(v), -1e30); }, 1e-7);
}

TEST(ReduceDriver, CountsNonzeroElements) {
  auto id = [](auto t) { return t; };
  auto count = [](const std::vector<double>& v) {
    return std::count_if(v.begin(), v.end(), [](double x) { return x != 0; });
  };
  for (DType dtype : kAllDTypes) expect_reduces(Fold<Count<uint8_t>>(), dtype, Order::kAny, id, count, 0);
  expect_reduces(Fold<Count<float>>(), DType::kFloat32, Order::kAny, id, count, 0);
}

TEST(ReduceDriver, FindsLargestAndSmallest) {
  auto id = [](auto t) { return t; };
  auto largest = [](const std::vector<double>& v) {
    return v.empty() ? -INFINITY : *std::max_element(v.begin(), v.end());
  };
  auto lowest = [](const std::vector<double>& v) {
    return v.empty() ? static_cast<double>(INT64_MAX) : *std::min_element(v.begin(), v.end());
  };
  for (DType dtype : {DType::kFloat32, DType::kFloat16}) {
    for (const Case& c : layouts(dtype)) {
      if (c.input.numel() == 0) continue;
      for (const auto& dims : dim_sets(c.input.dim())) {
        const auto groups = groups_of(c.input, dims);
        reduce(Fold<Largest<float>>(), c.input, ReducePlan(c.input, dims, Order::kAny),
               [&](int64_t first, const float* totals, int64_t n) {
                 for (int64_t i = 0; i < n; ++i) EXPECT_EQ(totals[i], largest(groups[first + i])) << c.name;
               });
      }
    }
  }
  expect_reduces(Fold<Smallest<int64_t>>(), DType::kInt32, Order::kAny, id, lowest, 0);
}

TEST(ReduceDriver, FindsTheFirstOfEqualElements) {
  auto position = [](auto found) { return found.position; };
  auto first_largest = [](const std::vector<double>& v) {
    return v.empty() ? -1 : std::max_element(v.begin(), v.end()) - v.begin();
  };
  auto first_smallest = [](const std::vector<double>& v) {
    return v.empty() ? -1 : std::min_element(v.begin(), v.end()) - v.begin();
  };
  // Integers from -4 to 4: most groups have several largest elements.
  expect_reduces(Extremum<int64_t, true>(), DType::kInt8, Order::kLogical, position, first_largest, 0);
  expect_reduces(Extremum<int64_t, false>(), DType::kInt64, Order::kLogical, position, first_smallest, 0);
  expect_reduces(Extremum<float, true>(), DType::kFloat32, Order::kLogical, position, first_largest, 0);
  expect_reduces(Extremum<double, false>(), DType::kFloat64, Order::kLogical, position, first_smallest, 0);
  expect_reduces(Extremum<uint8_t, true>(), DType::kBool, Order::kLogical, position, first_largest, 0);
}

TEST(ReduceDriver, ComputesMoments) {
  auto squares = [](const std::vector<double>& v) {
    double mean = sum_of(v) / v.size(), total = 0;
    for (double x : v) total += (x - mean) * (x - mean);
    return total;
  };
  auto mean = [](const std::vector<double>& v) { return v.empty() ? 0 : sum_of(v) / v.size(); };
  auto get_squares = [](const MomentsTotal& t) { return t.squares; };
  auto get_mean = [](const MomentsTotal& t) { return t.mean; };
  for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    expect_reduces(Moments<float>(), dtype, Order::kAny, get_squares, squares, 3e-6);
    expect_reduces(Moments<float>(), dtype, Order::kAny, get_mean, mean, 1e-6);
  }
  expect_reduces(Moments<double>(), DType::kFloat64, Order::kAny, get_squares, squares, 1e-12);
}

TEST(ReduceDriver, ComputesLogSumExp) {
  auto expected = [](const std::vector<double>& v) {
    double sum = 0;
    for (double x : v) sum += std::exp(x);
    return v.empty() ? 0 : std::log(sum);
  };
  expect_reduces(
      ExpSum<float>(), DType::kFloat32, Order::kAny,
      [](const ExpTotal<float>& t) { return t.sum == 0 ? 0 : t.shift() + std::log(t.sum); }, expected, 1e-5);
  expect_reduces(
      ExpSum<double>(), DType::kFloat64, Order::kAny,
      [](const ExpTotal<double>& t) { return t.sum == 0 ? 0 : t.shift() + std::log(t.sum); }, expected, 1e-12);
}

template <typename R>
std::vector<typename R::Total> reduce_all(const R& reduction, const Tensor& t, std::vector<int64_t> dims = {}) {
  const ReducePlan plan(t, dims, Order::kLogical);
  std::vector<typename R::Total> got(plan.outputs);
  reduce(reduction, t, plan, [&](int64_t first, const typename R::Total* totals, int64_t n) {
    std::copy_n(totals, n, got.begin() + first);
  });
  return got;
}

TEST(ReduceDriver, PropagatesNaN) {
  for (int64_t at : {0, 1, 63, 64, 500, 1300, 1999}) {
    Tensor t = random_tensor({2000}, DType::kFloat32);
    t.data_as<float>()[at] = NAN;
    EXPECT_TRUE(std::isnan(reduce_all(Fold<Largest<float>>(), t)[0])) << at;
    EXPECT_TRUE(std::isnan(reduce_all(Fold<Smallest<float>>(), t)[0])) << at;
    t.data_as<float>()[1999] = NAN;
    EXPECT_EQ(reduce_all(Extremum<float, true>(), t)[0].position, at);
    EXPECT_EQ(reduce_all(Extremum<float, false>(), t)[0].position, at);
    Tensor columns = view_of(t, Geometry{{20, 100}, {100, 1}, 0});
    EXPECT_EQ(reduce_all(Extremum<float, true>(), columns, {0})[at % 100].position, at / 100);
  }
}

TEST(ReduceDriver, SumsManyElementsExactly) {
  // A running sum in float32 would stop at 2^24.
  const int64_t n = 20'000'000;
  Tensor t = empty({n}, DType::kFloat32, Device{});
  std::fill_n(t.data_as<float>(), n, 1.0f);
  EXPECT_EQ(reduce_all(Fold<Sum<float>>(), t)[0], n);
  Tensor columns = view_of(t, Geometry{{n / 4, 4}, {4, 1}, 0});
  EXPECT_EQ(reduce_all(Fold<Sum<float>>(), columns, {0}), std::vector<double>(4, n / 4));
}

TEST(ReduceDriver, SplitsLongReductionsDeterministically) {
  Tensor t = random_tensor({3, 700'001}, DType::kFloat32, -1, 1);
  set_num_threads(1);
  const auto alone = reduce_all(Fold<Sum<float>>(), t, {1});
  set_num_threads(2);
  EXPECT_EQ(reduce_all(Fold<Sum<float>>(), t, {1}), alone);
  std::vector<double> groups;
  for (const auto& group : groups_of(t, {1})) groups.push_back(sum_of(group));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(alone[i], groups[i], 1e-3);
}

TEST(ReduceDriver, RejectsInvalidDimensions) {
  Tensor t = random_tensor({2, 3}, DType::kFloat32);
  EXPECT_THROW(ReducePlan(t, {2}, Order::kAny), Error);
  EXPECT_THROW(ReducePlan(t, {0, -2}, Order::kAny), Error);
}

}  // namespace
}  // namespace tt::cpu
