// Decompositions on CUDA: compared with the CPU's or, where signs or phases are arbitrary, checked by multiplication.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/cuda/compare.h"
#include "tests/cuda/simulated/loader.h"

namespace tt::cuda {
namespace {

const DType kFactored[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128};

// The conjugate transpose.
Tensor adjoint(const Tensor& t) { return ops::conj_physical(ops::transpose(t, -1, -2)); }
Tensor eye(const Tensor& like, int64_t n) { return ops::eye(n, n, like.dtype(), like.device()); }
// Real numbers, converted to any dtype.
Tensor numbers(Sizes sizes, std::vector<double> list, DType dtype) {
  return ops::to_dtype(values(sizes, list, DType::kFloat64), dtype);
}
// No two elements have equal magnitude, so that the choice of pivots does not depend on rounding.
Tensor general(Sizes sizes, DType dtype) {
  if (is_complex(dtype)) return ops::complex(general(sizes, to_real(dtype)), general(sizes, to_real(dtype)));
  Tensor t = filled_any(sizes, dtype);
  for (int64_t i = 0; i < t.numel(); ++i) {
    testing::put(t, i, testing::at(t, i) + 0.1 * std::sin(1.0 + static_cast<double>(i)));
  }
  return t;
}
// Invertible square matrices, with dominant diagonals.
Tensor invertible(Sizes sizes, DType dtype) {
  const Tensor t = general(sizes, dtype);
  return ops::add(t, ops::mul(eye(t, t.size(-1)), 3.0 * static_cast<double>(t.size(-1))));
}
Tensor positive(Sizes sizes, DType dtype) {
  const Tensor t = filled_any(sizes, dtype);
  return ops::add(ops::matmul(t, adjoint(t)), eye(t, t.size(-1)));
}
// The Hermitian matrix defined by one triangle, with the real part of the diagonal.
Tensor hermitian(const Tensor& a, bool upper) {
  const Tensor below = ops::tril(upper ? adjoint(a) : a, -1);
  const Tensor diagonal = ops::diagonal(is_complex(a.dtype()) ? ops::real(a) : a, 0, -2, -1);
  return ops::add(ops::add(below, adjoint(below)), ops::diag_embed(diagonal));
}
// Matrices of rank 2.
Tensor of_low_rank(int64_t m, int64_t n, DType dtype) {
  return ops::matmul(filled_any({m, 2}, dtype), filled_any({2, n}, dtype));
}
double largest(const Tensor& t) {
  return t.numel() == 0 ? 1 : testing::at(ops::to_dtype(ops::amax(ops::abs(t), {}, false), DType::kFloat64), 0);
}

class CudaLinalgTest : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  bool is_double() const { return to_real(dtype()) == DType::kFloat64; }
  double tolerance() const { return is_double() ? 1e-11 : 2e-4; }
  // Within the tolerance, for numbers of magnitude 1.
  void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
    ASSERT_EQ(got.sizes(), want.sizes()) << what;
    if (is_complex(got.dtype())) return expect_close(ops::view_as_real(got), ops::view_as_real(want), what);
    const Tensor a = copy_to_cpu(got), b = copy_to_cpu(want);
    for (int64_t i = 0; i < a.numel(); ++i) ASSERT_NEAR(testing::at(a, i), testing::at(b, i), tolerance()) << what << i;
  }
  void expect_orthonormal(const Tensor& columns, const std::string& what) {
    const Tensor product = ops::matmul(adjoint(columns), columns);
    expect_close(product, ops::expand(eye(product, product.size(-1)), product.sizes()), what + " is not orthonormal ");
  }

  // Each row of `want` matches a different row of `got`.
  void expect_equal_but_for_order(const Tensor& got, const Tensor& want, const std::string& what) {
    ASSERT_EQ(got.sizes(), want.sizes()) << what;
    const int64_t n = got.size(-1);
    const Tensor a = copy_to_cpu(ops::view_as_real(got)), b = copy_to_cpu(ops::view_as_real(want));
    std::vector<bool> taken(static_cast<size_t>(got.numel()));
    for (int64_t i = 0; i < got.numel(); ++i) {
      int64_t nearest = -1;
      double least = INFINITY;
      for (int64_t j = i / n * n; j < i / n * n + n; ++j) {
        const double apart = std::hypot(testing::at(a, 2 * j) - testing::at(b, 2 * i),
                                        testing::at(a, 2 * j + 1) - testing::at(b, 2 * i + 1));
        if (!taken[static_cast<size_t>(j)] && apart < least) least = apart, nearest = j;
      }
      ASSERT_LE(least, tolerance()) << what << i;
      taken[static_cast<size_t>(nearest)] = true;
    }
  }

