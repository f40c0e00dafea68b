// Sorting, ranks, unique values and scans, compared with the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/schema/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/sorter.h"
#include "tests/kernels/samples.h"

namespace tt::cpu {
namespace {

bool comes_before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The indices that sort `v` stably, with NaN largest.
std::vector<double> order_of(const std::vector<double>& v, bool descending) {
  std::vector<double> places(v.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](double a, double b) {
    return descending ? comes_before(v[b], v[a]) : comes_before(v[a], v[b]);
  });
  return places;
}

void expect_same(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << i << ": " << got[i] << ", " << want[i];
  }
}

// The rows of `t` along `dim`, in order.
std::vector<Tensor> lines_of(const Tensor& t, int64_t dim) {
  Geometry rest{t.sizes(), t.strides(), 0};
  rest.sizes.erase(rest.sizes.begin() + dim);
  rest.strides.erase(rest.strides.begin() + dim);
  std::vector<Tensor> lines;
  for_each_element(view_of(t, Geometry{rest.sizes, rest.strides, t->offset}), [&](int64_t at) {
    lines.push_back(view_of(t, Geometry{{t.size(dim)}, {t.stride(dim)}, t->offset + at}));
  });
  return lines;
}

std::vector<Tensor> sortables(DType dtype) {
  return {random_tensor({4, 50, 3}, dtype), transpose(random_tensor({4, 50, 3}, dtype), 0, 2),
          every_second(random_tensor({4, 50, 6}, dtype), 2), random_tensor({2, 3000}, dtype),
          random_tensor({1}, dtype)};
}

TEST(Sort, IsStableInEveryDTypeAndLayout) {
  for (DType dtype : kAllDTypes) {
    for (const Tensor& x : sortables(dtype)) {
      for (int64_t dim = 0; dim < x.dim(); ++dim) {
        for (bool descending : {false, true}) {
          Tensor values = empty(x.sizes(), dtype, Device{}), indices = empty(x.sizes(), DType::kInt64, Device{});
          sort(x, dim, descending, values, indices);
          const auto in = lines_of(x, dim), out = lines_of(values, dim), places = lines_of(indices, dim);
          for (size_t l = 0; l < in.size(); ++l) {
            const std::vector<double> v = values_of(in[l]), order = order_of(v, descending);
            expect_same(values_of(places[l]), order);
            std::vector<double> sorted;
            for (double place : order) sorted.push_back(v[static_cast<size_t>(place)]);
            expect_same(values_of(out[l]), sorted);
          }
        }
      }
    }
  }
}

TEST(Sort, PutsNaNLastAndTreatsZerosAsEqual) {
  for (DType dtype : kRealDTypes) {
    const Tensor x = tensor_of({7}, {NAN, 1, 0.0, -INFINITY, -0.0, INFINITY, -NAN}, dtype);
    Tensor values = empty({7}, dtype, Device{}), indices = empty({7}, DType::kInt64, Device{});
    sort(x, 0, false, values, indices);
    expect_same(values_of(values), {-INFINITY, 0, -0.0, 1, INFINITY, NAN, NAN});
    expect_same(values_of(indices), {3, 2, 4, 1, 5, 0, 6});
    sort(x, 0, true, values, indices);
    expect_same(values_of(indices), {0, 6, 5, 1, 2, 4, 3});
  }
}

TEST(Sort, OrdersIntegerLimits) {
  const Tensor x = empty({4}, DType::kInt64, Device{});
  const int64_t ends[] = {INT64_MAX, INT64_MIN, -1, 0};
  std::copy_n(ends, 4, x.data_as<int64_t>());
  Tensor values = empty({4}, DType::kInt64, Device{}), indices = empty({4}, DType::kInt64, Device{});
  sort(x, 0, false, values, indices);
  expect_same(values_of(indices), {1, 2, 3, 0});
}

