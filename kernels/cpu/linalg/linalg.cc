// Decompositions of batches of matrices, in parallel.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <new>
#include <vector>

#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/memory/workspace_charge.h"
#include "engine/schema/error.h"
#include "kernels/common/linalg/decomposition.h"
#include "kernels/common/math/complex_math.h"
#include "kernels/cpu/blas/openblas_call.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/lapack/matrices.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // minimum number of multiplications per thread
// The minimum number of multiplications for which one matrix should be divided among threads. kBlocks is for algorithms
// that consist of blocked products. kColumns is for algorithms with one or two barriers per column, which are slow if
// another process uses the same cores; several such matrices are divided among threads, one each.
constexpr int64_t kBlocks = 2 * 1024 * 1024, kColumns = int64_t{4} << 30;
// kBlocks for one matrix. Of several matrices each must be so large that most of its products use all threads.
int64_t divisible_in_blocks(int64_t batch) { return batch == 1 ? kBlocks : 16 * kBlocks; }

// Calls body(i, solver) for every matrix of a batch. `work` is the number of multiplications per matrix. `make` creates
// one solver per thread, which allocates about `workspace` bytes. Many matrices are divided among the pool's threads;
// few matrices of at least `divisible` work
// run one after the other, each on all threads. A body may throw, also Cancelled: exceptions are stored and rethrown.
template <typename Make, typename Body>
void each_matrix(int64_t batch, int64_t work, int64_t divisible, double workspace, Make make, Body body) {
  const bool one_by_one = batch < num_threads() && work >= divisible;
  const auto solvers = static_cast<double>(one_by_one ? 1 : std::min<int64_t>(batch, num_threads()));
  const WorkspaceCharge charge(static_cast<uint64_t>(std::min(workspace * solvers, 1e18)));
  Mutex mutex;
  std::exception_ptr thrown;
  const auto loop = [&](int64_t begin, int64_t end) {
    try {
      const OpenBlasCall allowed;
      if (!allowed) return;  // cancelled: parallel_for() or check_cancelled() throws
      auto solver = make();
      for (int64_t i = begin; i < end; ++i) body(i, solver);
    } catch (const std::bad_alloc&) {
      const MutexLock lock(mutex);
      thrown = std::make_exception_ptr(Error(ErrorKind::kOutOfMemory, "cannot allocate a decomposition workspace"));
    } catch (...) {
      const MutexLock lock(mutex);
      thrown = std::current_exception();
    }
  };
  if (one_by_one) {
    PoolLease lease;
    for (int64_t i = 0; i < batch && !thrown; ++i) {
      loop(i, i + 1);
      check_cancelled();
    }
  } else {
    const PoolLease alone(1);
    parallel_for(batch, std::max<int64_t>(kGrain / std::max<int64_t>(work, 1), 1), loop);
  }
  if (thrown) std::rethrow_exception(thrown);
}
// Like each_matrix(), for bodies that need no solver.
template <typename Body>
void each_matrix(int64_t batch, int64_t work, Body body) {
  each_matrix(
      batch, work, kBlocks, 0, [] { return 0; }, [&](int64_t i, int) { body(i); });
}

// The bytes of `count` matrices of rows x columns elements of type T.
template <typename T>
double matrix_bytes(int64_t rows, int64_t columns, double count = 1) {
  return static_cast<double>(rows) * static_cast<double>(columns) * count * static_cast<double>(sizeof(T));
}

// Throws if a matrix could not be decomposed. An empty `function` means that the caller does not check.
void check_info(std::string_view function, bool batched, const int32_t* info, int64_t n) {
  if (function.empty()) return;
  for (int64_t i = 0; i < n; ++i) {
    if (info[i] == 0) continue;
    throw decomposition_error(function, batched ? i : -1, info[i]);
  }
}

void check_info(std::string_view function, const Tensor& input, const Tensor& info) {
  check_info(function, input.dim() > 2, info.data_as<int32_t>(), info.numel());
}

// Converts LAPACK's row exchanges to the resulting order of the rows. Throws Error (RuntimeError) if a pivot is out of
// range.
void order_rows(const int32_t* pivots, int64_t count, int64_t rows, int64_t* order) {
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  for (int64_t i = 0; i < count; ++i) {
    check(pivots[i] >= 1 && pivots[i] <= rows, pivot_error(pivots[i], rows));
    std::swap(order[i], order[pivots[i] - 1]);
  }
}

// Returns the row order of every matrix of a batch: `rows` indices per matrix.
std::vector<int64_t> orders(const Tensor& pivots, int64_t batch, int64_t rows) {
  check_pivots(pivots);
  const Tensor plain = contiguous(pivots);
  const int64_t count = pivots.dim() > 0 ? pivots.size(-1) : 0;
  std::vector<int64_t> order(static_cast<size_t>(batch * rows));
  for (int64_t i = 0; i < batch; ++i) {
    order_rows(plain.data_as<int32_t>() + i * count, count, rows, order.data() + i * rows);
  }
  return order;
}

