// Decompositions by blocks: sizes around the blocks, all element types, several threads, and values near the ends of
// the range. The product of the factors must be the matrix; pivots must equal LAPACK's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/cpu/blas/routines.h"
#include "kernels/cpu/lapack/matrices.h"

namespace tt::cpu {
namespace {

template <typename T>
T conjugate(T x) {
  if constexpr (is_complex_v<T>)
    return {x.re, -x.im};
  else
    return x;
}

template <typename T>
double size_of(T x) {
  if constexpr (is_complex_v<T>)
    return std::hypot(static_cast<double>(x.re), static_cast<double>(x.im));
  else
    return std::abs(static_cast<double>(x));
}

// A row-major matrix.
template <typename T>
struct Dense {
  int64_t rows, columns;
  std::vector<T> elements;

  Dense(int64_t r, int64_t c) : rows(r), columns(c), elements(static_cast<size_t>(r * c), T(0)) {}
  T& operator()(int64_t i, int64_t j) { return elements[static_cast<size_t>(i * columns + j)]; }
  T operator()(int64_t i, int64_t j) const { return elements[static_cast<size_t>(i * columns + j)]; }
  T* data() { return elements.data(); }
  const T* data() const { return elements.data(); }
};

template <typename T>
Dense<T> random_matrix(int64_t rows, int64_t columns, unsigned seed = 1) {
  Dense<T> m(rows, columns);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (T& x : m.elements) {
    if constexpr (is_complex_v<T>)
      x = T(real_of_t<T>(normal(generator)), real_of_t<T>(normal(generator)));
    else
      x = T(normal(generator));
  }
  return m;
}

template <typename T>
Dense<T> operator*(const Dense<T>& a, const Dense<T>& b) {
  Dense<T> c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

template <typename T>
Dense<T> adjoint(const Dense<T>& a) {
  Dense<T> b(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) b(j, i) = conjugate(a(i, j));
  }
  return b;
}

template <typename T>
Dense<T> identity(int64_t n) {
  Dense<T> m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = T(1);
  return m;
}

// The largest difference, relative to the largest element of `b`.
template <typename T>
double difference(const Dense<T>& a, const Dense<T>& b) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const double d = size_of(a.elements[i] - b.elements[i]);
    most = d <= most ? most : d;  // also stores NaN
    scale = std::max(scale, size_of(b.elements[i]));
  }
  return scale > 0 ? most / scale : most;
}

template <typename T>
double tolerance(int64_t n) {
  return 20.0 * static_cast<double>(n) * std::numeric_limits<real_of_t<T>>::epsilon();
}

template <typename T>
class Decompositions : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(threads_); }

 private:
  int threads_ = num_threads();
};
using Elements = testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(Decompositions, Elements);

struct Size {
  int64_t rows, columns;
};

TYPED_TEST(Decompositions, LuHasLapacksPivotsAndFactors) {
  using T = TypeParam;
  for (const Size s :
       {Size{1, 1}, {1, 9}, {9, 1}, {15, 15}, {16, 16}, {17, 17}, {33, 31}, {20, 90}, {90, 20}, {131, 131}}) {
    const Dense<T> a = random_matrix<T>(s.rows, s.columns);
    const int64_t k = std::min(s.rows, s.columns);
    std::vector<int32_t> pivots(static_cast<size_t>(k)), wanted(static_cast<size_t>(k));
    Dense<T> packed = a;
    EXPECT_EQ(Lu<T>(s.rows, s.columns).factor(packed.data(), pivots.data()), 0);
    Dense<T> columns(s.columns, s.rows);
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) columns(j, i) = a(i, j);
    }
    const int rows = static_cast<int>(s.rows);
    lapack::getrf(rows, static_cast<int>(s.columns), columns.data(), rows, wanted.data());
    EXPECT_EQ(pivots, wanted) << s.rows << " x " << s.columns;
    Dense<T> lower(s.rows, k), upper(k, s.columns), exchanged = a;
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) {
        if (j < i && j < k) lower(i, j) = packed(i, j);
        if (i <= j && i < k) upper(i, j) = packed(i, j);
      }
      if (i < k) lower(i, i) = T(1);
    }
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < s.columns; ++j)
        std::swap(exchanged(i, j), exchanged(pivots[static_cast<size_t>(i)] - 1, j));
    }
    EXPECT_LT(difference(lower * upper, exchanged), tolerance<T>(k)) << s.rows << " x " << s.columns;
  }
}

