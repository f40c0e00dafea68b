#include "kernels/cpu/blas/product.h"

#include <utility>

#include "kernels/cpu/blas/gemm.h"
#include "kernels/cpu/blas/gemv.h"
#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

constexpr DType kAll[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                          DType::kInt32,   DType::kInt16,   DType::kInt8,    DType::kUInt8};

// a: m x k, b: k x n, with any strides.
Gemm problem(const Tensor& a, const Tensor& b, Tensor& c) {
  return {a.dtype(),
          a.size(0),
          b.size(1),
          a.size(1),
          {a.data(), a.stride(0), a.stride(1)},
          {b.data(), b.stride(0), b.stride(1)},
          c.data()};
}

// Sums in double, rounded to the dtype, or wrapped for integers.
Tensor naive(const Tensor& a, const Tensor& b) {
  Tensor c = empty(Sizes{a.size(0), b.size(1)}, a.dtype(), Device{});
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < b.size(1); ++j) {
      double sum = 0;
      for (int64_t p = 0; p < a.size(1); ++p) {
        sum += at(a, i * a.stride(0) + p * a.stride(1)) * at(b, p * b.stride(0) + j * b.stride(1));
      }
      if (is_floating(a.dtype())) {
        put(c, i * c.size(1) + j, sum);
      } else {
        with_element(a.dtype(), [&]<typename T>(std::type_identity<T>) {
          if constexpr (std::is_integral_v<T>)
            c.data_as<T>()[i * c.size(1) + j] = static_cast<T>(static_cast<int64_t>(sum));
        });
      }
    }
  }
  return c;
}

// Layouts of an operand: contiguous, transposed, or every second row and column of a larger matrix.
enum class Layout { kPlain, kTransposed, kSpread };
Tensor operand(int64_t rows, int64_t columns, DType dtype, Layout layout) {
  if (layout == Layout::kTransposed) return transposed(filled({columns, rows}, dtype), 0, 1);
  if (layout == Layout::kPlain) return filled({rows, columns}, dtype);
  Tensor large = filled({rows * 2, columns * 2}, dtype);
  return view_of(large, Geometry{{rows, columns}, {columns * 4, 2}, 0, true});
}

void check_product(int64_t m, int64_t n, int64_t k, DType dtype, Layout a_layout, Layout b_layout) {
  Tensor a = operand(m, k, dtype, a_layout), b = operand(k, n, dtype, b_layout), c = constant({m, n}, 77, dtype);
  const std::string what = absl::StrCat(m, "x", n, "x", k, " ", std::string(name(dtype)), " ",
                                        static_cast<int>(a_layout), static_cast<int>(b_layout));
  product(problem(a, b, c));
  expect_close(c, naive(a, b), tolerance_of(dtype), what);
}

TEST(Product, EveryDTypeAndLayout) {
  for (DType dtype : kAll) {
    for (Layout a : {Layout::kPlain, Layout::kTransposed, Layout::kSpread}) {
      for (Layout b : {Layout::kPlain, Layout::kTransposed, Layout::kSpread}) {
        check_product(7, 13, 5, dtype, a, b);
        check_product(51, 49, 67, dtype, a, b);
      }
    }
  }
}

TEST(Product, OddSizes) {
  for (int64_t m : {1, 2, 9, 97}) {
    for (int64_t n : {1, 3, 25, 193}) {
      for (int64_t k : {1, 4, 31, 257}) {
        check_product(m, n, k, DType::kFloat32, Layout::kPlain, Layout::kPlain);
        check_product(m, n, k, DType::kFloat64, Layout::kPlain, Layout::kTransposed);
        check_product(m, n, k, DType::kFloat32, Layout::kTransposed, Layout::kPlain);
      }
    }
  }
}

TEST(Product, MatricesByVectors) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (int64_t n : {1, 3, 4, 50}) {
      for (int64_t k : {1, 63, 64, 700, 5000}) {
        check_product(1, n, k, dtype, Layout::kPlain, Layout::kTransposed);
        check_product(n, 1, k, dtype, Layout::kPlain, Layout::kPlain);
        check_product(1, n, k, dtype, Layout::kPlain, Layout::kPlain);
      }
    }
  }
}

TEST(Product, PacksLargeOperands) {
  check_product(400, 390, 410, DType::kFloat32, Layout::kPlain, Layout::kTransposed);
}

TEST(Product, EmptySumsAreZero) {
  Tensor a = filled({3, 0}), b = filled({0, 4}), c = constant({3, 4}, 77);
  product(problem(a, b, c));
  expect_close(c, constant({3, 4}, 0), 0);
  Tensor none = filled({0, 4});
  Tensor wide = filled({4, 4});
  product(problem(none, wide, none));  // empty result: no writes
}