// Sets every matrix of a batch of square matrices to the identity.
template <typename T>
void fill_identity(Tensor& out) {
  const int64_t n = out.size(-1);
  for (int64_t e = 0; e < out.numel(); ++e) out.data_as<T>()[e] = e % (n * n) % (n + 1) == 0 ? T(1) : T(0);
}

// Returns the sign of the row exchanges times the sign of the product of U's diagonal. Passes the magnitudes of the
// diagonal's elements to `add`.
template <typename T, typename Add>
T fold_diagonal(const T* lu, const int32_t* pivots, int64_t n, Add add) {
  T sign(1);
  for (int64_t i = 0; i < n; ++i) {
    const T d = lu[i * n + i];
    const auto size = math::abs(d);
    if (pivots[i] != i + 1) sign = -sign;
    sign = size > 0 ? sign * (d / T(size)) : d;  // 0, or NaN
    add(size);
  }
  return sign;
}

}  // namespace

void lu_factored(const Tensor& input, std::string_view checked_by, Tensor& LU, Tensor& pivots, Tensor& info) {
  copy_into(LU, input);
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    each_matrix(
        matrix_count(input), m * n * k, divisible_in_blocks(matrix_count(input)),
        matrix_bytes<T>(m, std::min<int64_t>(n, 64)), [&] { return Lu<T>(m, n); },
        [&](int64_t i, Lu<T>& lu) {
          int32_t* failed = info.data_as<int32_t>() + i;
          *failed = 0;
          if (k > 0) *failed = lu.factor(LU.data_as<T>() + i * m * n, pivots.data_as<int32_t>() + i * k);
        });
  });
  check_info(checked_by, input, info);
}

void ldl_factored(const Tensor& input, bool hermitian, Tensor& LD, Tensor& pivots, Tensor& info) {
  copy_into(LD, input);
  const int64_t n = input.size(-1);
  if (n == 0) std::fill_n(info.data_as<int32_t>(), info.numel(), 0);
  if (LD.numel() == 0) return;
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    each_matrix(
        matrix_count(input), n * n * n, kColumns, matrix_bytes<T>(n, n + 64), [&] { return Ldl<T>(n, hermitian); },
        [&](int64_t i, Ldl<T>& ldl) {
          info.data_as<int32_t>()[i] = ldl.factor(LD.data_as<T>() + i * n * n, pivots.data_as<int32_t>() + i * n);
        });
  });
}

void ldl_solved(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian, Tensor& out) {
  check_pivots(pivots);
  copy_into(out, B);
  if (out.numel() == 0) return;
  const int64_t n = LD.size(-1), k = B.size(-1);
  const Tensor factors = contiguous(LD), plain = contiguous(pivots);
  with_linalg_element(LD.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t i = 0; i < matrix_count(LD); ++i) Ldl<T>::check_pivots(plain.data_as<int32_t>() + i * n, n);
    each_matrix(
        matrix_count(LD), n * n * k, kColumns, matrix_bytes<T>(n, n + k), [&] { return Ldl<T>(n, hermitian); },
        [&](int64_t i, Ldl<T>& ldl) {
          ldl.solve(factors.data_as<T>() + i * n * n, plain.data_as<int32_t>() + i * n, out.data_as<T>() + i * n * k,
                    k);
        });
  });
}

void lu_permutation(const Tensor& pivots, int64_t rows, Tensor& out) {
  const std::vector<int64_t> order = orders(pivots, rows > 0 ? out.numel() / rows : 0, rows);
  std::copy(order.begin(), order.end(), out.data_as<int64_t>());
}

void lu_solved(const Tensor& A, const Tensor& B, const Tensor& LU, const Tensor& pivots, bool transposed, Tensor& out) {
  const int64_t n = A.size(-1), k = B.size(-1), batch = matrix_count(A);
  const std::vector<int64_t> order = orders(pivots, batch, n);
  const double copy_elements = transposed ? 1 : 0;
  const Tensor lu = contiguous(LU), b = contiguous(B);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    const WorkspaceCharge charge(
        static_cast<uint64_t>(matrix_bytes<T>(n, k, copy_elements * static_cast<double>(num_threads()))));
    each_matrix(batch, n * n * k, [&](int64_t i) {
      const int64_t* rows = order.data() + i * n;
      const T* factors = lu.data_as<T>() + i * n * n;
      const T* right = b.data_as<T>() + i * n * k;
      T* x = out.data_as<T>() + i * n * k;
      if (transposed) {
        std::vector<T> y(right, right + n * k);
        solve_triangular(factors, y.data(), n, k, true, true, false);
        solve_triangular(factors, y.data(), n, k, false, true, true);
        for (int64_t r = 0; r < n; ++r) std::copy_n(y.data() + r * k, k, x + rows[r] * k);
        return;
      }
      for (int64_t r = 0; r < n; ++r) std::copy_n(right + rows[r] * k, k, x + r * k);
      solve_triangular(factors, x, n, k, false, false, true);
      solve_triangular(factors, x, n, k, true, false, false);
    });
  });
}