TYPED_TEST(Decompositions, LuReportsTheFirstZeroPivot) {
  using T = TypeParam;
  for (const int64_t zero : {0, 5, 16, 40, 69}) {
    Dense<T> a = random_matrix<T>(70, 70);
    for (int64_t i = 0; i < 70; ++i) {  // a triangle, whose pivots are its diagonal
      for (int64_t j = 0; j < i; ++j) a(i, j) = T(0);
    }
    a(zero, zero) = T(0);
    std::vector<int32_t> pivots(70);
    EXPECT_EQ(Lu<T>(70, 70).factor(a.data(), pivots.data()), zero + 1);
    EXPECT_EQ(pivots[69], 70);
  }
  Dense<T> invalid = random_matrix<T>(40, 40);
  invalid(20, 3) = T(std::numeric_limits<double>::quiet_NaN());
  std::vector<int32_t> pivots(40);
  Lu<T>(40, 40).factor(invalid.data(), pivots.data());
  EXPECT_TRUE(std::isnan(size_of(invalid(39, 39))));
  EXPECT_TRUE(std::all_of(pivots.begin(), pivots.end(), [](int32_t p) { return p >= 1 && p <= 40; }));
}

TYPED_TEST(Decompositions, TriangularSystems) {
  using T = TypeParam;
  for (const int64_t n : {1, 15, 16, 17, 48, 100}) {
    for (const int64_t k : {1, 2, 33, 300}) {
      for (int options = 0; options < 8; ++options) {
        const bool upper = options & 1, transposed = options & 2, unit = options & 4;
        Dense<T> stored = random_matrix<T>(n, n), a(n, n);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) stored(i, j) = stored(i, j) * T(0.1);
          stored(i, i) += T(3);
          for (int64_t j = 0; j < n; ++j) {
            const T x = i == j && unit ? T(1) : upper ? (j >= i ? stored(i, j) : T(0)) : (j <= i ? stored(i, j) : T(0));
            (transposed ? a(j, i) : a(i, j)) = x;
          }
        }
        const Dense<T> b = random_matrix<T>(n, k, 2);
        Dense<T> x = b;
        solve_triangular(stored.data(), x.data(), n, k, upper, transposed, unit);
        EXPECT_LT(difference(a * x, b), tolerance<T>(n)) << n << " rows, " << k << " columns, options " << options;
      }
    }
  }
}

TYPED_TEST(Decompositions, QrIsOrthogonalAndHasLapacksSigns) {
  using T = TypeParam;
  for (const Size s : {Size{65, 65}, {64, 64}, {100, 70}, {70, 100}, {97, 97}, {160, 129}}) {
    Dense<T> a = random_matrix<T>(s.rows, s.columns);
    for (int64_t i = 0; i < s.rows; ++i) a(i, 2) = T(i == 0 ? 1 : 0);  // a column whose reflection may be none
    const int64_t k = std::min(s.rows, s.columns);
    for (const int64_t q_columns : {k, s.rows}) {
      Householder<T> qr(s.rows, s.columns, q_columns);
      std::vector<T> tau(static_cast<size_t>(k));
      qr.factor(a.data(), tau.data());
      Dense<T> r(q_columns, s.columns), q(s.rows, q_columns);
      qr.triangle(q_columns, r.data());
      qr.orthogonal(tau.data(), q.data());
      EXPECT_LT(difference(q * r, a), tolerance<T>(s.rows)) << s.rows << " x " << s.columns;
      EXPECT_LT(difference(adjoint(q) * q, identity<T>(q_columns)), tolerance<T>(s.rows));
      Dense<T> columns = adjoint(a);  // LAPACK's order of elements, except for the conjugation
      for (T& x : columns.elements) x = conjugate(x);
      std::vector<T> wanted(static_cast<size_t>(k)), work(static_cast<size_t>(64 * s.columns));
      lapack::Workspace<T> space;
      space.work = work;
      space.size_query = false;
      const int rows = static_cast<int>(s.rows);
      lapack::geqrf(rows, static_cast<int>(s.columns), columns.data(), rows, wanted.data(), space);
      Dense<T> expected(q_columns, s.columns);
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = i; j < s.columns; ++j) expected(i, j) = columns(j, i);
      }
      EXPECT_LT(difference(r, expected), 10 * tolerance<T>(s.rows));
    }
  }
}

