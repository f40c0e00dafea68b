// QR factorisations: a group of threads a matrix.
#include "kernels/common/decomposition.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
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

// From what factor() left: R's rows, and Q's columns, if there are any.
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

}  // namespace

void qr_factored(const Tensor& input, std::string_view mode, Tensor& Q, Tensor& R) {
  const int64_t m = input.size(-2), n = input.size(-1), k = std::min(m, n), batch = matrices_in(input);
  const Tensor a = empty({{batch, m, n}}, input.dtype(), input.device());
  const Tensor tau = empty({{batch, k}}, input.dtype(), input.device());
  copy(input, view_of(a, {input.sizes(), contiguous_strides(input.sizes()), 0, true}));
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Queue queue = queue_of(R);
    factor<T>(queue, batch, m, n, a.data_as<T>(), tau.data_as<T>());
    separate<T>(queue, batch, m, n, a.data_as<T>(), tau.data_as<T>(), R.size(-2), R.data_as<T>(),
                mode == "r" ? 0 : Q.size(-1), Q.data_as<T>());
  });
}

void householder_factored(const Tensor& input, Tensor& a, Tensor& tau) {
  copy(input, a);
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    factor<T>(queue_of(a), matrices_in(input), input.size(-2), input.size(-1), a.data_as<T>(), tau.data_as<T>());
  });
}

}  // namespace tt::cuda
