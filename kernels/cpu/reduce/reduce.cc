// Reductions by a monoid: sums, products, extrema, counts and norms.
#include <cmath>
#include <type_traits>

#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/reduce_fold.h"
#include "kernels/cpu/loops/reduce_into.h"
#include "kernels/cpu/loops/reduce_power.h"
#include "kernels/cpu/reduce/complex_reduce.h"

namespace tt::cpu {

namespace {

template <typename Monoid, typename Result>
void fold_into(const Tensor& input, const ReducePlan& plan, Tensor& out, Result result) {
  if constexpr (std::is_same_v<typename Monoid::Value, float>) {
    if (input.dtype() == DType::kBFloat16) return reduce_into(Fold<Monoid, BFloat16>(), input, plan, out, result);
  }
  reduce_into(Fold<Monoid>(), input, plan, out, result);
}

// Calls f with the type in which elements of `dtype` are tested for 0: the element type, or uint8_t after conversion.
template <typename F>
void with_nonzero_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32: return f(std::type_identity<float>());
    case DType::kFloat64: return f(std::type_identity<double>());
    case DType::kInt64: return f(std::type_identity<int64_t>());
    default: return f(std::type_identity<uint8_t>());
  }
}

// Converts a complex tensor to bool (true if either part is nonzero). Returns other tensors unchanged.
Tensor nonzero_mask(const Tensor& t) { return is_complex(t.dtype()) ? contiguous_as(t, DType::kBool) : t; }

// Stores result(number of nonzero elements) in each output.
template <typename Result>
void count_into(const Tensor& input, const ReducePlan& plan, Tensor& out, Result result) {
  with_nonzero_type(input.dtype(),
                    [&]<typename T>(std::type_identity<T>) { fold_into<Count<T>>(input, plan, out, result); });
}

template <template <typename> typename Lifted>
void sum_into(const Tensor& input, const ReducePlan& plan, Tensor& out) {
  if (input.dtype() == DType::kBool && is_integral(out.dtype())) {
    return count_into(input, plan, out, [](int64_t count) { return count; });
  }
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    fold_into<Lifted<T>>(input, plan, out, [](const auto& total) { return static_cast<T>(total); });
  });
}

template <typename T>
using PlainSum = Sum<T, Identity>;
template <typename T>
using SumOfNumbers = Sum<T, NotNaN>;

template <template <typename, typename> typename Monoid>
void extremum_into(const Tensor& input, const OptionalDims& dim, Tensor& out) {
  const Tensor x = ordered_bits(input);
  const ReducePlan plan = reduction_plan(x, dim);
  auto as = [&]<typename T>(std::type_identity<T>) {
    fold_into<Monoid<T, Identity>>(x, plan, out, [](const T& total) { return total; });
  };
  if (x.dtype() == DType::kBool || x.dtype() == DType::kUInt8) return as(std::type_identity<uint8_t>());
  with_reduction_type(x.dtype(), as);
  restore_bits(out);
}

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

void amax(const Tensor& input, OptionalDims dim, bool, Tensor& out) { extremum_into<Largest>(input, dim, out); }

void amin(const Tensor& input, OptionalDims dim, bool, Tensor& out) { extremum_into<Smallest>(input, dim, out); }

void any(const Tensor& input, OptionalDims dim, bool, Tensor& out) {
  const Tensor x = nonzero_mask(input);
  count_into(x, reduction_plan(x, dim), out, [](int64_t count) { return static_cast<uint8_t>(count > 0); });
}

void all(const Tensor& input, OptionalDims dim, bool, Tensor& out) {
  const Tensor x = nonzero_mask(input);
  const ReducePlan plan = reduction_plan(x, dim);
  count_into(x, plan, out, [&](int64_t count) { return static_cast<uint8_t>(count == plan.count); });
}

void count_nonzero(const Tensor& input, OptionalDims dim, Tensor& out) {
  const Tensor x = nonzero_mask(input);
  count_into(x, reduction_plan(x, dim), out, [](int64_t count) { return count; });
}

namespace {

template <typename T>
void norm_into(const Tensor& input, const ReducePlan& plan, double ord, Tensor& out) {
  if (ord == 2) {
    fold_into<Sum<T, Squared>>(input, plan, out, [](double total) { return static_cast<T>(std::sqrt(total)); });
  } else if (ord == 1) {
    fold_into<Sum<T, Magnitude>>(input, plan, out, [](double total) { return static_cast<T>(total); });
  } else if (ord == 0) {
    fold_into<Count<T>>(input, plan, out, [](int64_t total) { return static_cast<T>(total); });
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
