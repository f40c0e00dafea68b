// Eigenvalues and eigenvectors of general square matrices, by cuSOLVER or from the Schur form, with one group of
// threads per matrix.
#include <limits>

#include "kernels/common/math/complex_elementary.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/balance.h"
#include "kernels/cuda/linalg/failed_matrix.h"
#include "kernels/cuda/linalg/largest_part.h"
#include "kernels/cuda/linalg/library_decomposition.h"
#include "kernels/cuda/linalg/schur.h"

namespace tt::cuda {
namespace {

// Decomposes one real or complex matrix. Eigenvectors are computed from its Schur form in complex arithmetic. If the
// matrix is real, the vectors of real eigenvalues have imaginary parts of exactly 0.
template <typename T>
struct General {
  using R = real_of_t<T>;
  using C = Complex<R>;
  static constexpr R kLeast = std::numeric_limits<R>::epsilon();  // smallest divisor
  int64_t n;
  C *values, *solutions;  // `values` has n elements, `solutions` n x n, one column per eigenvalue
  Schur<T> schur;
  R* scales;  // n factors from balance(), by which the rows of the eigenvectors are multiplied

  // Number of elements in `work`.
  static int64_t work(int64_t n, bool with_vectors) {
    const int64_t ours = with_vectors ? n * n : 0, of_schur = (with_vectors ? 2 : 1) * n * n + n;
    constexpr int64_t kParts = sizeof(C) / sizeof(T);
    return ours + (of_schur + kParts - 1) / kParts + (n + 1) / 2;
  }
  TT_DEVICE General(int64_t n, bool with_vectors, C* values, C* work) : n(n), values(values), solutions(work) {
    T* const h = reinterpret_cast<T*>(with_vectors ? work + n * n : work);
    T* const tau = h + (with_vectors ? 2 : 1) * n * n;
    schur = {n, h, with_vectors ? h + n * n : nullptr, tau};
    scales = reinterpret_cast<R*>(tau + n);
  }

  TT_DEVICE C at(int64_t row, int64_t column) const { return C(schur.h[row * n + column]); }
  TT_DEVICE C& solution(int64_t row, int64_t v) const { return solutions[row * n + v]; }
  TT_DEVICE static C product(T a, C b) {
    if constexpr (is_complex_v<T>)
      return a * b;
    else
      return math::times(b, a);
  }
  // Whether rows i and i + 1 belong to the same diagonal block.
  TT_DEVICE bool is_linked(int64_t i) const { return i >= 0 && i + 1 < n && !(schur.h[(i + 1) * n + i] == T(0)); }
  // First and last row of the diagonal block that contains row i.
  TT_DEVICE int64_t first_of(int64_t i) const { return is_linked(i - 1) ? i - 1 : i; }
  TT_DEVICE int64_t last_of(int64_t i) const { return is_linked(i) ? i + 1 : i; }

  // Loads and balances the matrix and scales its real and imaginary parts to at most 1. Returns the divisor, which is
  // infinite if an element is not finite.
  TT_DEVICE R load(Group& group, const T* input) const {
    const R scale = scaled(group, input);
    if (!(scale < math::kInf<R>)) return scale;
    balance(group, schur.h, n, scales);
    return scale * scaled(group, schur.h);
  }
  TT_DEVICE R scaled(Group& group, const T* from) const {
    const R most = largest_part(group, from, n * n), scale = most > 0 ? most : R(1);
    for (int64_t e = group.rank(); e < n * n; e += group.size()) schur.h[e] = math::over(from[e], scale);
    group.sync();
    return scale;
  }
  TT_DEVICE void give_up(Group& group, C* vectors) const {
    for (int64_t v = group.rank(); v < n; v += group.size()) values[v] = C(math::kNan<R>);
    for (int64_t e = group.rank(); e < n * n && vectors; e += group.size()) vectors[e] = C(math::kNan<R>);
  }
  TT_DEVICE void find_values(Group& group) const {
    for (int64_t i = group.rank(); i < n; i += group.size()) values[i] = value(i);
    group.sync();
  }
  TT_DEVICE C value(int64_t i) const {
    const int64_t p = first_of(i), q = last_of(i);
    if (p == q) return at(i, i);
    const T* h = schur.h;
    const T middle = math::over(h[p * n + p] + h[q * n + q], 2), half = math::over(h[p * n + p] - h[q * n + q], 2);
    const C root = math::root(C(half * half + h[p * n + q] * h[q * n + p]));
    return i == p ? C(middle) + root : C(middle) - root;
  }

