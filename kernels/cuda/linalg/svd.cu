// Singular values and vectors, by cuSOLVER or by the one-sided Jacobi method (Hestenes 1958), with one group of threads
// per matrix.
#include <limits>

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/failed_matrix.h"
#include "kernels/cuda/linalg/jacobi.h"
#include "kernels/cuda/linalg/largest_part.h"
#include "kernels/cuda/linalg/library_decomposition.h"
#include "kernels/cuda/linalg/reflections.h"

namespace tt::cuda {
namespace {

// The results requested for m x n matrices. If the matrices are wide (m < n), their adjoints are decomposed. `left` is
// therefore U for a tall matrix and V for a wide one.
struct SvdRequest {
  int64_t m, n;
  bool vectors;
  int64_t left_columns;  // columns of `left`

  TT_FUNCTION bool is_tall() const { return m >= n; }
  TT_FUNCTION int64_t rows() const { return is_tall() ? m : n; }
  TT_FUNCTION int64_t columns() const { return is_tall() ? n : m; }
  // Total number of elements in Decomposition's arrays.
  TT_FUNCTION int64_t work() const {
    return 2 * rows() * columns() + columns() * columns() + rows() * left_columns + 2 * columns();
  }
};

// Decomposes one tall matrix `a`. Rotations make the columns of `a` orthogonal and are also applied to the columns of
// `right`.
template <typename T>
struct Decomposition {
  using R = real_of_t<T>;
  SvdRequest request;
  int64_t rows, columns;
  T *a, *sorted, *right, *left, *tau;
  R* norms;

  TT_DEVICE Decomposition(const SvdRequest& request, T* work)
      : request(request),
        rows(request.rows()),
        columns(request.columns()),
        a(work),
        sorted(a + rows * columns),
        right(sorted + rows * columns),
        left(right + columns * columns),
        tau(left + rows * request.left_columns),
        norms(reinterpret_cast<R*>(tau + columns)) {}

