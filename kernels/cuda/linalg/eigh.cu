// Eigenvalues and eigenvectors of symmetric and Hermitian matrices, by cuSOLVER or by Jacobi's method, with one group
// of threads per matrix.
#include <limits>

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/failed_matrix.h"
#include "kernels/cuda/linalg/jacobi.h"
#include "kernels/cuda/linalg/largest_part.h"
#include "kernels/cuda/linalg/library_decomposition.h"

namespace tt::cuda {
namespace {

// Decomposes one matrix. `a` starts as the matrix and becomes diagonal, and the columns of `vectors` become the
// eigenvectors.
template <typename T>
struct Hermitian {
  using R = real_of_t<T>;
  int64_t n;
  T *a, *vectors;
  R* diagonal;             // n real numbers
  Rotation<T>* rotations;  // rotations of one round, one per pair of columns
  bool with_vectors;

  // Number of elements per matrix in `work`.
  static int64_t work(int64_t n) {
    const int64_t bytes = n * sizeof(R) + RoundRobin{n}.pairs() * sizeof(Rotation<T>);
    return 2 * n * n + (bytes + sizeof(T) - 1) / sizeof(T);
  }
  TT_DEVICE Hermitian(int64_t n, bool with_vectors, T* work)
      : n(n),
        a(work),
        vectors(a + n * n),
        diagonal(reinterpret_cast<R*>(vectors + n * n)),
        rotations(reinterpret_cast<Rotation<T>*>(diagonal + n)),
        with_vectors(with_vectors) {}

  // Copies one triangle of the input to both triangles of `a` and scales real and imaginary parts to at most 1. Returns
  // the divisor, which is infinite if an element is not finite.
  TT_DEVICE R load(Group& group, const T* input, bool upper) const {
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      const int64_t r = e / n, c = e % n;
      const bool is_read = (r < c) == upper;
      a[e] = r == c ? T(math::real(input[e])) : is_read ? input[e] : math::conj(input[c * n + r]);
      vectors[e] = r == c ? T(1) : T(0);
    }
    group.sync();
    const R most = largest_part(group, a, n * n), scale = most > 0 ? most : R(1);
    for (int64_t e = group.rank(); e < n * n; e += group.size()) a[e] = math::over(a[e], scale);
    group.sync();
    return scale;
  }
  // Whether the elements off the diagonal are negligible relative to the whole matrix.
  TT_DEVICE bool is_diagonal(Group& group) const {
    R off = 0, on = 0;
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      (e / n == e % n ? on : off) += math::squared_length(a[e]);
    }
    off = group.reduce(off, Add());
    on = group.reduce(on, Add());
    constexpr R kEpsilon = std::numeric_limits<R>::epsilon();
    return off <= kEpsilon * kEpsilon * on / 16;
  }
  TT_DEVICE void sweep(Group& group) const {
    const RoundRobin schedule{n};
    const int64_t pairs = schedule.pairs();
    for (int64_t round = 0; round < schedule.rounds(); ++round) {
      for (int64_t t = group.rank(); t < pairs; t += group.size()) {
        const ColumnPair m = schedule.at(round, t);
        if (!schedule.is_pair(m)) continue;
        const R p = math::real(a[m.p * n + m.p]), q = math::real(a[m.q * n + m.q]);
        rotations[t] = Rotation<T>::diagonalising(p, q, a[m.p * n + m.q]);
      }
      group.sync();
      for (int64_t e = group.rank(); e < pairs * n; e += group.size()) {
        const ColumnPair m = schedule.at(round, e / n);
        const int64_t c = e % n;
        if (schedule.is_pair(m)) rotations[e / n].of_rows().apply(a + m.p * n + c, a + m.q * n + c);
      }
      group.sync();
      for (int64_t e = group.rank(); e < pairs * n; e += group.size()) {
        const ColumnPair m = schedule.at(round, e % pairs);
        if (schedule.is_pair(m)) rotate_columns(rotations[e % pairs], m, e / pairs);
      }
      group.sync();
    }
  }
  TT_DEVICE void rotate_columns(const Rotation<T>& rotation, const ColumnPair& m, int64_t row) const {
    rotation.apply(a + row * n + m.p, a + row * n + m.q);
    if (with_vectors) rotation.apply(vectors + row * n + m.p, vectors + row * n + m.q);
    if (row == m.p) a[row * n + m.q] = T(0);  // removes the rounding error
    if (row == m.q) a[row * n + m.p] = T(0);
  }
  // Stores eigenvalues in ascending order.
  TT_DEVICE void store(Group& group, R scale, R* values, T* columns) const {
    for (int64_t i = group.rank(); i < n; i += group.size()) diagonal[i] = math::real(a[i * n + i]) * scale;
    group.sync();
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t to = sorted_position(diagonal, n, i, false);
      values[to] = diagonal[i];
      for (int64_t r = 0; r < n && with_vectors; ++r) columns[r * n + to] = vectors[r * n + i];
    }
  }
};

