// Reductions and moments on the simulated GPU, compared with the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::tolerance_of;
using testing::values;

using Dim = absl::Span<const int64_t>;
using View = std::function<Tensor(const Tensor&)>;
using Reduction = std::function<Tensors(const Tensor&, Dim)>;

constexpr DType kDTypes[] = {DType::kBool,    DType::kUInt8,    DType::kInt16,   DType::kInt64,
                             DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

// Layouts for each path of the driver: rows, columns, single columns, strided elements, results reduced in parts.
struct Case {
  const char* name;
  Sizes sizes;
  std::vector<int64_t> dims;
  View view;
};

Tensor as_is(const Tensor& x) { return x; }

std::vector<Case> cases() {
  return {
      {"all", {3, 5}, {}, as_is},
      {"all of many", {70, 1031}, {}, as_is},
      {"rows", {5, 67}, {1}, as_is},
      {"columns", {67, 8}, {0}, as_is},
      {"odd columns", {67, 7}, {0}, as_is},
      {"columns in parts", {2100, 4}, {0}, as_is},
      {"columns of eights", {2100, 16}, {0}, as_is},
      {"columns in two dimensions", {30, 3, 7, 8}, {0, 2}, as_is},
      {"middle", {3, 9, 4}, {1}, as_is},
      {"outer and inner", {3, 9, 4}, {0, 2}, as_is},
      {"runs", {3, 4, 70}, {0, 2}, as_is},
      {"short rows", {4100, 3}, {1}, as_is},
      {"transposed", {6, 10}, {0}, [](const Tensor& x) { return ops::transpose(x, 0, 1); }},
      {"sliced", {6, 40}, {1}, [](const Tensor& x) { return ops::slice(x, 1, int64_t{1}, std::nullopt, 3); }},
      {"unaligned", {4, 41}, {1}, [](const Tensor& x) { return ops::narrow(x, 1, 1, 38); }},
      {"expanded",
       {1, 7},
       {0},
       [](const Tensor& x) {
         return ops::expand(x, {5, 7});
       }},
      {"many runs", {9000, 80}, {}, [](const Tensor& x) { return ops::narrow(x, 1, 2, 65); }},
      {"nothing", {4, 0}, {1}, as_is},
      {"empty runs", {0, 2, 70}, {0, 2}, as_is},
      {"no result", {0, 4}, {1}, as_is},
      {"zero-dim", {}, {}, as_is},
  };
}

void expect_reduced(const char* name, const Reduction& reduction, absl::Span<const DType> dtypes, bool of_nothing,
                    const View& prepare = as_is, bool of_several = true) {
  SimulatedEngine engine;
  for (DType dtype : dtypes) {
    for (const Case& c : cases()) {
      int64_t numel = 1;
      for (int64_t size : c.sizes) numel *= size;
      if ((numel == 0 && !of_nothing) || (c.dims.size() > 1 && !of_several)) continue;
      expect_equal_on_gpu(
          engine, std::string(name) + " of " + std::string(tt::name(dtype)) + ", " + c.name,
          {prepare(filled(c.sizes, dtype))}, [&](const Tensors& x) { return reduction(c.view(x[0]), c.dims); },
          std::max(tolerance_of(dtype), 1e-11));  // includes the rounding errors of half a million elements
    }
  }
}

constexpr absl::Span<const DType> kAll(kDTypes);
constexpr absl::Span<const DType> kFloats = kAll.subspan(4);

TEST(ReduceTest, Sums) {
  expect_reduced(
      "sum", [](const Tensor& x, Dim dim) -> Tensors { return {ops::sum(x, dim)}; }, kAll, true);
  expect_reduced(
      "mean", [](const Tensor& x, Dim dim) -> Tensors { return {ops::mean(x, dim)}; }, kFloats, true);
  expect_reduced(
      "nansum", [](const Tensor& x, Dim dim) -> Tensors { return {ops::nansum(x, dim)}; }, kFloats, true,
      [](const Tensor& x) { return ops::true_divide(x, x); });
}

TEST(ReduceTest, SumsInAnotherType) {
  SimulatedEngine engine;
  expect_equal_on_gpu(engine, "sum", {filled({4, 5}, DType::kInt32)}, [](const Tensors& x) -> Tensors {
    return {ops::sum(x[0], Dim({0}), false, DType::kFloat32), ops::sum(x[0], Dim({1}), true, DType::kInt16),
            ops::mean(x[0], Dim({1}), true, DType::kFloat64)};
  });
}

TEST(ReduceTest, Products) {
  const auto product = [](const Tensor& x, Dim dim) -> Tensors { return {ops::prod(x, dim)}; };
  expect_reduced("prod", product, kAll.subspan(2, 2), true, as_is, false);
  const auto near_one = [](const Tensor& x) { return ops::add(ops::mul(x, 0.001), 1.0); };
  expect_reduced("prod", product, kFloats.subspan(3), true, near_one, false);
  const auto signs = [](const Tensor& x) { return ops::sign(ops::add(x, 0.1)); };
  expect_reduced("prod", product, kFloats, true, signs, false);
}

TEST(ReduceTest, Extrema) {
  expect_reduced(
      "amax", [](const Tensor& x, Dim dim) -> Tensors { return {ops::amax(x, dim)}; }, kAll, false);
  expect_reduced(
      "amin", [](const Tensor& x, Dim dim) -> Tensors { return {ops::amin(x, dim)}; }, kAll, false);
}

TEST(ReduceTest, ExtremaIndices) {
  const auto where = [](const Tensor& x, Dim dim) -> Tensors {
    if (dim.empty() || dim.size() > 1) return {ops::argmax(x), ops::argmin(x)};
    Tensors found = ops::max_dim(x, dim[0]), least = ops::min_dim(x, dim[0], true);
    return {found[0], found[1], least[0], least[1], ops::argmax(x, dim[0]), ops::argmin(x, dim[0])};
  };
  expect_reduced("max", where, kAll.subspan(1), false);
}

TEST(ReduceTest, PropagatesNaN) {
  SimulatedEngine engine;
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    expect_equal_on_gpu(engine, "NaN", {values({5}, {3, NAN, INFINITY, NAN, -INFINITY}, dtype)},
                        [](const Tensors& x) -> Tensors {
                          return {ops::amax(x[0]),
                                  ops::amin(x[0]),
                                  ops::argmax(x[0]),
                                  ops::argmin(x[0]),
                                  ops::sum(x[0]),
                                  ops::nansum(x[0]),
                                  ops::logsumexp(x[0], Dim({0}))};
                        });
  }
}