void lu_determinant(const Tensor& A, const Tensor& LU, const Tensor& pivots, Tensor& out) {
  const int64_t n = A.size(-1);
  const Tensor lu = contiguous(LU), exchanges = contiguous_as(pivots, DType::kInt32);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t i = 0; i < out.numel(); ++i) {
      real_of_t<T> size = 1;
      const T sign = fold_diagonal(lu.data_as<T>() + i * n * n, exchanges.data_as<int32_t>() + i * n, n,
                                   [&](real_of_t<T> d) { size *= d; });
      out.data_as<T>()[i] = sign * T(size);
    }
  });
}

void lu_log_determinant(const Tensor& A, const Tensor& LU, const Tensor& pivots, Tensor& sign, Tensor& logabsdet) {
  const int64_t n = A.size(-1);
  const Tensor lu = contiguous(LU), exchanges = contiguous_as(pivots, DType::kInt32);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t i = 0; i < sign.numel(); ++i) {
      real_of_t<T> size = 0;
      sign.data_as<T>()[i] = fold_diagonal(lu.data_as<T>() + i * n * n, exchanges.data_as<int32_t>() + i * n, n,
                                           [&](real_of_t<T> d) { size += std::log(d); });
      logabsdet.data_as<real_of_t<T>>()[i] = size;
    }
  });
}

void cholesky_factored(const Tensor& input, std::string_view checked_by, Tensor& L, Tensor& info) {
  copy_into(L, input);
  const int64_t n = input.size(-1);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    each_matrix(matrix_count(input), n * n * n / 3, [&](int64_t i) {
      T* a = L.data_as<T>() + i * n * n;
      info.data_as<int32_t>()[i] = cholesky(a, n);
      for (int64_t r = 0; r < n; ++r) std::fill(a + r * n + r + 1, a + (r + 1) * n, T(0));
    });
  });
  check_info(checked_by, input, info);
}

void triangular_solved(const Tensor& A, const Tensor& B, bool upper, bool transposed, bool unitriangular, Tensor& out) {
  copy_into(out, B);
  const int64_t n = A.size(-1), k = B.size(-1);
  const Tensor a = contiguous(A);
  if (n == 0 || k == 0) return;
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    each_matrix(matrix_count(A), n * n * k / 2, [&](int64_t i) {
      solve_triangular(a.data_as<T>() + i * n * n, out.data_as<T>() + i * n * k, n, k, upper, transposed,
                       unitriangular);
    });
  });
}

void qr_factored(const Tensor& input, std::string_view mode, Tensor& Q, Tensor& R) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n), rows = R.size(-2);
  const int64_t columns = mode == "r" ? 0 : Q.size(-1);
  const Tensor a = contiguous(input);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto make = [&] { return Householder<T>(m, n, columns); };
    const int64_t divisible = Householder<T>::is_blocked(m, n) ? divisible_in_blocks(matrix_count(input)) : kColumns;
    const double workspace = matrix_bytes<T>(m, std::max(n, columns) + 256);
    each_matrix(matrix_count(input), m * n * k, divisible, workspace, make, [&](int64_t i, Householder<T>& qr) {
      std::vector<T> tau(static_cast<size_t>(k));
      qr.factor(a.data_as<T>() + i * m * n, tau.data());
      qr.triangle(rows, R.data_as<T>() + i * rows * n);
      if (columns > 0) qr.orthogonal(tau.data(), Q.data_as<T>() + i * m * columns);
    });
  });
}

void householder_factored(const Tensor& input, Tensor& a, Tensor& tau) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n);
  if (k == 0) return copy_into(a, input);
  const Tensor matrices = contiguous(input);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto make = [&] { return Householder<T>(m, n, 0); };
    const int64_t divisible = Householder<T>::is_blocked(m, n) ? divisible_in_blocks(matrix_count(input)) : kColumns;
    const double workspace = matrix_bytes<T>(m, n + 256);
    each_matrix(matrix_count(input), m * n * k, divisible, workspace, make, [&](int64_t i, Householder<T>& qr) {
      qr.factor(matrices.data_as<T>() + i * m * n, tau.data_as<T>() + i * k);
      qr.reflections(a.data_as<T>() + i * m * n);
    });
  });
}