// Hermitian matrices by name of their spectrum.
template <typename T>
Dense<T> hermitian(const std::string& kind, int64_t n) {
  Dense<T> a(n, n);
  if (kind == "diagonal") {
    for (int64_t i = 0; i < n; ++i) a(i, i) = T((i * 7) % 5);
  } else if (kind == "rank one") {
    const Dense<T> v = random_matrix<T>(n, 1);
    a = v * adjoint(v);
  } else {
    const Dense<T> b = random_matrix<T>(n, n);
    const Dense<T> c = adjoint(b);
    for (size_t i = 0; i < a.elements.size(); ++i) a.elements[i] = b.elements[i] + c.elements[i];
    using R = real_of_t<T>;
    const R limit = std::numeric_limits<R>::min();
    const R factor = kind == "subnormal" ? std::numeric_limits<R>::denorm_min() * (1 << 20)
                     : kind == "tiny"    ? limit * 16
                     : kind == "huge"    ? std::numeric_limits<R>::max() / 64
                     : kind == "small"   ? std::sqrt(std::sqrt(std::sqrt(limit)))  // 2e-5, or 3e-39
                                         : 1;
    for (T& x : a.elements) x = x * T(factor);
  }
  return a;
}

TYPED_TEST(Decompositions, EigenvectorsOfHermitianMatrices) {
  using T = TypeParam;
  using R = real_of_t<T>;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    for (const int64_t n : {2, 32, 33, 64, 65, 128, 131, 260}) {
      for (const std::string kind : {"random", "diagonal", "rank one", "small", "tiny", "huge", "subnormal"}) {
        if (n > 131 && kind != "random") continue;
        for (const bool upper : {false, true}) {
          const Dense<T> a = hermitian<T>(kind, n);
          std::vector<R> values(static_cast<size_t>(n));
          Dense<T> vectors(n, n), scaled(n, n), wanted(n, n);
          const PoolLease lease;
          ASSERT_EQ(Eigh<T>(n, upper, true).decompose(a.data(), values.data(), vectors.data()), 0);
          EXPECT_TRUE(std::is_sorted(values.begin(), values.end())) << kind << " " << n;
          EXPECT_LT(difference(adjoint(vectors) * vectors, identity<T>(n)), tolerance<T>(n)) << kind << " " << n;
          // Compares in units of the largest eigenvalue, because products of tiny and huge values would leave the
          // range.
          const R unit = std::max(std::abs(values.front()), std::abs(values.back()));
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              scaled(i, j) = vectors(i, j) * T(values[static_cast<size_t>(j)] / unit);
              wanted(i, j) = a(i, j) / T(unit);
            }
          }
          // Subnormal numbers have fewer bits.
          const double allowed = kind == "subnormal" ? 1e-4 : 4 * tolerance<T>(n);
          EXPECT_LT(difference(scaled * adjoint(vectors), wanted), allowed)
              << kind << " " << n << " on " << threads << " threads";
        }
      }
    }
  }
}

// Blocks on the diagonal that do not touch, and equal eigenvalues, on parts that are decomposed apart.
template <typename R>
void expect_decomposed_in_parts() {
  const int before = num_threads();
  for (const int threads : {1, 3, 8}) {
    set_num_threads(threads);
    for (const int n : {128, 257, 520}) {
      for (const int zero_every : {0, 1, 2, 64}) {
        std::mt19937 generator(7);
        std::normal_distribution<R> normal;
        std::vector<R> d(static_cast<size_t>(n)), e(static_cast<size_t>(n));
        for (R& x : d) x = zero_every == 2 ? R(1) : normal(generator);
        for (int i = 0; i < n - 1; ++i) {
          e[static_cast<size_t>(i)] = zero_every > 0 && (i + 1) % zero_every == 0 ? R(0) : normal(generator);
        }
        Dense<R> a(n, n), z(n, n), product(n, n);
        for (int i = 0; i < n; ++i) a(i, i) = d[static_cast<size_t>(i)];
        for (int i = 0; i + 1 < n; ++i) a(i, i + 1) = a(i + 1, i) = e[static_cast<size_t>(i)];
        ASSERT_EQ(Tridiagonal<R>(n).decompose(d.data(), e.data(), z.data()), 0);
        EXPECT_TRUE(std::is_sorted(d.begin(), d.end()));
        // Row j of `z` is vector j: a z_j = d_j z_j.
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < n; ++i) {
            R sum = a(i, i) * z(j, i) - d[static_cast<size_t>(j)] * z(j, i);
            if (i > 0) sum += a(i, i - 1) * z(j, i - 1);
            if (i + 1 < n) sum += a(i, i + 1) * z(j, i + 1);
            product(j, i) = sum;
          }
        }
        EXPECT_LT(difference(product, Dense<R>(n, n)), tolerance<R>(n)) << n << ", " << threads << ", " << zero_every;
        EXPECT_LT(difference(z * adjoint(z), identity<R>(n)), tolerance<R>(n));
      }
    }
  }
  set_num_threads(before);
}
TEST(TridiagonalTest, PartsMerge) {
  expect_decomposed_in_parts<float>();
  expect_decomposed_in_parts<double>();
}

}  // namespace
}  // namespace tt::cpu
