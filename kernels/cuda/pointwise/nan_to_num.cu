// nan_to_num. Not generated, because its defaults depend on the tensor's dtype, which a body cannot read.
#include "kernels/common/complex_as_real.h"
#include "kernels/common/limits.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pointwise/pointwise_call.h"
#include "kernels/cuda/pointwise/pointwise_kernels.h"

namespace tt::cuda {

namespace {

struct NanToNum {
  static constexpr int kInputs = 1, kScalarArgs = 3, kDivisor = -1;
  template <typename T>
  TT_FUNCTION static T call(const T* in, const ScalarArgs<T, kScalarArgs>& scalar_args) {
    return math::nan_to_num(in[0], scalar_args.value[0], scalar_args.value[1], scalar_args.value[2]);
  }
};

template <typename C>
void replace(const Tensor& input, const Tensor& out, double nan, double above, double below) {
  if (out.numel() == 0) return;
  CallBuilder<C> builder(out);
  builder.add_tensor(input);
  for (double number : {nan, above, below}) builder.add_number(static_cast<C>(number));
  launch<NanToNum, C>(queue_of(out), builder.call());
}

}  // namespace

void nan_to_num(const Tensor& input, double nan, std::optional<double> posinf, std::optional<double> neginf,
                Tensor& out) {
  if (is_complex(out.dtype())) {  // real and imaginary parts separately
    Tensor both = parts(out);
    return nan_to_num(parts(contiguous_as(input, out.dtype())), nan, posinf, neginf, both);
  }
  if (!is_floating(out.dtype())) return copy(input, out);
  const double limit = highest(out.dtype()), above = posinf.value_or(limit), below = neginf.value_or(-limit);
  out.dtype() == DType::kFloat64 ? replace<double>(input, out, nan, above, below)
                                 : replace<float>(input, out, nan, above, below);
}

}  // namespace tt::cuda