  SimulatedEngine engine_;
};

TEST_P(CudaLinalgTest, Lu) {
  for (const Sizes& sizes : {Sizes{3, 3},
                             {2, 4, 3},
                             {2, 3, 5},
                             {1, 1},
                             {40, 40},
                             {3, 64, 64},
                             {50, 20},
                             {20, 50},
                             {0, 3, 3},
                             {0, 0},
                             {2, 0, 3}}) {
    expect_cpu_and_gpu_agree(
        {general(sizes, dtype())}, tolerance(),
        [&](const Tensors& t) {
          Tensors all = ops::lu_factored(t[0]);
          if (all[1].size(-1) > 0) all.push_back(ops::lu_permutation(all[1], t[0].size(-2)));
          return all;
        },
        "lu of " + to_string(sizes));
  }
  for (const Sizes& sizes : {Sizes{4, 4}, {3, 5, 5}, {30, 30}, {0, 0}}) {
    Sizes right = sizes;
    right.back() = 3;
    expect_cpu_and_gpu_agree(
        {invertible(sizes, dtype()), filled_any(right, dtype())}, tolerance(),
        [&](const Tensors& t) {
          const Tensors lu = ops::lu_factored(t[0]);
          Tensors all = ops::lu_log_determinant(t[0], lu[0], lu[1]);
          if (sizes.back() < 10) all.push_back(ops::lu_determinant(t[0], lu[0], lu[1]));
          all.push_back(ops::lu_solved(t[0], t[1], lu[0], lu[1], false));
          all.push_back(ops::lu_solved(t[0], t[1], lu[0], lu[1], true));
          return all;
        },
        "solved of " + to_string(sizes));
  }
}

TEST_P(CudaLinalgTest, Cholesky) {
  for (const Sizes& sizes : {Sizes{3, 3}, {2, 2, 4, 4}, {40, 40}, {2, 2, 36, 36}, {0, 0}, {0, 2, 2}}) {
    expect_cpu_and_gpu_agree(
        {positive(sizes, dtype())}, tolerance(), [](const Tensors& t) { return ops::cholesky_factored(t[0]); },
        to_string(sizes));
  }
}

TEST_P(CudaLinalgTest, Triangles) {
  for (const Sizes& sizes : {Sizes{3, 3}, {2, 5, 5}, {20, 20}}) {
    Sizes right = sizes;
    right.back() = 4;
    for (int bits = 0; bits < 8; ++bits) {
      const Tensor a = ops::div(invertible(sizes, dtype()), 3.0);
      expect_cpu_and_gpu_agree(
          {a, filled_any(right, dtype())}, tolerance() * 100,
          [&](const Tensors& t) { return Tensors{ops::triangular_solved(t[0], t[1], bits & 1, bits & 2, bits & 4)}; },
          to_string(sizes) + std::to_string(bits));
    }
  }
}

TEST_P(CudaLinalgTest, Reflections) {
  for (const Sizes& sizes : {Sizes{3, 3}, {2, 5, 3}, {2, 3, 5}, {1, 4}, {4, 1}, {30, 20}, {0, 3, 2}, {3, 0}}) {
    const Tensor a = general(sizes, dtype());
    for (const char* mode : {"reduced", "complete", "r"}) {
      expect_cpu_and_gpu_agree(
          {a}, tolerance(), [&](const Tensors& t) { return ops::qr_factored(t[0], mode); }, to_string(sizes) + mode);
    }
    expect_cpu_and_gpu_agree(
        {a}, tolerance(), [](const Tensors& t) { return ops::householder_factored(t[0]); }, to_string(sizes));
  }
}

TEST_P(CudaLinalgTest, ReflectionsOfVeryLargeAndSmallElements) {
  for (const double size : {is_double() ? 1e200 : 1e30, is_double() ? 1e-200 : 1e-25}) {
    expect_cpu_and_gpu_agree({ops::mul(general({4, 3}, dtype()), size)}, tolerance(), [&](const Tensors& t) {
      const Tensors qr = ops::qr_factored(t[0]);
      return Tensors{qr[0], ops::div(qr[1], size)};
    });
  }
}

