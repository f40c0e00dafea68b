// One step of SparseAdam on some rows of a parameter.
#include <cmath>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/radix_sort.h"
#include "kernels/cuda/sort/sorted_rows.h"
#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {
namespace {

// Sets *invalid to 1, and reports an error, unless `rows` are distinct and in [0, size).
void check_rows(const Queue& queue, const Tensor& rows, int64_t size, int64_t* invalid) {
  const int64_t n = rows.numel();
  DeviceErrorCell* cell = open_index_cell(queue);
  const IndexRange range = index_range(rows, size, cell);
  Tensor keys = empty({n}, DType::kInt64, rows.device());
  const int64_t* from = rows.data_as<int64_t>();
  int64_t* key = keys.data_as<int64_t>();
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    key[i] = range.checked(from[i]);
    if (key[i] != from[i]) *invalid = 1;  // every writer stores the same value
  });
  const KeyIndexPairs sorted = radix_sort(queue, {keys, iota(queue, n)}, bits_below(size));
  const int64_t* in_order = sorted.keys.data_as<int64_t>();
  for_each(queue, n - 1, [=] TT_DEVICE(int64_t i) {
    if (in_order[i] != in_order[i + 1]) return;
    report_error(cell, i, kEqualRows, 0);
    *invalid = 1;
  });
}

struct Factors {
  double beta1, beta2, eps, step_size;
  bool maximize;
};

// The parameter and its averages; each is contiguous.
template <typename T>
struct Targets {
  T *param, *average, *square;
};

template <typename T>
void update_rows(const Queue& queue, const Tensor& rows, int64_t width, const Tensor& grad, Targets<T> of,
                 const Factors& factors, const int64_t* invalid) {
  using C = AccumulateType<T>;
  const C rest1 = C(1) - static_cast<C>(factors.beta1), rest2 = C(1) - static_cast<C>(factors.beta2);
  const C eps = static_cast<C>(factors.eps), step_size = static_cast<C>(factors.step_size);
  const C sign = factors.maximize ? C(-1) : C(1);
  const int64_t* row = rows.data_as<int64_t>();
  const T* from = grad.data_as<T>();
  for_each(queue, grad.numel(), [=] TT_DEVICE(int64_t i) {
    if (*invalid != 0) return;
    const int64_t at = row[i / width] * width + i % width;
    const C g = convert<C>(from[i]) * sign, average = convert<C>(of.average[at]), square = convert<C>(of.square[at]);
    const C a = average + (g - average) * rest1, s = square + (g * g - square) * rest2;
    of.average[at] = convert<T>(a);
    of.square[at] = convert<T>(s);
    of.param[at] = convert<T>(convert<C>(of.param[at]) - step_size * (a / (math::sqrt(s) + eps)));
  });
}

}  // namespace

void sparse_adam_step(const Tensor& param, const Tensor& exp_avg, const Tensor& exp_avg_sq, const Tensor& rows,
                      const Tensor& grad, double lr, double beta1, double beta2, double eps, int64_t step,
                      bool maximize) {
  const Queue queue = queue_of(param);
  const Tensor at = empty(rows.sizes(), DType::kInt64, rows.device());  // a copy, which no other session writes
  copy(rows, at);
  const Tensor flag = empty({1}, DType::kInt64, rows.device());
  queue.fill(flag.data(), 0, sizeof(int64_t));
  check_rows(queue, at, param.size(0), flag.data_as<int64_t>());
  if (grad.numel() == 0) return;
  const Tensor targets[] = {param, exp_avg, exp_avg_sq};
  Tensor packed[3];
  for (int i = 0; i < 3; ++i) packed[i] = contiguous(targets[i]);
  const Tensor gradient = contiguous(grad);
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  const Factors factors{beta1, beta2, eps, lr * std::sqrt(correction2) / correction1, maximize};
  with_floating(param.dtype(), [&]<typename T>(std::type_identity<T>) {
    update_rows<T>(queue, at, gradient.numel() / at.numel(), gradient,
                   {packed[0].data_as<T>(), packed[1].data_as<T>(), packed[2].data_as<T>()}, factors,
                   flag.data_as<int64_t>());
  });
  for (int i = 0; i < 3; ++i) {
    if (!packed[i].same(targets[i])) copy(packed[i], targets[i]);
  }
}

}  // namespace tt::cuda
