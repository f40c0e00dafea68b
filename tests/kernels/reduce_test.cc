// The declared reductions: dtypes, NaN, and empty inputs.
#include <gtest/gtest.h>

#include "kernels/cpu/kernels.h"
#include "tests/kernels/samples.h"

namespace tt::cpu {
namespace {

using Values = std::vector<double>;
using Dims = std::optional<absl::Span<const int64_t>>;

Tensor result(SizesView sizes, DType dtype) { return empty(sizes, dtype, Device{}); }
double only(const Tensor& t) { return values_of(t).at(0); }

template <typename Kernel, typename... A>
double all_of(Kernel kernel, const Tensor& x, DType dtype, A... args) {
  Tensor out = result({}, dtype);
  kernel(x, args..., out);
  return only(out);
}

double sum_of(const Tensor& x, DType dtype) { return all_of(&sum, x, dtype, Dims(), false, std::nullopt); }

TEST(Reduce, SumsInResultType) {
  EXPECT_EQ(sum_of(tensor_of({3}, {200, 100, 255}, DType::kUInt8), DType::kInt64), 555);
  EXPECT_EQ(sum_of(tensor_of({4}, {1, 0, 1, 1}, DType::kBool), DType::kInt64), 3);
  EXPECT_EQ(sum_of(tensor_of({2}, {0.5, 0.25}), DType::kFloat64), 0.75);
  EXPECT_EQ(sum_of(tensor_of({2}, {1, 0}, DType::kBool), DType::kFloat32), 1);
  // In float16, 2048 + 1 is 2048.
  EXPECT_EQ(sum_of(tensor_of({3000}, Values(3000, 1), DType::kFloat16), DType::kFloat16), 3000);
  EXPECT_EQ(sum_of(tensor_of({1000}, Values(1000, 1), DType::kBFloat16), DType::kBFloat16), 1000);
}

TEST(Reduce, WrapsIntegersThatOverflow) {
  Tensor x = result({2}, DType::kInt64);
  x.data_as<int64_t>()[0] = x.data_as<int64_t>()[1] = INT64_MAX;
  Tensor out = result({}, DType::kInt64);
  sum(x, Dims(), false, std::nullopt, out);
  EXPECT_EQ(out.data_as<int64_t>()[0], -2);
}

TEST(Reduce, ReducesEmptyTensors) {
  const Tensor nothing = result({0, 3}, DType::kFloat32);
  EXPECT_EQ(sum_of(nothing, DType::kFloat32), 0);
  EXPECT_EQ(all_of(&prod, nothing, DType::kFloat32, Dims(), false, std::nullopt), 1);
  EXPECT_TRUE(std::isnan(all_of(&mean, nothing, DType::kFloat32, Dims(), false, std::nullopt)));
  EXPECT_EQ(all_of(&any, nothing, DType::kBool, Dims(), false), 0);
  EXPECT_EQ(all_of(&all, nothing, DType::kBool, Dims(), false), 1);
  EXPECT_EQ(all_of(&vector_norm, nothing, DType::kFloat32, 2.0, Dims(), false, std::nullopt), 0);
  EXPECT_TRUE(std::isnan(all_of(&var, nothing, DType::kFloat32, Dims(), 1, false)));
  Tensor columns = result({3}, DType::kFloat32);
  const int64_t dim = 0;
  sum(nothing, absl::MakeConstSpan(&dim, 1), false, std::nullopt, columns);
  EXPECT_EQ(values_of(columns), Values(3, 0));
  logsumexp(nothing, absl::MakeConstSpan(&dim, 1), false, columns);
  EXPECT_EQ(values_of(columns), Values(3, -INFINITY));
}

TEST(Reduce, ComputesVariances) {
  const Tensor x = tensor_of({4}, {1, 2, 4, 5});
  EXPECT_FLOAT_EQ(all_of(&var, x, DType::kFloat32, Dims(), 1, false), 10.0 / 3);
  EXPECT_FLOAT_EQ(all_of(&var, x, DType::kFloat32, Dims(), 0, false), 2.5);
  EXPECT_FLOAT_EQ(all_of(&std, x, DType::kFloat32, Dims(), 0, false), std::sqrt(2.5));
  EXPECT_EQ(all_of(&var, x, DType::kFloat32, Dims(), 5, false), INFINITY);
  EXPECT_TRUE(std::isnan(all_of(&var, tensor_of({1}, {3}), DType::kFloat32, Dims(), 1, false)));
  // Far from zero, where the textbook formula loses all digits.
  const Tensor far = tensor_of({3}, {1e6, 1e6 + 1, 1e6 + 2});
  EXPECT_FLOAT_EQ(all_of(&var, far, DType::kFloat32, Dims(), 1, false), 1);
}

TEST(Reduce, ComputesNorms) {
  const Tensor x = tensor_of({4}, {3, -4, 0, 12});
  auto norm = [&](double ord) { return all_of(&vector_norm, x, DType::kFloat32, ord, Dims(), false, std::nullopt); };
  EXPECT_FLOAT_EQ(norm(2), 13);
  EXPECT_FLOAT_EQ(norm(1), 19);
  EXPECT_FLOAT_EQ(norm(0), 3);
  EXPECT_FLOAT_EQ(norm(INFINITY), 12);
  EXPECT_FLOAT_EQ(norm(-INFINITY), 0);
  EXPECT_FLOAT_EQ(norm(3), std::cbrt(27 + 64 + 1728));
}

TEST(Reduce, LogSumExpOfInfinities) {
  auto of = [](const Values& v) {
    return all_of(&logsumexp, tensor_of({static_cast<int64_t>(v.size())}, v), DType::kFloat32,
                  absl::Span<const int64_t>(), false);
  };
  EXPECT_FLOAT_EQ(of({1000, 1000}), 1000 + std::log(2));
  EXPECT_EQ(of({-INFINITY, -INFINITY}), -INFINITY);
  EXPECT_EQ(of({INFINITY, 0}), INFINITY);
  EXPECT_FLOAT_EQ(of({-INFINITY, 2}), 2);
  EXPECT_TRUE(std::isnan(of({NAN, 2})));
}

TEST(Reduce, OnlyNansumSkipsNaN) {
  const Tensor x = tensor_of({3}, {1, NAN, 2});
  EXPECT_EQ(all_of(&nansum, x, DType::kFloat32, Dims(), false, std::nullopt), 3);
  EXPECT_TRUE(std::isnan(sum_of(x, DType::kFloat32)));
  EXPECT_TRUE(std::isnan(all_of(&amax, x, DType::kFloat32, Dims(), false)));
  EXPECT_EQ(all_of(&argmin, x, DType::kInt64, std::optional<int64_t>(), false), 1);
  EXPECT_EQ(all_of(&all, x, DType::kBool, Dims(), false), 1);
}

TEST(Reduce, FindsExtremaInEveryDType) {
  for (DType dtype : kAllDTypes) {
    const Tensor x = transpose(random_tensor({70, 9}, dtype), 0, 1);
    Tensor largest = result({9}, dtype), place = result({9}, DType::kInt64);
    Tensor lowest = result({9}, dtype), lowest_place = result({9}, DType::kInt64);
    max_dim(x, 1, false, largest, place);
    min_dim(x, -1, false, lowest, lowest_place);
    const Values v = values_of(x);
    double highest = v[0];
    for (int64_t row = 0; row < 9; ++row) {
      const auto begin = v.begin() + row * 70, end = begin + 70;
      EXPECT_EQ(values_of(largest)[row], *std::max_element(begin, end)) << name(dtype);
      EXPECT_EQ(values_of(place)[row], std::max_element(begin, end) - begin) << name(dtype);
      EXPECT_EQ(values_of(lowest)[row], *std::min_element(begin, end)) << name(dtype);
      EXPECT_EQ(values_of(lowest_place)[row], std::min_element(begin, end) - begin) << name(dtype);
      highest = std::max(highest, *std::max_element(begin, end));
    }
    EXPECT_EQ(all_of(&amax, x, dtype, Dims(), false), highest);
  }
}

TEST(Reduce, KeepsLimitsOfInt64) {
  Tensor x = result({2}, DType::kInt64);
  x.data_as<int64_t>()[0] = INT64_MAX - 1;
  x.data_as<int64_t>()[1] = INT64_MAX;
  Tensor out = result({}, DType::kInt64);
  amax(x, Dims(), false, out);
  EXPECT_EQ(out.data_as<int64_t>()[0], INT64_MAX);
  argmax(x, std::nullopt, false, out);
  EXPECT_EQ(out.data_as<int64_t>()[0], 1);
}

TEST(Reduce, FindsMedians) {
  Tensor middle = result({}, DType::kFloat32), place = result({}, DType::kInt64);
  median(transpose(tensor_of({2, 2}, {3, 1, 2, 4}), 0, 1), middle);
  EXPECT_EQ(only(middle), 2);
  median_dim(tensor_of({5}, {3, NAN, 2, NAN, 0}), 0, false, middle, place);
  EXPECT_TRUE(std::isnan(only(middle)));
  EXPECT_EQ(only(place), 1);
  median_dim(tensor_of({4}, {3, 1, 2, 4}), 0, false, middle, place);
  EXPECT_EQ(only(middle), 2);
  EXPECT_EQ(only(place), 2);
}

}  // namespace
}  // namespace tt::cpu