TEST_P(CudaLinalgTest, Eigh) {
  for (const Sizes& sizes : {Sizes{1, 1}, {2, 2}, {5, 5}, {2, 2, 6, 6}, {33, 33}, {3, 34, 34}, {0, 3, 3}, {0, 0}}) {
    for (const char* triangle : {"L", "U"}) {
      const Tensor a = filled_any(sizes, dtype());
      expect_cpu_and_gpu_agree(
          {a}, tolerance(),
          [&](const Tensors& t) {
            return Tensors{ops::eigh_decomposed(t[0], triangle)[0], ops::eigh_decomposed(t[0], triangle, false)[0]};
          },
          to_string(sizes) + triangle);
      const Tensors found = ops::eigh_decomposed(copy_to_device(a, engine_.gpu()), triangle);
      expect_orthonormal(found[1], "eigenvectors of " + to_string(sizes));
      expect_close(ops::matmul(ops::mul(found[1], ops::unsqueeze(found[0], -2)), adjoint(found[1])),
                   hermitian(a, *triangle == 'U'), "product ");
    }
  }
}

TEST_P(CudaLinalgTest, EighOfEqualAndWidelySpacedValues) {
  const std::vector<double> diagonals[] = {{2, 2, 2}, {0, 0, 0}, {1e-6, 1, 1e6}, {1e30, 1e30, 1}};
  for (const std::vector<double>& diagonal : diagonals) {
    const Tensor a = ops::diag_embed(numbers({3}, diagonal, dtype()));
    expect_cpu_and_gpu_agree({a}, tolerance(), [](const Tensors& t) { return Tensors{ops::eigh_decomposed(t[0])[0]}; });
  }
}

// Next to equal diagonal elements, subnormal off-diagonal elements still cause a full rotation.
TEST_P(CudaLinalgTest, EighOfNearZeroMatrices) {
  const double least = is_double() ? 5e-324 : 1.5e-45;
  Tensor a = numbers({3, 3}, {1, 0, 0, least, 1, 0, -least, least, 1}, dtype());
  if (is_complex(dtype())) a = ops::complex(ops::real(a), ops::tril(ops::real(a), -1));
  const Tensors found = ops::eigh_decomposed(copy_to_device(a, engine_.gpu()));
  expect_close(found[0], ops::eigh_decomposed(a)[0], "eigenvalues ");
  expect_orthonormal(found[1], "eigenvectors");
}

TEST_P(CudaLinalgTest, Eig) {
  Tensors all = {numbers({3, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0}, dtype()),  // QR without shifts does not converge
                 numbers({2, 2}, {0, -1, 1, 0}, dtype()),
                 numbers({4, 4}, {0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0},
                         dtype()),  // a repeated pair of complex eigenvalues
                 ops::triu(general({6, 6}, dtype())),
                 ops::tril(general({6, 6}, dtype())),
                 ops::zeros({{4, 4}}, dtype()),
                 ops::eye(3, 3, dtype()),
                 ops::mul(general({4, 4}, dtype()), 1e20),
                 positive({5, 5}, dtype())};
  for (int i = 0; i < 20; ++i) all.push_back(of_low_rank(6, 6, dtype()));
  for (const Sizes& sizes :
       {Sizes{1, 1}, {2, 2}, {3, 3}, {5, 5}, {2, 2, 6, 6}, {33, 33}, {2, 48, 48}, {0, 3, 3}, {0, 0}}) {
    all.push_back(general(sizes, dtype()));
  }
  for (const Tensor& a : all) {
    const double most = std::max(1.0, largest(a));
    const Tensors found = ops::eig_decomposed(copy_to_device(a, engine_.gpu()));
    const std::string what = to_string(a.sizes());
    expect_equal_but_for_order(ops::div(found[0], most), ops::div(ops::eig_decomposed(a)[0], most), what);
    expect_equal_but_for_order(ops::div(ops::eig_decomposed(copy_to_device(a, engine_.gpu()), false)[0], most),
                               ops::div(found[0], most), "only values of " + what);
    const Tensor complex = ops::to_dtype(ops::div(a, most), found[0].dtype());
    expect_close(ops::matmul(complex, copy_to_cpu(found[1])),
                 ops::mul(copy_to_cpu(found[1]), ops::unsqueeze(ops::div(copy_to_cpu(found[0]), most), -2)),
                 "eigenvectors of " + what);
    const Tensor lengths = ops::vector_norm(found[1], 2.0, Sizes{-2});
    expect_close(lengths, ops::ones_like(lengths), "lengths of " + what);
  }
}