// Integers in a narrow range use counting sort or narrow keys; covers the limits between these methods.
TEST(Sort, OrdersDenseAndSparseIntegers) {
  constexpr int64_t kLength = 5000;
  for (int64_t span : {int64_t{0}, int64_t{1}, int64_t{4095}, int64_t{4096}, int64_t{5001}, int64_t{UINT32_MAX},
                       int64_t{UINT32_MAX} + 1, INT64_MAX}) {
    for (int64_t least : {int64_t{0}, int64_t{-3}, INT64_MIN}) {
      std::vector<int64_t> x(kLength);
      std::mt19937_64 random(static_cast<uint64_t>(span));
      for (int64_t& v : x) v = least + static_cast<int64_t>(random() % (static_cast<uint64_t>(span) + 1));
      x[7] = least, x[8] = least + span;
      Tensor input = empty({kLength}, DType::kInt64, Device{}), values = empty({kLength}, DType::kInt64, Device{}),
             indices = empty({kLength}, DType::kInt64, Device{});
      std::copy(x.begin(), x.end(), input.data_as<int64_t>());
      for (bool descending : {false, true}) {
        std::vector<int64_t> places(x.size());
        std::iota(places.begin(), places.end(), 0);
        std::stable_sort(places.begin(), places.end(),
                         [&](int64_t a, int64_t b) { return descending ? x[b] < x[a] : x[a] < x[b]; });
        sort(input, 0, descending, values, indices);
        for (int64_t i = 0; i < kLength; ++i) {
          ASSERT_EQ(indices.data_as<int64_t>()[i], places[i]) << span << " from " << least << " at " << i;
          ASSERT_EQ(values.data_as<int64_t>()[i], x[places[i]]);
        }
      }
    }
  }
}
TEST(Sort, HandlesEmptyAndZeroDimTensors) {
  Tensor values = empty({0, 3}, DType::kFloat32, Device{}), indices = empty({0, 3}, DType::kInt64, Device{});
  sort(empty({0, 3}, DType::kFloat32, Device{}), 0, false, values, indices);
  values = empty({}, DType::kFloat32, Device{});
  indices = empty({}, DType::kInt64, Device{});
  sort(tensor_of({}, {4}), -1, false, values, indices);
  EXPECT_EQ(values_of(values)[0], 4);
  EXPECT_EQ(values_of(indices)[0], 0);
}

// A thread calls the body of a loop once per block, and makes a sorter in each.
TEST(Sort, BlocksOfALoopUseTheSameBuffers) {
  const float row[] = {3, 1, 2};
  KeyBuffers<float> buffers(2, 3);
  const auto keys_of = [&](RowSorter<float>& sorter) {
    return sorter.sort(row, 1, 3, false, [](const auto* keys) { return static_cast<const void*>(keys); });
  };
  std::set<const void*> found;
  for (int block = 0; block < 10; ++block) {
    RowSorter<float> sorter = buffers.make_sorter();
    found.insert(keys_of(sorter));
  }
  EXPECT_EQ(found.size(), 1);
}

