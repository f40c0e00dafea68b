#include "kernels/cuda/linalg/bias.h"

#include "kernels/cuda/launch/access.h"

namespace tt::cuda {
namespace {

template <typename C>
void add(const Tensor& bias, int64_t inner, const Tensor& out) {
  const Access from(bias.data(), bias.dtype()), to(out.data(), out.dtype());
  const int64_t n = bias.numel();
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to.store(i, to.load<C>(i) + from.load<C>(i / inner % n)); });
}

}  // namespace

void add_bias(const Tensor& bias, int64_t inner, const Tensor& out) {
  if (!bias || out.numel() == 0) return;
  if (out.dtype() == DType::kComplex64) return add<Complex<float>>(bias, inner, out);
  if (out.dtype() == DType::kComplex128) return add<Complex<double>>(bias, inner, out);
  if (!is_floating(out.dtype())) return add<int64_t>(bias, inner, out);
  out.dtype() == DType::kFloat64 ? add<double>(bias, inner, out) : add<float>(bias, inner, out);
}

}  // namespace tt::cuda