// Defective matrices: two rows equal up to rounding have one eigenvector, and solutions that grow without bound.
TEST_P(CudaLinalgTest, EigOfDefectiveMatrices) {
  for (const int64_t n : {2, 3, 8, 40}) {
    const Tensor jordan = ops::add(ops::eye(n, n, dtype()), ops::diag_embed(ops::ones({{n - 1}}, dtype()), 1));
    const Tensors found = ops::eig_decomposed(copy_to_device(jordan, engine_.gpu()));
    expect_close(found[0], ops::ones_like(found[0]), "eigenvalues ");
    for (int64_t v = 0; v < n; ++v) {
      const Tensor vector = ops::abs(ops::narrow(found[1], -1, v, 1));
      expect_close(vector, ops::eye(n, 1, vector.dtype()), "eigenvectors ");
    }
  }
}

// Badly scaled matrices, with units that differ by orders of magnitude, lose no digits of the eigenvalues.
TEST_P(CudaLinalgTest, EigOfWidelyScaledElements) {
  std::vector<double> units;
  for (int i = 0; i < 6; ++i) units.push_back(std::pow(10.0, 3 * i));
  const Tensor unit = numbers({6, 1}, units, dtype()), a = general({6, 6}, dtype());
  const Tensor turned = ops::div(ops::mul(a, unit), ops::transpose(unit, 0, 1));
  const Tensors found = ops::eig_decomposed(copy_to_device(turned, engine_.gpu()));
  expect_equal_but_for_order(found[0], ops::eig_decomposed(a)[0], "eigenvalues");
  const Tensor back_turned = ops::div(copy_to_cpu(found[1]), ops::to_dtype(unit, found[1].dtype()));
  expect_close(ops::matmul(ops::to_dtype(a, found[1].dtype()), back_turned),
               ops::mul(back_turned, ops::unsqueeze(copy_to_cpu(found[0]), -2)), "eigenvectors");
}

// For real matrices, real eigenvalues have a zero imaginary part, and complex ones are adjacent conjugate pairs.
TEST_P(CudaLinalgTest, EigOfRealMatricesIsSymmetric) {
  if (is_complex(dtype())) return;
  const Tensors found = ops::eig_decomposed(copy_to_device(general({12, 12}, dtype()), engine_.gpu()));
  const Tensor values = copy_to_cpu(found[0]), vectors = copy_to_cpu(ops::transpose(found[1], 0, 1));
  const Tensor imaginary = ops::contiguous(ops::imag(values));
  int64_t real = 0, pairs = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const bool is_pair = testing::at(imaginary, i) > 0;
    const Tensor ours = ops::narrow(vectors, 0, i, 1), other = ops::narrow(vectors, 0, is_pair ? i + 1 : i, 1);
    expect_same(ours, ops::conj_physical(other), 0, "vector");
    expect_same(ops::narrow(values, 0, i, 1), ops::conj_physical(ops::narrow(values, 0, is_pair ? i + 1 : i, 1)), 0);
    is_pair ? (++pairs, ++i) : ++real;
  }
  EXPECT_EQ(real + 2 * pairs, 12);
  EXPECT_GT(real, 0);
  EXPECT_GT(pairs, 0);
}

TEST_P(CudaLinalgTest, Svd) {
  Tensors all = {of_low_rank(5, 4, dtype()), of_low_rank(4, 5, dtype()), ops::zeros({{3, 2}}, dtype()),
                 ops::mul(filled_any({3, 3}, dtype()), 1e20)};
  // Several, because the rounding errors of singular values that are zero vary.
  for (int i = 0; i < 20; ++i) all.push_back(of_low_rank(5, 4, dtype()));
  for (const Sizes& sizes : {Sizes{3, 3},
                             {2, 6, 4},
                             {2, 4, 6},
                             {1, 5},
                             {5, 1},
                             {33, 20},
                             {2, 50, 30},
                             {2, 30, 50},
                             {0, 3, 2},
                             {3, 0},
                             {0, 3}}) {
    all.push_back(filled_any(sizes, dtype()));
  }
  for (const Tensor& a : all) {
    const std::string what = to_string(a.sizes());
    const double most = std::max(1.0, largest(a));
    for (const bool full : {false, true}) {
      const Tensors want = ops::svd_decomposed(a, full),
                    got = ops::svd_decomposed(copy_to_device(a, engine_.gpu()), full);
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].sizes(), want[i].sizes()) << what;
      expect_close(ops::div(got[1], most), ops::div(want[1], most), "singular values of " + what);
      expect_orthonormal(got[0], "U of " + what);
      expect_orthonormal(adjoint(got[2]), "V of " + what);
      const int64_t k = got[1].size(-1);
      const Tensor u = ops::narrow(got[0], -1, 0, k), vh = ops::narrow(got[2], -2, 0, k);
      const Tensor product = ops::matmul(ops::mul(u, ops::unsqueeze(ops::div(got[1], most), -2)), vh);
      expect_close(product, ops::div(a, most), "product of " + what);
    }
    expect_close(ops::div(ops::svd_decomposed(copy_to_device(a, engine_.gpu()), false, false)[1], most),
                 ops::div(ops::svd_decomposed(a, false, false)[1], most), "only values of " + what);
  }
}