void eigh_decomposed(const Tensor& input, std::string_view UPLO, bool vectors, Tensor& eigenvalues,
                     Tensor& eigenvectors) {
  const int64_t n = input.size(-1), batch = matrix_count(input);
  if (n == 0) return;
  const bool upper = UPLO == "U" || UPLO == "u";
  const Tensor a = contiguous(input);
  std::vector<int32_t> info(static_cast<size_t>(batch));
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto make = [&] { return Eigh<T>(n, upper, vectors); };
    const double workspace = matrix_bytes<T>(n, n, vectors ? 4 : 2);  // the matrix, and those of divide and conquer
    each_matrix(batch, 9 * n * n * n, kColumns, workspace, make, [&](int64_t i, Eigh<T>& eigh) {
      info[static_cast<size_t>(i)] =
          eigh.decompose(a.data_as<T>() + i * n * n, eigenvalues.data_as<real_of_t<T>>() + i * n,
                         vectors ? eigenvectors.data_as<T>() + i * n * n : nullptr);
    });
  });
  check_info("linalg.eigh", input.dim() > 2, info.data(), batch);
}

void eig_decomposed(const Tensor& input, bool vectors, Tensor& eigenvalues, Tensor& eigenvectors) {
  const int64_t n = input.size(-1), batch = matrix_count(input);
  if (n == 0) return;
  const Tensor a = contiguous(input);
  std::vector<int32_t> info(static_cast<size_t>(batch));
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    using C = Complex<real_of_t<T>>;
    each_matrix(
        batch, 25 * n * n * n, kColumns, matrix_bytes<T>(n, n, vectors ? 2 : 1), [&] { return Eig<T>(n, vectors); },
        [&](int64_t i, Eig<T>& eig) {
          info[static_cast<size_t>(i)] = eig.decompose(a.data_as<T>() + i * n * n, eigenvalues.data_as<C>() + i * n,
                                                       vectors ? eigenvectors.data_as<C>() + i * n * n : nullptr);
        });
  });
  check_info("linalg.eig", input.dim() > 2, info.data(), batch);
}

void svd_decomposed(const Tensor& input, bool full_matrices, bool vectors, Tensor& U, Tensor& S, Tensor& Vh) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n), batch = matrix_count(input);
  const Tensor a = contiguous(input);
  std::vector<int32_t> info(static_cast<size_t>(batch));
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (k == 0) {  // no singular values: U and Vh may be any orthonormal matrices
      if (vectors && full_matrices) fill_identity<T>(U), fill_identity<T>(Vh);
      return;
    }
    const auto some = full_matrices ? SingularVectors::kFull : SingularVectors::kThin;
    const auto make = [&] { return Svd<T>(m, n, vectors ? some : SingularVectors::kNone); };
    const int64_t u = !vectors ? 0 : full_matrices ? m : k, vh = !vectors ? 0 : full_matrices ? n : k;
    const double workspace =
        matrix_bytes<T>(m, n + u) + matrix_bytes<T>(vh, n) + matrix_bytes<T>(k, k, vectors ? 6 : 1);
    each_matrix(batch, 20 * m * n * k, kColumns, workspace, make, [&](int64_t i, Svd<T>& svd) {
      info[static_cast<size_t>(i)] =
          svd.decompose(a.data_as<T>() + i * m * n, vectors ? U.data_as<T>() + i * m * U.size(-1) : nullptr,
                        S.data_as<real_of_t<T>>() + i * k, vectors ? Vh.data_as<T>() + i * Vh.size(-2) * n : nullptr);
    });
  });
  check_info("linalg.svd", input.dim() > 2, info.data(), batch);
}

void pseudo_inverse_of(const Tensor&, const Tensor& inverse, Tensor& out) { copy_into(out, inverse); }

void matrix_exp(const Tensor& input, Tensor& out) {
  const int64_t n = input.size(-1);
  if (n == 0) return;
  if (item_size(input.dtype()) == 2) {
    Tensor wide = empty(out.sizes(), DType::kFloat32, out.device());
    matrix_exp(contiguous_as(input, DType::kFloat32), wide);
    return copy(wide, out);
  }
  const Tensor a = contiguous(input);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto make = [&] { return Exponential<T>(n); };
    each_matrix(matrix_count(input), 10 * n * n * n, kBlocks, matrix_bytes<T>(n, n, 7), make,
                [&](int64_t i, Exponential<T>& exponential) {
                  exponential.of(a.data_as<T>() + i * n * n, out.data_as<T>() + i * n * n);
                });
  });
}

}  // namespace tt::cpu
