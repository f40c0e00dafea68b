// One step of SparseAdam on some rows of a parameter.
#include <algorithm>
#include <cmath>

#include "engine/device/parallel.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/sparse/columns.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

template <typename T>
struct RowStep {
  T beta1, beta2, eps, step_size, sign;

  [[gnu::always_inline]] void apply(T* __restrict param, T* __restrict average, T* __restrict square,
                                    const T* __restrict grad, int64_t n) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T g = grad[i] * sign;
      const T a = average[i] + (g - average[i]) * (T(1) - beta1), s = square[i] + (g * g - square[i]) * (T(1) - beta2);
      average[i] = a;
      square[i] = s;
      param[i] -= step_size * (a / (std::sqrt(s) + eps));
    }
  }
};

TT_CLONES void apply_row(const RowStep<float>& step, float* param, float* average, float* square, const float* grad,
                         int64_t n) {
  step.apply(param, average, square, grad, n);
}
TT_CLONES void apply_row(const RowStep<double>& step, double* param, double* average, double* square,
                         const double* grad, int64_t n) {
  step.apply(param, average, square, grad, n);
}

}  // namespace

void sparse_adam_step(const Tensor& param, const Tensor& exp_avg, const Tensor& exp_avg_sq, const Tensor& rows,
                      const Tensor& grad, double lr, double beta1, double beta2, double eps, int64_t step,
                      bool maximize) {
  const Tensor at = checked_positions(rows, param.size(0));
  const int64_t n = at.numel();
  const Tensor sorted = view_of(at, Geometry{{1, n}, {n, 1}, at->offset});
  const Columns columns(sorted, {param.size(0)});
  const Tensor order = columns.sorted_order();
  for (int64_t i = 1; i < n; ++i) {  // threads write rows at the same time
    const int64_t* at_row = order.data_as<int64_t>() + i;
    if (columns.compare(at_row[-1], columns, at_row[0]) == 0) throw sparse_rows_error();
  }
  const Tensor targets[] = {param, exp_avg, exp_avg_sq};
  Tensor computed[3];
  for (int i = 0; i < 3; ++i) computed[i] = as_accumulate_type(targets[i]);
  const Tensor gradient = as_accumulate_type(grad);
  if (gradient.numel() == 0) return;
  const int64_t width = gradient.numel() / n;
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  const double step_size = lr * std::sqrt(correction2) / correction1;
  with_real(gradient.dtype(), [&]<typename T>(std::type_identity<T>) {
    const RowStep<T> update{static_cast<T>(beta1), static_cast<T>(beta2), static_cast<T>(eps),
                            static_cast<T>(step_size), T(maximize ? -1 : 1)};
    parallel_for(n, std::max<int64_t>(1, (1 << 13) / width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t to = at.data_as<int64_t>()[i] * width;
        apply_row(update, computed[0].data_as<T>() + to, computed[1].data_as<T>() + to, computed[2].data_as<T>() + to,
                  gradient.data_as<T>() + i * width, width);
      }
    });
  });
  for (int i = 0; i < 3; ++i) {
    if (!computed[i].same(targets[i])) copy(computed[i], targets[i]);
  }
}

}  // namespace tt::cpu