TEST_P(CudaLinalgTest, Exponential) {
  for (const double norm : {0.01, 1.0, 8.0, 12.0}) {  // small norms need no squaring
    for (const Sizes& sizes : {Sizes{1, 1}, {3, 3}, {2, 4, 4}, {0, 0}}) {
      const Tensor any = filled_any(sizes, dtype());
      const Tensor a = ops::mul(any, norm / static_cast<double>(std::max<int64_t>(sizes.back(), 1)));
      // Intermediate results are as large as exp(norm).
      expect_cpu_and_gpu_agree(
          {ops::div(a, largest(any))}, tolerance() * std::exp(norm),
          [](const Tensors& t) { return Tensors{ops::matrix_exp(t[0])}; },
          to_string(sizes) + " of norm " + std::to_string(norm));
    }
  }
}

TEST_P(CudaLinalgTest, ExponentialOf16Bits) {
  if (dtype() != DType::kFloat32) GTEST_SKIP() << "16-bit floats are computed in float32";
  for (DType narrow : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor a = ops::to_dtype(ops::mul(filled_any({2, 4, 4}, dtype()), 0.2), narrow);
    const Tensor gpu_a = copy_to_device(a, engine_.gpu());
    expect_same(ops::matrix_exp(gpu_a), ops::to_dtype(ops::matrix_exp(ops::to_dtype(gpu_a, dtype())), narrow), 0);
  }
}

