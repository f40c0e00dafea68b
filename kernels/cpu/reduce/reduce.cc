// Sums and products.
#include <type_traits>

#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/reduce/complex_reduce.h"
#include "kernels/cpu/reduce/count_nonzero.h"
#include "kernels/cpu/reduce/fold_into.h"

namespace tt::cpu {

namespace {

template <template <typename> typename Lifted>
void sum_into(const Tensor& input, const ReducePlan& plan, Tensor& out) {
  if (input.dtype() == DType::kBool && is_integral(out.dtype())) {
    return count_into(input, plan, out);
  }
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    fold_into<Lifted<T>>(input, plan, out, [](const auto& total) { return static_cast<T>(total); });
  });
}

template <typename T>
using PlainSum = Sum<T, Identity>;
template <typename T>
using SumOfNumbers = Sum<T, NotNaN>;

}  // namespace

void sum(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) {
    return reduce_parts(contiguous_as(input, out.dtype()), dim, out, [](const Tensor& x, SizesView dims, Tensor& to) {
      sum_into<PlainSum>(x, ReducePlan(x, dims, Order::kAny), to);
    });
  }
  sum_into<PlainSum>(input, reduction_plan(input, dim), out);
}

void nansum(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  sum_into<SumOfNumbers>(input, reduction_plan(input, dim), out);
}

void mean(const Tensor& input, OptionalDims dim, bool keepdim, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) {
    return reduce_parts(contiguous_as(input, out.dtype()), dim, out,
                        [=](const Tensor& x, SizesView dims, Tensor& to) { mean(x, dims, keepdim, std::nullopt, to); });
  }
  const ReducePlan plan = reduction_plan(input, dim);
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const double count = static_cast<double>(plan.count);
    fold_into<Sum<T>>(input, plan, out, [count](const auto& total) { return static_cast<T>(total / count); });
  });
}

void prod(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) return complex_prod(input, dim.value_or(absl::Span<const int64_t>()), out);
  const ReducePlan plan = reduction_plan(input, dim);
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    fold_into<Product<T>>(input, plan, out, [](const T& total) { return total; });
  });
}

}  // namespace tt::cpu
