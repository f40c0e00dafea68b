// Vector norms, and the logarithm of a sum of exponentials.
#include <cmath>

#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/reduce_power.h"
#include "kernels/cpu/reduce/complex_reduce.h"
#include "kernels/cpu/reduce/count_nonzero.h"
#include "kernels/cpu/reduce/fold_into.h"

namespace tt::cpu {

namespace {

template <typename T>
void norm_into(const Tensor& input, const ReducePlan& plan, double ord, Tensor& out) {
  if (ord == 2) {
    fold_into<Sum<T, Squared>>(input, plan, out, [](double total) { return static_cast<T>(std::sqrt(total)); });
  } else if (ord == 1) {
    fold_into<Sum<T, Magnitude>>(input, plan, out, [](double total) { return static_cast<T>(total); });
  } else if (ord == 0) {
    count_into(input, plan, out);
  } else if (ord == INFINITY) {
    fold_into<Largest<T, Magnitude>>(input, plan, out, [&](T total) { return plan.count ? total : T(0); });
  } else if (ord == -INFINITY) {
    fold_into<Smallest<T, Magnitude>>(input, plan, out, [](T total) { return total; });
  } else {
    reduce_into(PowerSum<T>{static_cast<T>(ord)}, input, plan, out,
                [ord](double total) { return static_cast<T>(std::pow(total, 1 / ord)); });
  }
}

template <typename T>
void logsumexp_into(const Tensor& input, const ReducePlan& plan, Tensor& out) {
  reduce_into(ExpSum<T>(), input, plan, out,
              [](const ExpTotal<T>& total) { return static_cast<T>(total.shift() + std::log(total.sum)); });
}

}  // namespace

void vector_norm(const Tensor& input, double ord, OptionalDims dim, bool keepdim, std::optional<DType>, Tensor& out) {
  if (is_complex(input.dtype())) return vector_norm(magnitudes(input), ord, dim, keepdim, std::nullopt, out);
  const ReducePlan plan = reduction_plan(input, dim);
  if (out.dtype() == DType::kFloat64) {
    norm_into<double>(input, plan, ord, out);
  } else {
    norm_into<float>(input, plan, ord, out);
  }
}

void chebyshev_norm(const Tensor& input, absl::Span<const int64_t> dim, Tensor& out) {
  vector_norm(input, INFINITY, dim, false, std::nullopt, out);
}

void logsumexp(const Tensor& input, absl::Span<const int64_t> dim, bool, Tensor& out) {
  if (is_complex(out.dtype())) return complex_logsumexp(input, dim, out);
  const ReducePlan plan(input, dim, Order::kAny);
  if (out.dtype() == DType::kFloat64) {
    logsumexp_into<double>(input, plan, out);
  } else {
    logsumexp_into<float>(input, plan, out);
  }
}

}  // namespace tt::cpu