TEST(ReduceTest, AnyAllAndCountNonzero) {
  const auto truth = [](const Tensor& x, Dim dim) -> Tensors {
    return {ops::any(x, dim), ops::all(x, dim, true), ops::count_nonzero(x, dim)};
  };
  expect_reduced("any", truth, kAll, true);
}

TEST(ReduceTest, Norms) {
  for (double ord : {2.0, 1.0, 0.0, 3.0, 0.5, HUGE_VAL, -HUGE_VAL}) {
    const auto norm = [=](const Tensor& x, Dim dim) -> Tensors { return {ops::vector_norm(x, ord, dim)}; };
    expect_reduced("vector_norm", norm, kFloats, std::isfinite(ord));
  }
}

TEST(ReduceTest, LogSumExp) {
  const auto logsumexp = [](const Tensor& x, Dim dim) -> Tensors { return {ops::logsumexp(x, dim)}; };
  expect_reduced("logsumexp", logsumexp, kFloats, true, [](const Tensor& x) { return ops::mul(x, 20.0); });
  SimulatedEngine engine;
  expect_equal_on_gpu(engine, "infinities", {values({6}, {-INFINITY, -INFINITY, 1, INFINITY, INFINITY, 2})},
                      [](const Tensors& x) -> Tensors {
                        const Tensor pairs = ops::reshape(x[0], {3, 2});
                        return {ops::logsumexp(pairs, Dim({1})), ops::logsumexp(pairs, Dim({0}))};
                      });
}

TEST(ReduceTest, Moments) {
  const auto moments = [](const Tensor& x, Dim dim) -> Tensors {
    return {ops::var(x, dim), ops::std(x, dim, 0, true), ops::var(x, dim, 2)};
  };
  expect_reduced("var", moments, kFloats, true);
  expect_reduced("var", moments, kFloats.subspan(2), true, [](const Tensor& x) { return ops::add(x, 1000.0); });
}

}  // namespace
}  // namespace tt::cuda
