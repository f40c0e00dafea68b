// LU factorisations, by cuSOLVER or by one group of threads per matrix, and operators based on them, by one group of
// threads per matrix.
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/failed_matrix.h"
#include "kernels/cuda/linalg/library_decomposition.h"
#include "kernels/cuda/linalg/lu_device.h"

namespace tt::cuda {
namespace {

// The determinant of L U with row exchanges: its sign (NaN if the diagonal contains NaN), its magnitude, and the
// logarithm of its magnitude.
template <typename T>
struct Determinant {
  T sign = T(1);
  real_of_t<T> size = 1, log = 0;

  TT_DEVICE Determinant(const T* lu, const int32_t* pivots, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const T d = lu[i * n + i];
      const real_of_t<T> length = math::abs(d);
      sign = rotated(pivots[i] == i + 1 ? sign : -sign, d, length);
      size *= length;
      log += math::log(length);
    }
  }
  // Returns sign * d / |d|, or d if d is 0 or NaN. `length` is |d|.
  TT_DEVICE static T rotated(T sign, T d, real_of_t<T> length) {
    if constexpr (is_complex_v<T>)
      return length > 0 ? sign * math::over(d, length) : d;
    else
      return d < 0 ? -sign : d > 0 ? sign : d;
  }
};

template <typename T>
void factor(const Queue& queue, MatrixFaults faults, int64_t batch, int64_t m, int64_t n, T* lu, int32_t* pivots,
            int32_t* info) {
  const int64_t k = m < n ? m : n;
  for_each_group(queue, batch, m * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const int32_t failed = factor_lu(group, lu + i * m * n, m, n, pivots + i * k);
    if (group.rank() != 0) return;
    info[i] = failed;
    faults.report(i, failed);
  });
}

// Returns false, without side effects, if the library is not used.
template <typename T>
bool factor_by_library(const Queue& queue, const MatrixFaults& faults, const Tensor& input, const Tensor& lu,
                       const Tensor& pivots, const Tensor& info) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n), batch = info.numel();
  Solver* const library = solver_for(k > 0 ? batch : 0, m);
  if (!library) return false;
  const Tensor columns = to_column_major(input), rows = empty(pivots.sizes(), DType::kInt64, pivots.device());
  for (int64_t i = 0; i < batch; ++i) {
    library->lu(queue, lu.dtype(), m, n, matrix<T>(columns, i, m * n), matrix<int64_t>(rows, i, k),
                info.data_as<int32_t>() + i);
  }
  store_column_major(columns, lu);
  copy(rows, pivots);
  report_failures(queue, faults, info);
  return true;
}

// Overwrites the right-hand sides in `x` with the solutions.
template <typename T>
void solve(const Queue& queue, int64_t batch, int64_t n, int64_t k, const T* lu, const int32_t* pivots, bool transposed,
           T* x) {
  DeviceErrorCell* cell = open_error_cell(queue, &pivot_out_of_range);
  for_each_group(queue, batch, n * k, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const T* a = lu + i * n * n;
    T* b = x + i * n * k;
    if (!transposed) exchange_rows(group, pivots + i * n, n, b, n, k, false, cell);
    Triangle<T>{a, n, transposed, transposed, !transposed}.solve(group, b, k);
    Triangle<T>{a, n, !transposed, transposed, transposed}.solve(group, b, k);
    if (transposed) exchange_rows(group, pivots + i * n, n, b, n, k, true, cell);
  });
}

void order_rows(const Queue& queue, int64_t batch, int64_t rows, int64_t count, const int32_t* pivots, int64_t* out) {
  DeviceErrorCell* cell = open_error_cell(queue, &pivot_out_of_range);
  for_each_group(queue, batch, rows, [=] TT_DEVICE(Group & group) {
    int64_t* order = out + group.index() * rows;
    for (int64_t i = group.rank(); i < rows; i += group.size()) order[i] = i;
    group.sync();
    exchange_rows(group, pivots + group.index() * count, count, order, rows, 1, false, cell);
  });
}

template <typename T>
void product_of_diagonal(const Queue& queue, int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* out) {
  for_each(queue, batch, [=] TT_DEVICE(int64_t i) {
    const Determinant<T> d(lu + i * n * n, pivots + i * n, n);
    out[i] = math::times(d.sign, d.size);
  });
}

template <typename T>
void log_of_diagonal(const Queue& queue, int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* signs,
                     real_of_t<T>* logs) {
  for_each(queue, batch, [=] TT_DEVICE(int64_t i) {
    const Determinant<T> d(lu + i * n * n, pivots + i * n, n);
    signs[i] = d.sign;
    logs[i] = d.log;
  });
}

}  // namespace

void lu_factored(const Tensor& input, std::string_view checked_by, Tensor& LU, Tensor& pivots, Tensor& info) {
  const Queue queue = queue_of(LU);
  const MatrixFaults faults(queue, checked_by, input);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (factor_by_library<T>(queue, faults, input, LU, pivots, info)) return;
    copy(input, LU);
    factor<T>(queue, faults, info.numel(), input.size(-2), input.size(-1), LU.data_as<T>(), pivots.data_as<int32_t>(),
              info.data_as<int32_t>());
  });
}

void lu_permutation(const Tensor& pivots, int64_t rows, Tensor& out) {
  check_pivots(pivots);
  if (out.numel() == 0) return;
  const Tensor plain = contiguous(pivots);
  order_rows(queue_of(out), out.numel() / rows, rows, pivots.size(-1), plain.data_as<int32_t>(),
             out.data_as<int64_t>());
}

void lu_solved(const Tensor& A, const Tensor& B, const Tensor& LU, const Tensor& pivots, bool transposed, Tensor& out) {
  check_pivots(pivots);
  copy(B, out);
  if (out.numel() == 0) return;
  const Tensor lu = contiguous(LU), exchanges = contiguous(pivots);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    solve<T>(queue_of(out), matrix_count(A), A.size(-1), B.size(-1), lu.data_as<T>(), exchanges.data_as<int32_t>(),
             transposed, out.data_as<T>());
  });
}

void lu_determinant(const Tensor& A, const Tensor& LU, const Tensor& pivots, Tensor& out) {
  const Tensor lu = contiguous(LU), exchanges = contiguous_as(pivots, DType::kInt32);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    product_of_diagonal<T>(queue_of(out), out.numel(), A.size(-1), lu.data_as<T>(), exchanges.data_as<int32_t>(),
                           out.data_as<T>());
  });
}

void lu_log_determinant(const Tensor& A, const Tensor& LU, const Tensor& pivots, Tensor& sign, Tensor& logabsdet) {
  const Tensor lu = contiguous(LU), exchanges = contiguous_as(pivots, DType::kInt32);
  with_linalg_element(A.dtype(), [&]<typename T>(std::type_identity<T>) {
    log_of_diagonal<T>(queue_of(sign), sign.numel(), A.size(-1), lu.data_as<T>(), exchanges.data_as<int32_t>(),
                       sign.data_as<T>(), logabsdet.data_as<real_of_t<T>>());
  });
}

void pseudo_inverse_of(const Tensor&, const Tensor& inverse, Tensor& out) { copy(inverse, out); }

}  // namespace tt::cuda
