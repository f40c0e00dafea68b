// nan_to_num. It has no `body:`, because its default replacements depend on the tensor's dtype.
#include "kernels/common/iteration/complex_as_real.h"
#include "kernels/common/pointwise/nan_to_num.h"
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
void replace(const Tensor& input, const Tensor& out, const Replacements<double>& with) {
  if (out.numel() == 0) return;
  CallBuilder<C> builder(out);
  builder.add_tensor(input);
  for (double number : {with.nan, with.above, with.below}) builder.add_number(static_cast<C>(number));
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
  const Replacements<double> all = replacements(out.dtype(), nan, posinf, neginf);
  out.dtype() == DType::kFloat64 ? replace<double>(input, out, all) : replace<float>(input, out, all);
}

}  // namespace tt::cuda