TEST(Product, AddsTheBiasToEveryRow) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    for (int64_t n : {3, 65}) {
      Tensor a = filled({64, 60}, dtype), b = filled({60, n}, dtype), bias = filled({n}, dtype);
      Tensor c = empty(Sizes{64, n}, dtype, Device{});
      product(problem(a, b, c), bias.data());
      Tensor want = naive(a, b);
      for (int64_t i = 0; i < want.numel(); ++i) put(want, i, at(want, i) + at(bias, i % n));
      expect_close(c, want, 2 * tolerance_of(dtype));
    }
  }
}

TEST(Product, Batches) {
  for (int64_t size : {5, 60}) {
    Tensor a = filled({3, size, size}), b = filled({3, size, size}), c = filled({3, size, size});
    const int64_t step = size * size;
    // In order, one shared operand, and in an irregular order.
    for (std::vector<int64_t> at_b : {std::vector<int64_t>{0, step, 2 * step}, {0, 0, 0}, {2 * step, 0, step}}) {
      const std::vector<int64_t> at_a{0, step, 2 * step};
      Gemm g{DType::kFloat32,     size,     size, size,        {a.data(), size, 1},
             {b.data(), size, 1}, c.data(), 3,    at_a.data(), at_b.data()};
      product(g);
      for (int64_t i = 0; i < 3; ++i) {
        const auto entry = [&](const Tensor& t, int64_t offset) {
          return view_of(t, Geometry{{size, size}, {size, 1}, offset, true});
        };
        expect_close(entry(c, at_a[i]), naive(entry(a, at_a[i]), entry(b, at_b[i])), 1e-5);
      }
    }
  }
}

TEST(Product, KeepsPackedWeightsUntilWritten) {
  Tensor a = filled({16, 300}), w = filled({300, 256}), c = filled({16, 256});
  for (int round = 0; round < 4; ++round) {
    product(problem(a, w, c), nullptr, &w);
    expect_close(c, naive(a, w), 1e-5, "unchanged");
  }
  put(w, 0, 1000);
  w->storage->bump_version();
  for (int round = 0; round < 3; ++round) {
    product(problem(a, w, c), nullptr, &w);
    expect_close(c, naive(a, w), 1e-5, "after a write");
  }
}

// Products of few rows with weights: with a packed copy and without, in both layouts, with incomplete panels.
TEST(Product, OfFewRowsHaveTheBitsOfSingleCalls) {
  for (const Layout layout : {Layout::kPlain, Layout::kTransposed}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{256, 1300}, {1000, 77}, {129, 512}}) {
      const Tensor w = operand(k, n, DType::kFloat32, layout), bias = filled({n});
      const Tensor a = filled({64, k}), added = filled({64, n});
      for (int64_t i = 0; i < a.numel(); ++i) put(a, i, at(a, i) / 3);  // products are rounded
      Tensor whole = constant({64, n}, 77);
      product(problem(a, w, whole), bias.data(), &w);
      Tensor want = naive(a, w);
      for (int64_t i = 0; i < want.numel(); ++i) put(want, i, at(want, i) + at(bias, i % n));
      expect_close(whole, want, 1e-5);
      const auto multiply_many = [&] {
        for (const int64_t m : {80, 400}) {
          const Tensor many = filled({m, k});
          Tensor c = constant({m, n}, 77);
          for (int64_t i = 0; i < m * k; ++i) put(many, i, at(a, i % (64 * k)));
          product(problem(many, w, c), bias.data(), &w);
          for (int64_t i = 0; i < m * n; i += 7) ASSERT_NEAR(at(c, i), at(whole, i % (64 * n)), 2e-3) << m;
        }
      };
      multiply_many();  // with oneDNN's copy, which few rows replace
      for (const int64_t m : {2, 3, 5, 8, 9, 16, 31, 64}) {
        const Tensor rows = view_of(a, Geometry{{m, k}, {k, 1}, 0, true});
        Tensor c = constant({m, n}, 77);
        product(problem(rows, w, c), bias.data(), &w);
        if (m * n * k > (1 << 18)) {  // smaller products use another method
          for (int64_t i = 0; i < c.numel(); ++i) ASSERT_EQ(at(c, i), at(whole, i)) << m << "x" << n << "x" << k;
        }
        if (!product_of_few_rows(problem(rows, w, c), bias.data(), added.data(), w)) continue;
        for (int64_t i = 0; i < c.numel(); ++i) {
          ASSERT_EQ(at(c, i), static_cast<float>(at(whole, i)) + static_cast<float>(at(added, i)));
        }
      }
      multiply_many();  // with the copy for few rows, or one for each call
    }
  }
}

TEST(Gemm, WrapsIntegersAround) {
  Tensor a = constant({1, 3}, 100, DType::kInt8), b = constant({3, 2}, 100, DType::kInt8),
         c = filled({1, 2}, DType::kInt8);
  gemm(problem(a, b, c));
  EXPECT_EQ(at(c, 0), static_cast<int8_t>(30000));
}

TEST(Gemm, RejectsBool) {
  Tensor a = constant({2, 2}, 1, DType::kBool);
  Tensor c = constant({2, 2}, 1, DType::kBool);
  EXPECT_THROW(gemm(problem(a, a, c)), Error);
}

}  // namespace
}  // namespace tt::cpu