TEST_P(CudaLinalgTest, Failures) {
  const Tensor singular = numbers({2, 2, 2}, {2, 0, 0, 1, 1, 2, 2, 4}, dtype());
  const Tensor indefinite = numbers({2, 2}, {1, 2, 2, 1}, dtype());
  const Tensor wild = numbers({2, 2}, {NAN, 1, 1, 2}, dtype());
  for (const char* function : {"linalg.inv", "torch.linalg.solve", "torch.linalg.lu_factor"}) {
    const std::string text = std::string(function) + ": (Batch element 1): ";
    expect_both_fail(engine_, text, {singular}, [&](const Tensors& t) { return ops::lu_factored(t[0], function); });
  }
  expect_cpu_and_gpu_agree({singular}, 0, [](const Tensors& t) { return ops::lu_factored(t[0]); });
  expect_both_fail(engine_, "the leading minor of order 2 is not positive-definite", {indefinite},
                   [](const Tensors& t) { return ops::cholesky_factored(t[0], "linalg.cholesky"); });
  for (const double bad : {static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    expect_both_fail(engine_, "the leading minor of order 2 is not positive-definite",
                     {numbers({2, 2}, {1, 0, 0, bad}, dtype())},
                     [](const Tensors& t) { return ops::cholesky_factored(t[0], "linalg.cholesky"); });
  }
  expect_cpu_and_gpu_agree({indefinite}, 0, [](const Tensors& t) { return Tensors{ops::cholesky_factored(t[0])[1]}; });
  expect_both_fail(engine_, "linalg.eigh: The algorithm failed to converge", {wild},
                   [](const Tensors& t) { return ops::eigh_decomposed(t[0]); });
  expect_both_fail(engine_, "linalg.eig: The algorithm failed to converge", {wild},
                   [](const Tensors& t) { return ops::eig_decomposed(t[0]); });
  expect_both_fail(engine_, "linalg.svd: The algorithm failed to converge", {wild},
                   [](const Tensors& t) { return ops::svd_decomposed(t[0]); });
  expect_both_fail(engine_, "pivots must be between 1 and 2, got 0", {values({2}, {0, 2}, DType::kInt32)},
                   [](const Tensors& t) { return Tensors{ops::lu_permutation(t[0], 2)}; });
}

// A batch of large matrices, of which the second one fails.
TEST_P(CudaLinalgTest, FailuresOfLargeMatrices) {
  const int64_t n = 48;
  const Tensor good = invertible({n, n}, dtype());
  const auto batch_with = [&](const Tensor& bad) { return ops::stack({good, bad}, 0); };
  const Tensor wild = ops::mul(good, NAN), zeros = ops::zeros({{n, n}}, dtype()),
               negative = ops::neg(ops::eye(n, n, dtype()));
  expect_both_fail(engine_, "torch.linalg.lu_factor: (Batch element 1): U[1,1]", {batch_with(zeros)},
                   [](const Tensors& t) { return ops::lu_factored(t[0], "torch.linalg.lu_factor"); });
  expect_both_fail(engine_, "linalg.cholesky: (Batch element 1): ", {batch_with(negative)},
                   [](const Tensors& t) { return ops::cholesky_factored(t[0], "linalg.cholesky"); });
  expect_both_fail(engine_, "linalg.eigh: (Batch element 1): The algorithm failed to converge", {batch_with(wild)},
                   [](const Tensors& t) { return ops::eigh_decomposed(t[0]); });
  expect_both_fail(engine_, "linalg.eig: (Batch element 1): The algorithm failed to converge", {batch_with(wild)},
                   [](const Tensors& t) { return ops::eig_decomposed(t[0]); });
  expect_both_fail(engine_, "linalg.svd: (Batch element 1): The algorithm failed to converge", {batch_with(wild)},
                   [](const Tensors& t) { return ops::svd_decomposed(t[0]); });
}

// The library decomposes one or a few large matrices; our own kernels decompose many small matrices and those in a
// captured graph.
TEST_P(CudaLinalgTest, LibraryDecomposesLargeMatrices) {
  const bool library = has_simulated_library("cusolver");
  struct Operator {
    std::string single, several;  // the library's functions
    size_t checked;               // the result that is compared
    std::function<Tensors(const Tensor&)> compute;
  };
  const Operator operators[] = {
      {"cusolverDnXpotrf", "cusolverDnpotrfBatched", 0, [](const Tensor& t) { return ops::cholesky_factored(t); }},
      {"cusolverDnXgetrf", "cusolverDnXgetrf", 0, [](const Tensor& t) { return ops::lu_factored(t); }},
      {"cusolverDnXgeqrf", "cusolverDnorgqr", 1, [](const Tensor& t) { return ops::qr_factored(t); }},
      {"cusolverDnXsyevd", "cusolverDnXsyevBatched", 0, [](const Tensor& t) { return ops::eigh_decomposed(t); }},
      {"cusolverDnXgesvd", "cusolverDnXgesvd", 1, [](const Tensor& t) { return ops::svd_decomposed(t); }},
      {"cusolverDnXgeev", "cusolverDnXgeev", 0, [](const Tensor& t) { return ops::eig_decomposed(t); }}};
  for (const Operator& op : operators) {
    const auto calls = [&](const Sizes& sizes, const std::string& function) {
      const Tensor t = copy_to_device(positive(sizes, dtype()), engine_.gpu());
      engine_.runtime().forget_calls();
      for (const Tensor& result : op.compute(t)) copy_to_cpu(result);
      const std::vector<std::string> all = engine_.runtime().calls();
      return std::count(all.begin(), all.end(), function);
    };
    EXPECT_EQ(calls({5, 5}, op.single) > 0, library) << op.single;
    EXPECT_EQ(calls({2, 48, 48}, op.several) > 0, library) << op.several;
    EXPECT_EQ(calls({3, 5, 5}, op.several), 0) << op.several;

    const Tensor host = positive({5, 5}, dtype()), t = copy_to_device(host, engine_.gpu());
    engine_.runtime().forget_calls();
    engine_.context().graphs().begin(1, engine_.gpu());
    const Tensors captured = op.compute(t);
    engine_.context().graphs().end(1);
    engine_.context().graphs().replay(1);
    const Tensor got = captured[op.checked], want = op.compute(host)[op.checked];
    op.single == "cusolverDnXgeev" ? expect_equal_but_for_order(got, want, op.single)
                                   : expect_close(got, want, op.single);
    engine_.context().graphs().drop(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Factored, CudaLinalgTest, ::testing::ValuesIn(kFactored),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace tt::cuda
