// Sorting, selection by rank, scans and unique values: equal to the CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::transposed;
using testing::values;

constexpr DType kDTypes[] = {DType::kBool,  DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,
                             DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

class SortTest : public ::testing::Test {
 protected:
  // In every dtype and along every dimension of contiguous, transposed, multi-row and zero-dim tensors, all with
  // equal elements.
  void compare(const std::string& what, const std::function<Tensors(const Tensor&, int64_t)>& compute,
               double tolerance = 0) {
    for (DType dtype : kDTypes) {
      for (const Tensor& x : {filled({3, 40}, dtype), transposed(filled({6, 5, 4}, dtype), 0, 2), filled({}, dtype),
                              filled({4100, 3}, dtype), filled({3, 4100}, dtype)}) {
        for (int64_t dim = 0; dim < std::max<int64_t>(x.dim(), 1); ++dim) {
          expect_equal_on_gpu(
              engine_, what + " of " + std::string(name(dtype)) + to_string(x.sizes()), {x},
              [&](const Tensors& in) { return compute(in[0], dim); },
              is_floating(dtype) ? tolerance * testing::tolerance_of(dtype) : 0);
        }
      }
    }
  }
  SimulatedEngine engine_;
};

TEST_F(SortTest, Sorts) {
  for (bool descending : {false, true}) {
    compare("sort", [=](const Tensor& x, int64_t dim) { return ops::sort(x, dim, descending); });
  }
}

TEST_F(SortTest, PutsNaNLast) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor x = values({2, 4}, {NAN, -INFINITY, -0.0, 0, 3, NAN, INFINITY, NAN}, dtype);
    expect_equal_on_gpu(engine_, "NaN", {x}, [](const Tensors& in) -> Tensors {
      const Tensors up = ops::sort(in[0]), down = ops::sort(in[0], -1, true), most = ops::topk(in[0], 2);
      const Tensors middle = ops::median_dim(in[0], 1), second = ops::kthvalue(in[0], 2);
      return {up[0],     up[1],     down[0],   down[1],   most[0],           most[1],
              middle[0], middle[1], second[0], second[1], ops::median(in[0])};
    });
  }
}

TEST_F(SortTest, TopK) {
  for (bool largest : {false, true}) {
    compare("topk", [=](const Tensor& x, int64_t dim) {
      return ops::topk(x, x.dim() == 0 ? 1 : std::min<int64_t>(x.size(dim), 3), dim, largest);
    });
  }
}

TEST_F(SortTest, KthValue) {
  compare("kthvalue",
          [](const Tensor& x, int64_t dim) { return ops::kthvalue(x, x.dim() == 0 ? 1 : x.size(dim) / 2 + 1, dim); });
  compare("median", [](const Tensor& x, int64_t dim) -> Tensors {
    if (x.dtype() == DType::kBool) return {};  // not supported, as in PyTorch
    const Tensors found = ops::median_dim(x, dim, true);
    return {found[0], found[1], ops::median(x)};
  });
}

TEST_F(SortTest, ManyRowsOfDistinctElements) {
  Tensor x = filled({40, 3000});
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<float>()[i] = static_cast<float>((i * 7919) % 10007) - 5000;
  for (DType dtype : {DType::kInt16, DType::kInt32, DType::kInt64, DType::kBFloat16, DType::kFloat64}) {
    expect_equal_on_gpu(engine_, std::string(name(dtype)), {ops::to_dtype(x, dtype)}, [](const Tensors& in) -> Tensors {
      const Tensors most = ops::topk(in[0], 17), least = ops::topk(in[0], 3, 0, false), all = ops::topk(in[0], 2999);
      const Tensors some = ops::kthvalue(in[0], 1234);
      return {most[0], most[1], least[0], least[1], all[0], all[1], some[0], some[1], ops::median(in[0])};
    });
  }
}

TEST_F(SortTest, EmptyTensors) {
  expect_equal_on_gpu(engine_, "nothing", {filled({0, 3}), filled({3, 0})}, [](const Tensors& in) -> Tensors {
    const Tensors sorted = ops::sort(in[0], 0), none = ops::topk(in[0], 0, 1), unique = ops::unique_values(in[1]);
    return {sorted[0], sorted[1], none[0], none[1], ops::cumsum(in[1], 1), unique[0], unique[1], unique[2]};
  });
}

