// bincount: counts integers, or sums weights per integer.
#include "kernels/common/sort/bincount.h"

#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/atomic.h"

namespace tt::cuda {

namespace {

// Computes bin[value[i]] += weight[i] for each i. The weights are 1 if `weights` is undefined.
template <typename T>
void accumulate_bins(const Tensor& values, const Tensor& weights, const Tensor& out) {
  const int64_t* value = values.data_as<int64_t>();
  const T* weight = weights ? weights.data_as<T>() : nullptr;
  T* bin = out.data_as<T>();
  for_each(queue_of(out), values.numel(),
           [=] TT_DEVICE(int64_t i) { atomic_add(bin + value[i], weight ? weight[i] : T(1)); });
}

int64_t smallest(const Tensor& values) {
  Tensor result = empty({}, DType::kInt64, values.device());
  amin(values, std::nullopt, false, result);
  return value_of(result);
}
int64_t largest(const Tensor& values) {
  Tensor result = empty({}, DType::kInt64, values.device());
  amax(values, std::nullopt, false, result);
  return value_of(result);
}

}  // namespace

void bincount(const Tensor& input, const Tensor& weights, int64_t minlength, Tensor& out) {
  check_bincount(input, weights, minlength);
  const Tensor values = contiguous_as(input, DType::kInt64);
  const bool none = values.numel() == 0;
  const int64_t bins = bin_count(none ? 0 : smallest(values), none ? -1 : largest(values), minlength);
  const DType dtype = bin_dtype(weights);
  out = empty({bins}, dtype, input.device());
  fill_with(out, Scalar(int64_t{0}));
  const Tensor weight = weights ? contiguous_as(weights, dtype) : Tensor();
  if (dtype == DType::kInt64) return accumulate_bins<int64_t>(values, weight, out);
  if (dtype == DType::kFloat32) return accumulate_bins<float>(values, weight, out);
  accumulate_bins<double>(values, weight, out);
}

}  // namespace tt::cuda