TEST(TopK, AgreesWithSortForFewAndMany) {
  for (DType dtype : {DType::kFloat32, DType::kInt64, DType::kFloat16, DType::kUInt8}) {
    Tensor x = random_tensor({2, 20'000}, dtype, -100, 100);
    if (is_floating(dtype)) set_values(view_of(x, Geometry{{3}, {7000}, 5}), {NAN, NAN, INFINITY});
    for (int64_t k : {1, 7, 100, 6000, 20'000}) {
      for (bool largest : {true, false}) {
        Tensor values = empty({2, k}, dtype, Device{}), indices = empty({2, k}, DType::kInt64, Device{});
        topk(x, k, 1, largest, true, values, indices);
        for (int64_t row : {0, 1}) {
          auto order = order_of(values_of(lines_of(x, 1)[row]), largest);
          order.resize(k);
          expect_same(values_of(lines_of(indices, 1)[row]), order);
        }
      }
    }
  }
}

TEST(TopK, FindsEqualElementsInOrder) {
  const Tensor x = tensor_of({30'000}, std::vector<double>(30'000, 1.0));
  Tensor values = empty({3}, DType::kFloat32, Device{}), indices = empty({3}, DType::kInt64, Device{});
  topk(x, 3, 0, true, true, values, indices);
  expect_same(values_of(indices), {0, 1, 2});
}

TEST(Rank, FindsTheKthElement) {
  const Tensor x = transpose(random_tensor({5, 40}, DType::kFloat32), 0, 1);  // [40, 5]
  Tensor values = empty({5}, DType::kFloat32, Device{}), indices = empty({5}, DType::kInt64, Device{});
  for (int64_t k : {1, 4, 9, 17, 40}) {
    kthvalue(x, k, 0, false, values, indices);
    for (int64_t line = 0; line < 5; ++line) {
      const auto v = values_of(lines_of(x, 0)[line]);
      const double place = order_of(v, false)[k - 1];
      EXPECT_EQ(values_of(indices)[line], place);
      EXPECT_EQ(values_of(values)[line], v[static_cast<size_t>(place)]);
    }
  }
}

// Covers short rows, which are sorted at once, and rows of which keys are dropped.
TEST(Rank, AgreesWithSortInEveryDTypeAndLayout) {
  for (DType dtype : kAllDTypes) {
    std::vector<Tensor> inputs = sortables(dtype);
    inputs.push_back(random_tensor({20'000}, dtype));
    inputs.push_back(random_tensor({20'000}, dtype, 0, 3));  // many equal elements
    for (const Tensor& x : inputs) {
      for (int64_t dim = 0; dim < x.dim(); ++dim) {
        const auto in = lines_of(x, dim);
        const auto count = static_cast<int64_t>(in.size()), n = x.size(dim);
        Tensor values = empty({count}, dtype, Device{}), indices = empty({count}, DType::kInt64, Device{});
        for (int64_t k : std::set<int64_t>{1, (n + 1) / 2, std::max<int64_t>(n - 1, 1), n}) {
          kthvalue(x, k, dim, false, values, indices);
          for (int64_t l = 0; l < count; ++l) {
            const std::vector<double> v = values_of(in[static_cast<size_t>(l)]);
            const double place = order_of(v, false)[static_cast<size_t>(k - 1)];
            ASSERT_EQ(values_of(indices)[l], place) << name(dtype) << ", row of " << n << ", element " << k;
            expect_same({values_of(values)[l]}, {v[static_cast<size_t>(place)]});
          }
        }
      }
    }
  }
}

TEST(Rank, MedianIsTheFirstNaN) {
  for (DType dtype : kRealDTypes) {
    if (!is_floating(dtype)) continue;
    for (int64_t n : {3, 8, 9, 33, 500, 10'000}) {
      Tensor x = random_tensor({n}, dtype), value = empty({}, dtype, Device{}), index = empty({}, DType::kInt64, Device{});
      median_dim(x, 0, false, value, index);
      EXPECT_EQ(values_of(index)[0], order_of(values_of(x), false)[static_cast<size_t>((n - 1) / 2)]);
      set_values(view_of(x, Geometry{{2}, {1}, n - 2}), {NAN, NAN});
      median_dim(x, 0, false, value, index);
      EXPECT_EQ(values_of(index)[0], n - 2);
      EXPECT_TRUE(std::isnan(values_of(value)[0]));
    }
    const Tensor zeros = tensor_of({4}, {0.0, -0.0, -1, 0.0}, dtype);
    Tensor value = empty({}, dtype, Device{}), index = empty({}, DType::kInt64, Device{});
    median_dim(zeros, 0, false, value, index);
    EXPECT_EQ(values_of(index)[0], 0);
  }
}

TEST(Unique, ReturnsValuesCountsAndInverse) {
  Tensor output, inverse, counts;
  unique_values(transpose(tensor_of({3, 2}, {3, 1, 3, 2, 1, 3}), 0, 1), output, inverse, counts);
  expect_same(values_of(output), {1, 2, 3});
  EXPECT_EQ(inverse.sizes(), (Sizes{2, 3}));
  expect_same(values_of(inverse), {2, 2, 0, 0, 1, 2});
  expect_same(values_of(counts), {2, 1, 3});
  unique_values(tensor_of({3}, {NAN, 0, NAN}), output, inverse, counts);
  expect_same(values_of(counts), {1, 1, 1});
  unique_values(empty({0}, DType::kInt64, Device{}), output, inverse, counts);
  EXPECT_EQ(output.sizes(), (Sizes{0}));
}

TEST(Bincount, CountsWithAndWithoutWeights) {
  Tensor out;
  const Tensor x = tensor_of({5}, {0, 3, 1, 3, 3}, DType::kInt32);
  bincount(x, Tensor(), 0, out);
  expect_same(values_of(out), {1, 1, 0, 3});
  bincount(x, tensor_of({5}, {1, 2, 3, 4, 5}), 6, out);
  EXPECT_EQ(out.dtype(), DType::kFloat32);
  expect_same(values_of(out), {1, 3, 0, 11, 0, 0});
  EXPECT_THROW(bincount(tensor_of({1}, {-1}, DType::kInt64), Tensor(), 0, out), Error);
  EXPECT_THROW(bincount(x, tensor_of({2}, {1, 2}), 0, out), Error);
  EXPECT_THROW(bincount(tensor_of({1}, {0.5}), Tensor(), 0, out), Error);
  EXPECT_THROW(bincount(x, Tensor(), -1, out), Error);
  EXPECT_THROW(bincount(tensor_of({1}, {9e18}, DType::kInt64), Tensor(), 0, out), Error);
}

TEST(Bincount, CountsOnAllThreads) {
  for (int64_t bins : {3, 40000}) {
    const Tensor x = random_tensor({200001}, DType::kInt64, 0, static_cast<double>(bins));
    std::vector<double> want(static_cast<size_t>(bins));
    for (double v : values_of(x)) ++want[static_cast<size_t>(v)];
    Tensor out;
    bincount(x, Tensor(), bins, out);
    expect_same(values_of(out), want);
  }
  Tensor out;
  const Tensor bad = random_tensor({100001}, DType::kInt64, 0, 9);
  bad.data_as<int64_t>()[99000] = -1;
  EXPECT_THROW(bincount(bad, Tensor(), 0, out), Error);
}
// Rows of every length up to one more than a power of two, with equal elements, and values that end within a group.
TEST(SearchSorted, AgreesWithBinarySearch) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kFloat16, DType::kUInt8}) {
    for (int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000}) {
      Tensor row = random_tensor({n}, dtype, 0, 30), sorted = empty({n}, dtype, Device{}),
             places = empty({n}, DType::kInt64, Device{});
      sort(row, 0, false, sorted, places);
      const Tensor values = random_tensor({67}, dtype, 0, 30);
      const std::vector<double> in = values_of(sorted), wanted = values_of(values);
      Tensor out = empty({67}, DType::kInt64, Device{});
      for (bool right : {false, true}) {
        searchsorted(sorted, values, right, out);
        for (size_t i = 0; i < wanted.size(); ++i) {
          const auto at = right ? std::upper_bound(in.begin(), in.end(), wanted[i])
                                : std::lower_bound(in.begin(), in.end(), wanted[i]);
          ASSERT_EQ(values_of(out)[i], at - in.begin()) << name(dtype) << " in a row of " << n;
        }
      }
    }
  }
}
TEST(SearchSorted, FindsBothSides) {
  const Tensor rows = tensor_of({2, 4}, {1, 3, 3, 5, 0, 0, 9, NAN});
  const Tensor values = tensor_of({2, 3}, {3, 0, 6, 0, 9, NAN});
  Tensor out = empty({2, 3}, DType::kInt64, Device{});
  searchsorted(rows, values, false, out);
  expect_same(values_of(out), {1, 0, 4, 0, 2, 3});
  searchsorted(rows, values, true, out);
  expect_same(values_of(out), {3, 0, 4, 2, 3, 4});
}

template <typename Op>
void expect_scans(void (*kernel)(const Tensor&, int64_t, std::optional<DType>, Tensor&), double low, double high,
                  double identity, Op op) {
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    const DType result = is_integral(dtype) ? DType::kInt64 : dtype;
    const double tolerance = dtype == DType::kBFloat16 ? 2e-2 : dtype == DType::kFloat16 ? 2e-3 : 1e-5;
    for (const Tensor& x :
         {random_tensor({3, 40, 20}, dtype, low, high), transpose(random_tensor({3, 40, 20}, dtype, low, high), 0, 2),
          random_tensor({2, 2500}, dtype, low, high), random_tensor({}, dtype, low, high)}) {
      for (int64_t dim = 0; dim < std::max<int64_t>(x.dim(), 1); ++dim) {
        Tensor out = empty(x.sizes(), result, Device{});
        kernel(x, dim, std::nullopt, out);
        const Tensor at_least = x.dim() ? x : view_of(x, Geometry{{1}, {1}, 0});
        const Tensor out_line = x.dim() ? out : view_of(out, Geometry{{1}, {1}, 0});
        const auto in = lines_of(at_least, dim), got = lines_of(out_line, dim);
        for (size_t l = 0; l < in.size(); ++l) {
          double running = identity;
          const auto v = values_of(in[l]), g = values_of(got[l]);
          for (size_t i = 0; i < v.size(); ++i) {
            running = op(running, v[i]);
            ASSERT_NEAR(g[i], running, tolerance * (1 + std::abs(running))) << name(dtype) << " " << i;
          }
        }
      }
    }
  }
}

TEST(Scan, SumsAlongEveryDimension) {
  expect_scans(&cumsum, 0, 3, 0, [](double a, double b) { return a + b; });
}

TEST(Scan, MultipliesAlongEveryDimension) {
  expect_scans(&cumprod, 1, 1.001, 1, [](double a, double b) { return a * b; });
}

TEST(Scan, KeepsTheLastOfEqualExtremaAndNaN) {
  Tensor values = empty({6}, DType::kFloat32, Device{}), indices = empty({6}, DType::kInt64, Device{});
  cummax(tensor_of({6}, {1, 3, 3, 2, NAN, 5}), 0, values, indices);
  expect_same(values_of(values), {1, 3, 3, 3, NAN, NAN});
  expect_same(values_of(indices), {0, 1, 2, 2, 4, 4});
  cummin(tensor_of({6}, {4, 4, 5, 1, 2, 1}), 0, values, indices);
  expect_same(values_of(values), {4, 4, 4, 1, 1, 1});
  expect_same(values_of(indices), {0, 1, 1, 3, 3, 5});
}

}  // namespace
}  // namespace tt::cpu