TEST_F(SortTest, CumulativeSums) {
  compare(
      "cumsum", [](const Tensor& x, int64_t dim) -> Tensors { return {ops::cumsum(x, dim)}; }, 20);
  compare("cumprod", [](const Tensor& x, int64_t dim) -> Tensors { return {ops::cumprod(ops::sign(x), dim)}; });
  expect_equal_on_gpu(engine_, "cumsum as another type", {filled({3, 4}, DType::kInt32)},
                      [](const Tensors& in) -> Tensors {
                        return {ops::cumsum(in[0], 0, DType::kFloat32), ops::cumsum(in[0], 1, DType::kInt16)};
                      });
}

TEST_F(SortTest, CumulativeExtrema) {
  compare("cummax", [](const Tensor& x, int64_t dim) { return ops::cummax(x, dim); });
  compare("cummin", [](const Tensor& x, int64_t dim) { return ops::cummin(x, dim); });
  expect_equal_on_gpu(engine_, "NaN", {values({5}, {1, NAN, 3, NAN, 2})}, [](const Tensors& in) -> Tensors {
    const Tensors most = ops::cummax(in[0], 0), least = ops::cummin(in[0], 0);
    return {most[0], most[1], least[0], least[1]};
  });
}

TEST_F(SortTest, Unique) {
  compare("unique", [](const Tensor& x, int64_t) { return ops::unique_values(x); });
  expect_equal_on_gpu(engine_, "NaN", {values({5}, {1, NAN, -0.0, NAN, 0})},
                      [](const Tensors& in) { return ops::unique_values(in[0]); });
}

TEST_F(SortTest, Modes) {
  compare("mode", [](const Tensor& x, int64_t dim) { return ops::mode(x, dim); });
  expect_equal_on_gpu(engine_, "NaN", {values({3, 4}, {NAN, 2, NAN, 2, NAN, NAN, NAN, NAN, 1, NAN, NAN, 0})},
                      [](const Tensors& in) { return ops::mode(in[0], 1); });
}

TEST_F(SortTest, UniqueRows) {
  for (DType dtype : {DType::kBool, DType::kInt64, DType::kFloat32}) {
    for (const Tensor& x : {ops::remainder(filled({200, 2}, DType::kInt32), int64_t{3}), filled({0, 2}), filled({3, 0}),
                            transposed(filled({2, 50}, DType::kBool), 0, 1)}) {
      expect_equal_on_gpu(engine_, "unique_rows", {ops::to_dtype(x, dtype)}, [](const Tensors& in) -> Tensors {
        const Tensors rows = ops::unique_rows(in[0], false), runs = ops::unique_rows(in[0], true);
        return {rows[0], rows[1], rows[2], runs[0], runs[1], runs[2]};
      });
    }
  }
}

TEST_F(SortTest, Bincount) {
  const Tensor numbers = filled({100}, DType::kUInt8);
  expect_equal_on_gpu(
      engine_, "bincount", {numbers, filled({100}), filled({100}, DType::kInt32), filled({0}, DType::kInt64)},
      [](const Tensors& in) -> Tensors {
        return {ops::bincount(in[0]), ops::bincount(in[0], in[1], 20), ops::bincount(in[0], in[2]),
                ops::bincount(in[3]), ops::bincount(in[3], {}, 3)};
      },
      1e-6);
  expect_both_fail(engine_, "bincount only supports 1-d non-negative integral inputs, got -1",
                   {values({2}, {3, -1}, DType::kInt64)},
                   [](const Tensors& in) -> Tensors { return {ops::bincount(in[0])}; });
}

TEST_F(SortTest, Searchsorted) {
  for (DType dtype : {DType::kInt32, DType::kFloat16, DType::kFloat64}) {
    const Tensor sought = filled({2, 5}, dtype);
    expect_equal_on_gpu(engine_, "searchsorted",
                        {ops::sort(filled({7}, dtype))[0], ops::sort(filled({2, 7}, dtype))[0], sought},
                        [](const Tensors& in) -> Tensors {
                          return {ops::searchsorted(in[0], in[2]), ops::searchsorted(in[0], in[2], true),
                                  ops::searchsorted(in[1], in[2])};
                        });
  }
}

}  // namespace
}  // namespace tt::cuda