  // Loads the matrix and scales its real and imaginary parts to at most 1. Returns the divisor, which is infinite if an
  // element is not finite.
  TT_DEVICE R load(Group& group, const T* input) const {
    const R most = largest_part(group, input, rows * columns), scale = most > 0 ? most : R(1);
    for (int64_t e = group.rank(); e < rows * columns; e += group.size()) {
      const int64_t r = e / columns, c = e % columns;
      a[e] = math::over(request.is_tall() ? input[e] : math::conj(input[c * rows + r]), scale);
    }
    for (int64_t e = group.rank(); e < columns * columns; e += group.size()) {
      right[e] = e / columns == e % columns ? T(1) : T(0);
    }
    group.sync();
    return scale;
  }
  // Rotates every pair of columns that is not orthogonal yet; returns the number of such pairs.
  TT_DEVICE int64_t sweep(Group& group) const {
    const RoundRobin schedule{columns};
    int64_t num_rotated = 0;
    for (int64_t round = 0; round < schedule.rounds(); ++round) {
      for (int64_t t = group.rank(); t < schedule.pairs(); t += group.size()) {
        const ColumnPair m = schedule.at(round, t);
        if (schedule.is_pair(m)) num_rotated += rotate(m);
      }
      group.sync();
    }
    return group.reduce(num_rotated, Add());
  }
  TT_DEVICE bool rotate(const ColumnPair& m) const {
    R p = 0, q = 0;
    T both = T(0);
    for (int64_t i = 0; i < rows; ++i) {
      const T x = a[i * columns + m.p], y = a[i * columns + m.q];
      p += math::squared_length(x);
      q += math::squared_length(y);
      both += math::conj(x) * y;
    }
    // Squares this small have lost precision. Elements are scaled to at most 1, so such a column is rounding error.
    constexpr R kTiny = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
    if (p < kTiny || q < kTiny) return false;
    const R negligible = std::numeric_limits<R>::epsilon() * math::sqrt(static_cast<R>(rows));
    if (math::abs(both) <= negligible * math::sqrt(p) * math::sqrt(q)) return false;
    const auto rotation = Rotation<T>::diagonalising(p, q, both);
    for (int64_t i = 0; i < rows; ++i) rotation.apply(a + i * columns + m.p, a + i * columns + m.q);
    for (int64_t i = 0; i < columns && request.vectors; ++i) {
      rotation.apply(right + i * columns + m.p, right + i * columns + m.q);
    }
    return true;
  }
  // Stores the singular values, which are the norms of the columns, in descending order.
  TT_DEVICE void store_values(Group& group, R scale, R* values) const {
    for (int64_t c = group.rank(); c < columns; c += group.size()) {
      R square = 0;
      for (int64_t i = 0; i < rows; ++i) square += math::squared_length(a[i * columns + c]);
      norms[c] = math::sqrt(square);
    }
    group.sync();
    for (int64_t c = group.rank(); c < columns; c += group.size()) {
      values[sorted_position(norms, columns, c, true)] = norms[c] * scale;
    }
  }
  // Stores the left vectors, which are the normalised columns. The vectors of zero columns, and the additional vectors
  // of a full basis, are columns of Q of a QR factorisation, whose R is diagonal because the columns are orthogonal.
  TT_DEVICE void store_vectors(Group& group, T* u, T* vh) const {
    for (int64_t c = group.rank(); c < columns; c += group.size()) {
      const int64_t to = sorted_position(norms, columns, c, true);
      for (int64_t i = 0; i < rows; ++i) sorted[i * columns + to] = a[i * columns + c];
      for (int64_t i = 0; i < columns; ++i) {
        const T value = right[i * columns + c];
        if (request.is_tall())
          vh[to * columns + i] = math::conj(value);
        else
          u[i * columns + to] = value;
      }
    }
    group.sync();
    factor_qr(group, sorted, rows, columns, tau);
    expand_q(group, sorted, rows, columns, tau, left, request.left_columns, request.left_columns);
    for (int64_t e = group.rank(); e < rows * request.left_columns; e += group.size()) {
      const int64_t i = e / request.left_columns, c = e % request.left_columns;
      const T value = c < columns && math::real(sorted[c * columns + c]) < 0 ? -left[e] : left[e];
      if (request.is_tall())
        u[e] = value;
      else
        vh[c * rows + i] = math::conj(value);
    }
  }
};

template <typename T>
void decompose(const Queue& queue, MatrixFaults faults, int64_t batch, SvdRequest request, const T* input, T* works,
               real_of_t<T>* values, T* us, int64_t u_size, T* vhs, int64_t vh_size) {
  const int64_t m = request.m, n = request.n;
  for_each_group(queue, batch, m * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const Decomposition<T> d(request, works + i * request.work());
    const real_of_t<T> scale = d.load(group, input + i * m * n);
    bool done = false;
    for (int sweep = 0; sweep < kMaxSweeps && scale < math::kInf<real_of_t<T>> && !done; ++sweep) {
      done = d.sweep(group) == 0;
    }
    if (!done && group.rank() == 0) faults.report(i, static_cast<int32_t>(d.columns));
    d.store_values(group, scale, values + i * d.columns);
    if (request.vectors) d.store_vectors(group, us + i * u_size, vhs + i * vh_size);
  });
}

// Returns false, without side effects, if the library is not used. The library requires tall column-major matrices.
// Read as column-major, a wide row-major matrix is its tall transpose. Read as row-major, the right factor of the
// transpose is U, and the left factor is Vh.
template <typename T>
bool decompose_by_library(const Queue& queue, const MatrixFaults& faults, const Tensor& input,
                          const SvdRequest& request, const Tensor& u, const Tensor& values, const Tensor& vh) {
  const int64_t batch = matrix_count(input), rows = request.rows(), columns = request.columns();
  Solver* const library = solver_for(columns > 0 ? batch : 0, rows);
  if (!library) return false;
  const bool tall = request.is_tall();
  const DType dtype = input.dtype();
  const Tensor a = tall ? to_column_major(input) : empty({{batch, request.m, request.n}}, dtype, input.device());
  if (!tall) copy(input, view_of(a, {input.sizes(), contiguous_strides(input.sizes()), 0, true}));
  const Tensor scales = scale_matrices<T>(queue, faults, columns, a), info = info_of(batch, input.device());
  const SingularVectors kind = !request.vectors                  ? SingularVectors::kNone
                               : request.left_columns == columns ? SingularVectors::kThin
                                                                 : SingularVectors::kFull;
  Tensor left = vh, right = u;
  if (tall && request.vectors) {
    left = empty({{batch, request.left_columns, rows}}, dtype, input.device());
    right = empty({{batch, columns, columns}}, dtype, input.device());
  }
  for (int64_t i = 0; i < batch; ++i) {
    library->svd(queue, dtype, kind, rows, columns, matrix<T>(a, i, rows * columns),
                 request.vectors ? matrix<T>(left, i, rows * request.left_columns) : nullptr,
                 matrix<real_of_t<T>>(values, i, columns),
                 request.vectors ? matrix<T>(right, i, columns * columns) : nullptr, info.data_as<int32_t>() + i);
  }
  unscale<real_of_t<T>>(queue, scales, values);
  if (tall && request.vectors) {
    store_column_major(left, u);
    store_column_major(right, vh);
  }
  report_failures(queue, faults, info);
  return true;
}

}  // namespace

void svd_decomposed(const Tensor& input, bool full_matrices, bool vectors, Tensor& U, Tensor& S, Tensor& Vh) {
  const int64_t m = input.size(-2), n = input.size(-1), batch = matrix_count(input);
  const Queue queue = queue_of(S);
  const MatrixFaults faults(queue, "linalg.svd", input);
  const int64_t left_columns = !vectors ? 0 : full_matrices ? std::max(m, n) : std::min(m, n);
  const SvdRequest request{m, n, vectors, left_columns};
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (decompose_by_library<T>(queue, faults, input, request, U, S, Vh)) return;
    const Tensor a = contiguous(input), work = empty({{batch, request.work()}}, input.dtype(), input.device());
    decompose<T>(queue, faults, batch, request, a.data_as<T>(), work.data_as<T>(), S.data_as<real_of_t<T>>(),
                 vectors ? U.data_as<T>() : nullptr, vectors ? m * U.size(-1) : 0, vectors ? Vh.data_as<T>() : nullptr,
                 vectors ? Vh.size(-2) * n : 0);
  });
}

}  // namespace tt::cuda
