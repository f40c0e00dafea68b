// Eigenvalues and eigenvectors of symmetric matrices by Jacobi's method: a group of threads a matrix.
#include <limits>

#include "kernels/cuda/failed_matrix.h"
#include "kernels/cuda/jacobi.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/wide.h"

namespace tt::cuda {
namespace {

// One matrix, which becomes diagonal, with the vectors that make it so as columns, and a place for a round's rotations.
template <typename T>
struct Symmetric {
  int64_t n;
  T *a, *vectors, *diagonal;  // `diagonal`: n numbers
  Rotation<T>* rotations;     // one a pair
  bool with_vectors;

  // Scales to magnitudes of at most 1 and makes both triangles the one that is read. Returns by what; infinite where an
  // element is not finite.
  TT_DEVICE T load(Group& group, const T* input, bool upper) const {
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      const int64_t r = e / n, c = e % n;
      a[e] = input[(r < c) == upper || r == c ? e : c * n + r];
      vectors[e] = r == c ? T(1) : T(0);
    }
    group.sync();
    const T most = largest_magnitude(group, a, n * n), scale = most > 0 ? most : T(1);
    for (int64_t e = group.rank(); e < n * n; e += group.size()) a[e] /= scale;
    group.sync();
    return scale;
  }
  // Whether what is off the diagonal is negligible beside the whole.
  TT_DEVICE bool is_diagonal(Group& group) const {
    T off = 0, on = 0;
    for (int64_t e = group.rank(); e < n * n; e += group.size()) (e / n == e % n ? on : off) += a[e] * a[e];
    off = group.reduce(off, Add());
    on = group.reduce(on, Add());
    constexpr T kEpsilon = std::numeric_limits<T>::epsilon();
    return off <= kEpsilon * kEpsilon * on / 16;
  }
  TT_DEVICE void sweep(Group& group) const {
    const Tournament tournament{n};
    const int64_t pairs = tournament.pairs();
    for (int64_t round = 0; round < tournament.rounds(); ++round) {
      for (int64_t t = group.rank(); t < pairs; t += group.size()) {
        const Meeting m = tournament.at(round, t);
        if (!tournament.is_pair(m)) continue;
        rotations[t] = Rotation<T>::diagonalising(a[m.p * n + m.p], a[m.q * n + m.q], a[m.p * n + m.q]);
      }
      group.sync();
      for (int64_t e = group.rank(); e < pairs * n; e += group.size()) {
        const Meeting m = tournament.at(round, e / n);
        const int64_t c = e % n;
        if (tournament.is_pair(m)) rotations[e / n].turn(a + m.p * n + c, a + m.q * n + c);
      }
      group.sync();
      for (int64_t e = group.rank(); e < pairs * n; e += group.size()) {
        const Meeting m = tournament.at(round, e % pairs);
        if (tournament.is_pair(m)) turn_columns(rotations[e % pairs], m, e / pairs);
      }
      group.sync();
    }
  }
  TT_DEVICE void turn_columns(const Rotation<T>& rotation, const Meeting& m, int64_t row) const {
    rotation.turn(a + row * n + m.p, a + row * n + m.q);
    if (with_vectors) rotation.turn(vectors + row * n + m.p, vectors + row * n + m.q);
    if (row == m.p) a[row * n + m.q] = 0;  // what rounding left of it
    if (row == m.q) a[row * n + m.p] = 0;
  }
  // In rising order.
  TT_DEVICE void store(Group& group, T scale, T* values, T* columns) const {
    for (int64_t i = group.rank(); i < n; i += group.size()) diagonal[i] = a[i * n + i] * scale;
    group.sync();
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const int64_t to = place_among(diagonal, n, i, false);
      values[to] = diagonal[i];
      for (int64_t r = 0; r < n && with_vectors; ++r) columns[r * n + to] = vectors[r * n + i];
    }
  }
};

// `work`: what a Symmetric needs, for each matrix.
template <typename T>
void decompose(const Queue& queue, MatrixFaults faults, int64_t batch, int64_t n, const T* input, bool upper,
               bool with_vectors, T* work, int64_t work_each, T* values, T* vectors) {
  for_each_group(queue, batch, n * n, [=] TT_DEVICE(Group& group) {
    const int64_t i = group.index();
    T* own = work + i * work_each;
    const Symmetric<T> matrix{n, own, own + n * n, own + 2 * n * n,
                              reinterpret_cast<Rotation<T>*>(own + 2 * n * n + n), with_vectors};
    const T scale = matrix.load(group, input + i * n * n, upper);
    bool done = false;
    for (int sweep = 0; sweep < kMostSweeps && scale < math::kInf<T> && !done; ++sweep) {
      done = matrix.is_diagonal(group);
      if (!done) matrix.sweep(group);
    }
    if (!done && group.rank() == 0) faults.tell(i, static_cast<int32_t>(n));
    matrix.store(group, scale, values + i * n, vectors + i * n * n);
  });
}

}  // namespace

void eigh_decomposed(const Tensor& input, std::string_view UPLO, bool vectors, Tensor& eigenvalues,
                     Tensor& eigenvectors) {
  const int64_t n = input.size(-1), batch = matrices_in(input);
  if (n == 0 || batch == 0) return;
  const Queue queue = queue_of(eigenvalues);
  const MatrixFaults faults(queue, "linalg.eigh", input);
  const Tensor a = contiguous(input);
  const int64_t each = 2 * n * n + n + 2 * Tournament{n}.pairs();
  const Tensor work = empty({{batch, each}}, input.dtype(), input.device());
  with_real(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    decompose<T>(queue, faults, batch, n, a.data_as<T>(), UPLO == "U" || UPLO == "u", vectors, work.data_as<T>(), each,
                 eigenvalues.data_as<T>(), vectors ? eigenvectors.data_as<T>() : nullptr);
  });
}

}  // namespace tt::cuda