// `works` contains a workspace for Hermitian per matrix.
template <typename T>
void decompose(const Queue& queue, MatrixFaults faults, int64_t batch, int64_t n, const T* input, bool upper,
               bool with_vectors, T* works, real_of_t<T>* values, T* vectors) {
  const int64_t work = Hermitian<T>::work(n);
  for_each_group(queue, batch, n * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const Hermitian<T> matrix(n, with_vectors, works + i * work);
    const real_of_t<T> scale = matrix.load(group, input + i * n * n, upper);
    bool done = false;
    for (int sweep = 0; sweep < kMaxSweeps && scale < math::kInf<real_of_t<T>> && !done; ++sweep) {
      done = matrix.is_diagonal(group);
      if (!done) matrix.sweep(group);
    }
    if (!done && group.rank() == 0) faults.report(i, static_cast<int32_t>(n));
    matrix.store(group, scale, values + i * n, vectors + i * n * n);
  });
}

// Copies one triangle of row-major matrices to both triangles of column-major Hermitian matrices.
template <typename T>
struct FromTriangle {
  int64_t n;
  bool upper;
  const T* input;
  T* columns;

  TT_DEVICE void operator()(int64_t e) const {
    const int64_t r = e % n, c = e / n % n;
    const T* const own = input + e / (n * n) * n * n;
    const bool is_read = (r < c) == upper;
    columns[e] = r == c ? T(math::real(own[r * n + c])) : is_read ? own[r * n + c] : math::conj(own[c * n + r]);
  }
};

// Returns false, without side effects, if the library is not used.
template <typename T>
bool decompose_by_library(const Queue& queue, const MatrixFaults& faults, const Tensor& input, bool upper,
                          bool with_vectors, const Tensor& values, const Tensor& vectors) {
  const int64_t n = input.size(-1), batch = matrix_count(input);
  Solver* const library = solver_for(batch, n, /*batched=*/true);
  if (!library) return false;
  const Tensor a = contiguous(input), columns = empty({{batch, n, n}}, a.dtype(), a.device()),
               info = info_of(batch, a.device());
  for_each(queue, columns.numel(), FromTriangle<T>{n, upper, a.data_as<T>(), columns.data_as<T>()});
  const Tensor scales = scale_matrices<T>(queue, faults, n, columns);
  int32_t* const failed = info.data_as<int32_t>();
  if (batch == 1 ||
      !library->batched_eigh(queue, a.dtype(), false, with_vectors, n, columns.data(), values.data(), batch, failed)) {
    for (int64_t i = 0; i < batch; ++i) {
      library->eigh(queue, a.dtype(), false, with_vectors, n, matrix<T>(columns, i, n * n),
                    matrix<real_of_t<T>>(values, i, n), failed + i);
    }
  }
  unscale<real_of_t<T>>(queue, scales, values);
  if (with_vectors) store_column_major(columns, vectors);
  report_failures(queue, faults, info);
  return true;
}

}  // namespace

void eigh_decomposed(const Tensor& input, std::string_view UPLO, bool vectors, Tensor& eigenvalues,
                     Tensor& eigenvectors) {
  const int64_t n = input.size(-1), batch = matrix_count(input);
  if (n == 0 || batch == 0) return;
  const Queue queue = queue_of(eigenvalues);
  const MatrixFaults faults(queue, "linalg.eigh", input);
  const bool upper = UPLO == "U" || UPLO == "u";
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (decompose_by_library<T>(queue, faults, input, upper, vectors, eigenvalues, eigenvectors)) return;
    const Tensor a = contiguous(input);
    const Tensor works = empty({{batch, Hermitian<T>::work(n)}}, input.dtype(), input.device());
    decompose<T>(queue, faults, batch, n, a.data_as<T>(), upper, vectors, works.data_as<T>(),
                 eigenvalues.data_as<real_of_t<T>>(), vectors ? eigenvectors.data_as<T>() : nullptr);
  });
}

}  // namespace tt::cuda