  TT_DEVICE static R larger(C a, C b) { return math::fmax(math::larger_part(a), math::larger_part(b)); }
  // Replaces a divisor near zero by kLeast. This is equivalent to a change of H by at most a rounding error.
  TT_DEVICE static C away_from_zero(C x) { return math::sum_of_parts(x) < kLeast ? C(kLeast) : x; }
  // Returns element `row` of the product of H's columns [from, last] and column v of the solutions.
  TT_DEVICE C along(int64_t row, int64_t from, int64_t last, int64_t v) const {
    C sum = C(0);
    for (int64_t j = from; j <= last; ++j) sum += product(schur.h[row * n + j], solution(j, v));
    return sum;
  }
  // Overwrites column v of the solutions with an eigenvector of H, block by block, from the eigenvalue's own block
  // upwards.
  TT_DEVICE void solve(int64_t v) const {
    const int64_t first = first_of(v), last = last_of(v);
    for (int64_t i = last + 1; i < n; ++i) solution(i, v) = C(0);
    begin(v, first, last);
    for (int64_t i = first - 1; i >= 0; i = first_of(i) - 1) {
      const int64_t p = first_of(i);
      const C diagonal = at(i, i) - values[v], right = -along(i, i + 1, last, v);
      if (p == i) {
        solution(i, v) = right / away_from_zero(diagonal);
      } else {
        solve_pair({at(p, p) - values[v], at(p, i), -along(p, i + 1, last, v)}, {at(i, p), diagonal, right},
                   &solution(p, v), &solution(i, v));
      }
      keep_in_range(v, p, i, last);
    }
  }
  // One equation for the two unknowns of a block. solve_pair() eliminates with the row whose first element is larger.
  struct Row {
    C first, second, right;
  };
  TT_DEVICE static void solve_pair(const Row& upper, const Row& lower, C* x, C* y) {
    const bool is_upper = math::sum_of_parts(upper.first) >= math::sum_of_parts(lower.first);
    const Row &one = is_upper ? upper : lower, &other = is_upper ? lower : upper;
    const C pivot = away_from_zero(one.first), factor = other.first / pivot;
    *y = (other.right - factor * one.right) / away_from_zero(other.second - factor * one.second);
    *x = (one.right - one.second * *y) / pivot;
  }
  // Computes the solution's elements in the eigenvalue's own block. They are orthogonal to the larger row of the block,
  // from whose diagonal the eigenvalue is subtracted.
  TT_DEVICE void begin(int64_t v, int64_t first, int64_t last) const {
    if (first == last) {
      solution(v, v) = C(1);
      return;
    }
    const C a = at(first, first) - values[v], b = at(first, last), c = at(last, first), d = at(last, last) - values[v];
    const R upper = larger(a, b), lower = larger(c, d);
    solution(first, v) = upper > lower ? math::over(b, upper) : math::over(d, lower);
    solution(last, v) = upper > lower ? math::over(-a, upper) : math::over(-c, lower);
  }
  // Scales the solution down if it has grown, because almost equal eigenvalues could make it overflow.
  TT_DEVICE void keep_in_range(int64_t v, int64_t p, int64_t q, int64_t last) const {
    const R size = larger(solution(p, v), solution(q, v));
    if (size * kLeast * kLeast <= 1) return;
    for (int64_t i = p; i <= last; ++i) solution(i, v) = math::over(solution(i, v), size);
  }

  // Computes vectors of length 1 whose largest elements are real and positive.
  TT_DEVICE void find_vectors(Group& group, C* vectors) const {
    for (int64_t v = group.rank(); v < n; v += group.size()) solve(v);
    group.sync();
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      const int64_t row = e / n, v = e % n, last = last_of(v);
      C sum = C(0);
      for (int64_t j = 0; j <= last; ++j) sum += product(schur.z[row * n + j], solution(j, v));
      vectors[e] = math::times(sum, scales[row]);
    }
    group.sync();
    for (int64_t v = group.rank(); v < n; v += group.size()) normalise(vectors + v);
  }
  TT_DEVICE void normalise(C* column) const {
    R scale = 0, square = 0, most = 0;
    for (int64_t i = 0; i < n; ++i) scale = math::fmax(scale, math::larger_part(column[i * n]));
    int64_t largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      const R size = math::squared_length(math::over(column[i * n], scale));
      square += size;
      largest = size > most ? i : largest;
      most = size > most ? size : most;
    }
    const R size = math::sqrt(most), length = math::sqrt(square);
    const C phase = math::over(math::over(math::conj(column[largest * n]), scale), size);
    for (int64_t i = 0; i < n; ++i) {
      column[i * n] = i == largest ? C(size / length) : math::over(math::over(column[i * n], scale) * phase, length);
    }
  }
};

