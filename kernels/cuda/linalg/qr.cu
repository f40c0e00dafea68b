// QR factorisations, by cuSOLVER or by one group of threads per matrix.
#include "kernels/common/linalg/decomposition.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/library_decomposition.h"
#include "kernels/cuda/linalg/reflections.h"

namespace tt::cuda {
namespace {

template <typename T>
void factor(const Queue& queue, int64_t batch, int64_t m, int64_t n, T* a, T* tau) {
  const int64_t k = m < n ? m : n;
  for_each_group(queue, batch, m * n, [=] TT_DEVICE(Group & group) {
    factor_qr(group, a + group.index() * m * n, m, n, tau + group.index() * k);
  });
}

// Stores `rows` rows of R and, if `columns` is not 0, `columns` columns of Q from the result of factor().
template <typename T>
void separate(const Queue& queue, int64_t batch, int64_t m, int64_t n, const T* a, const T* tau, int64_t rows, T* r,
              int64_t columns, T* q) {
  const int64_t k = m < n ? m : n;
  for_each_group(queue, batch, m * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const T* own = a + i * m * n;
    for (int64_t e = group.rank(); e < rows * n; e += group.size()) r[i * rows * n + e] = e % n < e / n ? T(0) : own[e];
    expand_q(group, own, m, n, tau + i * k, q + i * m * columns, columns, columns);
  });
}

// Factors column-major matrices in place by the library. Stores min(m, n) factors per matrix in `tau`.
template <typename T>
void factor_columns(Solver& library, const Queue& queue, int64_t m, int64_t n, const Tensor& a, T* tau) {
  const int64_t k = std::min(m, n), batch = a.size(0);
  const Tensor info = info_of(batch, a.device());
  for (int64_t i = 0; i < batch; ++i) {
    library.qr(queue, a.dtype(), m, n, matrix<T>(a, i, m * n), tau + i * k, info.data_as<int32_t>() + i);
  }
}

// Copies the first `rows` rows of R, row-major, from column-major matrices of m rows.
template <typename T>
struct UpperTriangle {
  int64_t m, n, rows;
  const T* a;
  T* r;

  TT_DEVICE void operator()(int64_t e) const {
    const int64_t i = e / (rows * n), row = e / n % rows, column = e % n;
    r[e] = column < row ? T(0) : a[(i * n + column) * m + row];
  }
};

// Copies the columns of `a` to `q`, both column-major. Columns that `a` does not have are filled with zeros.
template <typename T>
struct FirstColumns {
  int64_t m, n, columns;
  const T* a;
  T* q;

  TT_DEVICE void operator()(int64_t e) const {
    const int64_t i = e / (columns * m), column = e / m % columns;
    q[e] = column < n ? a[(i * n + column) * m + e % m] : T(0);
  }
};

// Returns false, without side effects, if the library is not used.
template <typename T>
bool factor_by_library(const Queue& queue, const Tensor& input, int64_t columns, const Tensor& q, const Tensor& r) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n), batch = matrix_count(input);
  Solver* const library = solver_for(k > 0 ? batch : 0, m);
  if (!library) return false;
  const Tensor a = to_column_major(input), tau = empty({{batch, k}}, input.dtype(), input.device());
  factor_columns<T>(*library, queue, m, n, a, tau.data_as<T>());
  for_each(queue, r.numel(), UpperTriangle<T>{m, n, r.size(-2), a.data_as<T>(), r.data_as<T>()});
  if (columns == 0) return true;
  const Tensor expanded = empty({{batch, columns, m}}, input.dtype(), input.device()),
               info = info_of(batch, input.device());
  for_each(queue, expanded.numel(), FirstColumns<T>{m, n, columns, a.data_as<T>(), expanded.data_as<T>()});
  for (int64_t i = 0; i < batch; ++i) {
    library->expand_q(queue, a.dtype(), m, columns, k, matrix<T>(expanded, i, columns * m), matrix<T>(tau, i, k),
                      info.data_as<int32_t>() + i);
  }
  store_column_major(expanded, q);
  return true;
}

}  // namespace

void qr_factored(const Tensor& input, std::string_view mode, Tensor& Q, Tensor& R) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n), batch = matrix_count(input);
  const int64_t columns = mode == "r" ? 0 : Q.size(-1);
  const Queue queue = queue_of(R);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (factor_by_library<T>(queue, input, columns, Q, R)) return;
    const Tensor a = empty({{batch, m, n}}, input.dtype(), input.device());
    const Tensor tau = empty({{batch, k}}, input.dtype(), input.device());
    copy(input, view_of(a, {input.sizes(), contiguous_strides(input.sizes()), 0, true}));
    factor<T>(queue, batch, m, n, a.data_as<T>(), tau.data_as<T>());
    separate<T>(queue, batch, m, n, a.data_as<T>(), tau.data_as<T>(), R.size(-2), R.data_as<T>(), columns,
                Q.data_as<T>());
  });
}

void householder_factored(const Tensor& input, Tensor& a, Tensor& tau) {
  const int64_t m = input.size(-2), n = input.size(-1), batch = matrix_count(input);
  const Queue queue = queue_of(a);
  Solver* const library = solver_for(tau.numel() > 0 ? batch : 0, m);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (library) {
      const Tensor columns = to_column_major(input);
      factor_columns<T>(*library, queue, m, n, columns, tau.data_as<T>());
      return store_column_major(columns, a);
    }
    copy(input, a);
    factor<T>(queue, batch, m, n, a.data_as<T>(), tau.data_as<T>());
  });
}

}  // namespace tt::cuda
