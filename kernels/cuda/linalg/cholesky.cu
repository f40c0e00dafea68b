// Cholesky factorisation, by cuSOLVER or by one group of threads per matrix, and triangular solves, by one group of
// threads per matrix.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/failed_matrix.h"
#include "kernels/cuda/linalg/library_decomposition.h"
#include "kernels/cuda/linalg/lu_device.h"

namespace tt::cuda {
namespace {

// Overwrites the lower triangle of a (n x n) with L and the upper one with zeros. Returns the order of the first
// leading minor that is not positive, or 0.
template <typename T>
TT_DEVICE int32_t factor_cholesky(Group& group, T* a, int64_t n) {
  using R = real_of_t<T>;
  int32_t failed = 0;
  for (int64_t j = 0; j < n; ++j) {
    const R square = math::real(a[j * n + j]);
    if (!(square > 0 && square < math::kInf<R>)) {
      failed = static_cast<int32_t>(j + 1);
      break;
    }
    const R diagonal = math::sqrt(square);
    group.sync();  // all threads have read the diagonal element
    for (int64_t i = j + group.rank(); i < n; i += group.size()) {
      a[i * n + j] = i == j ? T(diagonal) : math::over(a[i * n + j], diagonal);
    }
    group.sync();
    const int64_t left = n - j - 1;
    for (int64_t e = group.rank(); e < left * left; e += group.size()) {
      const int64_t r = j + 1 + e / left, c = j + 1 + e % left;
      if (c <= r) a[r * n + c] -= a[r * n + j] * math::conj(a[c * n + j]);
    }
    group.sync();
  }
  for (int64_t e = group.rank(); e < n * n; e += group.size()) {
    if (e % n > e / n) a[e] = T(0);
  }
  return failed;
}

template <typename T>
void factor(const Queue& queue, MatrixFaults faults, int64_t batch, int64_t n, T* l, int32_t* info) {
  for_each_group(queue, batch, n * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const int32_t failed = factor_cholesky(group, l + i * n * n, n);
    if (group.rank() != 0) return;
    info[i] = failed;
    faults.report(i, failed);
  });
}

template <typename T>
struct ClearUpperTriangle {
  int64_t n;
  T* matrices;

  TT_DEVICE void operator()(int64_t e) const {
    if (e % n > e / n % n) matrices[e] = T(0);
  }
};

// Sets `info` of matrices with an infinite or NaN leading minor as for a minor that is not positive. The library may
// not report such minors.
template <typename T>
struct CheckDiagonal {
  int64_t n;
  const T* matrices;
  int32_t* info;

  TT_DEVICE void operator()(Group& group) const {
    const T* const own = matrices + group.index() * n * n;
    int64_t first = n;
    for (int64_t i = group.rank(); i < n && first == n; i += group.size()) {
      if (!math::isfinite(own[i * n + i])) first = i;
    }
    first = group.reduce(first, [](int64_t a, int64_t b) { return a < b ? a : b; });
    if (group.rank() == 0 && first < n && info[group.index()] == 0)
      info[group.index()] = static_cast<int32_t>(first + 1);
  }
};

struct Addresses {
  std::byte* first;
  int64_t bytes;  // per matrix
  void** addresses;

  TT_DEVICE void operator()(int64_t i) const { addresses[i] = first + i * bytes; }
};

// Overwrites the matrices in `l` with L. The library reads them as column-major, that is, transposed, and computes U,
// which is the transpose of L. Returns false, without side effects, if the library is not used.
template <typename T>
bool factor_by_library(const Queue& queue, const MatrixFaults& faults, const Tensor& l, const Tensor& info) {
  const int64_t n = l.size(-1), batch = info.numel();
  Solver* const library = solver_for(batch, n, /*batched=*/true);
  if (!library) return false;
  if (batch == 1) {
    library->cholesky(queue, l.dtype(), n, l.data(), info.data_as<int32_t>());
  } else {
    const Tensor addresses = empty(Sizes{batch}, DType::kInt64, l.device());
    const auto matrices = static_cast<void**>(addresses.data());
    for_each(queue, batch, Addresses{l.data_as<std::byte>(), n * n * static_cast<int64_t>(sizeof(T)), matrices});
    library->batched_cholesky(queue, l.dtype(), n, matrices, batch, info.data_as<int32_t>());
  }
  for_each(queue, l.numel(), ClearUpperTriangle<T>{n, l.data_as<T>()});
  for_each_group(queue, batch, n, CheckDiagonal<T>{n, l.data_as<T>(), info.data_as<int32_t>()});
  report_failures(queue, faults, info);
  return true;
}

// Overwrites the right-hand sides in `b` with the solutions. `triangle` describes the first matrix of the batch.
template <typename T>
void solve(const Queue& queue, int64_t batch, Triangle<T> triangle, int64_t k, T* b) {
  const int64_t n = triangle.n;
  for_each_group(queue, batch, n * k, [=] TT_DEVICE(Group & group) {
    Triangle<T> own = triangle;
    own.a += group.index() * n * n;
    own.solve(group, b + group.index() * n * k, k);
  });
}

}  // namespace

void cholesky_factored(const Tensor& input, std::string_view checked_by, Tensor& L, Tensor& info) {
  copy(input, L);
  const Queue queue = queue_of(L);
  const MatrixFaults faults(queue, checked_by, input);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (factor_by_library<T>(queue, faults, L, info)) return;
    factor<T>(queue, faults, info.numel(), input.size(-1), L.data_as<T>(), info.data_as<int32_t>());
  });
}

void triangular_solved(const Tensor& A, const Tensor& B, bool upper, bool transposed, bool unitriangular, Tensor& out) {
  copy(B, out);
  if (out.numel() == 0) return;
  const Tensor a = contiguous(A);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    solve<T>(queue_of(out), matrix_count(A), {a.data_as<T>(), A.size(-1), upper, transposed, unitriangular}, B.size(-1),
             out.data_as<T>());
  });
}

}  // namespace tt::cuda
