// Variance and standard deviation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/reduce_into.h"
#include "kernels/cpu/loops/reduce_moments.h"

namespace tt::cpu {

namespace {

// The sum of squared deviations divided by the degrees of freedom. Infinite or NaN if there are none, as in PyTorch.
double variance(const MomentsTotal& total, int64_t correction) {
  return total.squares / std::max(total.count - static_cast<double>(correction), 0.0);
}

template <typename Result>
void moments_into(const Tensor& input, const OptionalDims& dim, Tensor& out, Result result) {
  const ReducePlan plan = reduction_plan(input, dim);
  if (out.dtype() == DType::kFloat64) {
    reduce_into(Moments<double>(), input, plan, out, result);
  } else {
    reduce_into(Moments<float>(), input, plan, out, result);
  }
}

// The variance of complex numbers is the sum of the variances of real and imaginary parts.
template <typename Result>
void moments_of_parts(const Tensor& input, const OptionalDims& dim, int64_t correction, Tensor& out, Result result) {
  Tensor variances[2];
  for (int which : {0, 1}) {
    variances[which] = empty(out.sizes(), DType::kFloat64, out.device());
    var(part(input, which), dim, correction, false, variances[which]);
  }
  double* sums = variances[0].data_as<double>();
  const double* others = variances[1].data_as<double>();
  for (int64_t i = 0; i < out.numel(); ++i) sums[i] = result(sums[i] + others[i]);
  copy(variances[0], out);
}

}  // namespace

void var(const Tensor& input, std::optional<absl::Span<const int64_t>> dim, int64_t correction, bool, Tensor& out) {
  if (is_complex(input.dtype())) return moments_of_parts(input, dim, correction, out, [](double v) { return v; });
  moments_into(input, dim, out, [=](const MomentsTotal& total) { return variance(total, correction); });
}

void std(const Tensor& input, std::optional<absl::Span<const int64_t>> dim, int64_t correction, bool, Tensor& out) {
  if (is_complex(input.dtype())) {
    return moments_of_parts(input, dim, correction, out, [](double v) { return std::sqrt(v); });
  }
  moments_into(input, dim, out, [=](const MomentsTotal& total) { return std::sqrt(variance(total, correction)); });
}

}  // namespace tt::cpu