// `works` contains a workspace for General per matrix.
template <typename T>
void decompose(const Queue& queue, MatrixFaults faults, int64_t batch, int64_t n, const T* input,
               Complex<real_of_t<T>>* works, Complex<real_of_t<T>>* values, Complex<real_of_t<T>>* vectors) {
  using R = real_of_t<T>;
  const int64_t work = General<T>::work(n, vectors != nullptr);
  for_each_group(queue, batch, 4 * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const General<T> matrix(n, vectors != nullptr, values + i * n, works + i * work);
    const R scale = matrix.load(group, input + i * n * n);
    if (!(scale < math::kInf<R> && matrix.schur.decompose(group))) {
      if (group.rank() == 0) faults.report(i, static_cast<int32_t>(n));
      return matrix.give_up(group, vectors ? vectors + i * n * n : nullptr);
    }
    matrix.find_values(group);
    if (vectors) matrix.find_vectors(group, vectors + i * n * n);
    group.sync();  // all threads have used the solutions
    for (int64_t v = group.rank(); v < n; v += group.size()) matrix.values[v] = math::times(matrix.values[v], scale);
  });
}

// Converts the library's eigenvectors of real matrices to complex row-major ones. For two conjugate eigenvalues, the
// library returns two columns: the real parts and the imaginary parts of the first vector.
template <typename R>
struct PairedVectors {
  int64_t n;
  const Complex<R>* values;
  const R* columns;
  Complex<R>* vectors;

  TT_DEVICE void operator()(int64_t e) const {
    const int64_t i = e / (n * n), row = e / n % n, v = e % n;
    const R* const own = columns + i * n * n + row;
    const R imaginary = values[i * n + v].im;
    const bool first = imaginary > 0 && v + 1 < n, second = imaginary < 0 && v > 0;
    vectors[e] = first    ? Complex<R>(own[v * n], own[(v + 1) * n])
                 : second ? Complex<R>(own[(v - 1) * n], -own[v * n])
                          : Complex<R>(own[v * n]);
  }
};

// Returns false, without side effects, if the library is not used.
template <typename T>
bool decompose_by_library(const Queue& queue, const MatrixFaults& faults, const Tensor& input, bool with_vectors,
                          const Tensor& values, const Tensor& vectors) {
  using C = Complex<real_of_t<T>>;
  const int64_t n = input.size(-1), batch = matrix_count(input);
  Solver* const library = solver_for(batch, n);
  if (!library || !library->has_eig()) return false;
  const Tensor a = to_column_major(input), scales = scale_matrices<T>(queue, faults, n, a),
               info = info_of(batch, input.device());
  Tensor columns;
  if (with_vectors) columns = empty({{batch, n, n}}, input.dtype(), input.device());
  for (int64_t i = 0; i < batch; ++i) {
    library->eig(queue, input.dtype(), n, matrix<T>(a, i, n * n), matrix<C>(values, i, n),
                 with_vectors ? matrix<T>(columns, i, n * n) : nullptr, info.data_as<int32_t>() + i);
  }
  unscale<C>(queue, scales, values);
  if constexpr (is_complex_v<T>) {
    if (with_vectors) store_column_major(columns, vectors);
  } else if (with_vectors) {
    for_each(queue, vectors.numel(),
             PairedVectors<T>{n, values.data_as<C>(), columns.data_as<T>(), vectors.data_as<C>()});
  }
  report_failures(queue, faults, info);
  return true;
}

}  // namespace

void eig_decomposed(const Tensor& input, bool vectors, Tensor& eigenvalues, Tensor& eigenvectors) {
  const int64_t n = input.size(-1), batch = matrix_count(input);
  if (n == 0 || batch == 0) return;
  const Queue queue = queue_of(eigenvalues);
  const MatrixFaults faults(queue, "linalg.eig", input);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    using C = Complex<real_of_t<T>>;
    if (decompose_by_library<T>(queue, faults, input, vectors, eigenvalues, eigenvectors)) return;
    const Tensor a = contiguous(input);
    const Tensor works = empty({{batch, General<T>::work(n, vectors)}}, eigenvalues.dtype(), input.device());
    decompose<T>(queue, faults, batch, n, a.data_as<T>(), works.data_as<C>(), eigenvalues.data_as<C>(),
                 vectors ? eigenvectors.data_as<C>() : nullptr);
  });
}

}  // namespace tt::cuda
