// Sums, products, and reductions that count non-zero elements: count_nonzero, any, all.
#include "kernels/common/iteration/complex_as_real.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reduce/complex_reduce.h"
#include "kernels/cuda/reduce/reduce_sum.h"

namespace tt::cuda {

namespace {

// Integers are summed in int64 and never divided. The divisor applies only to floats.
template <typename Lift, typename T>
void sum_as(const Tensor& input, const OptionalDims& dim, bool average, Tensor& out) {
  const Tensor x = read_as<T>(input);
  const ReducePlan plan = reduction_plan(x, dim);
  const double divisor = average ? static_cast<double>(plan.count) : 1;
  reduce(Sum<T, Lift, DivideBy>{Access(out), DivideBy{divisor}}, x, plan);
}

void sum_into(const Tensor& input, const OptionalDims& dim, bool average, Tensor& out) {
  if (is_complex(out.dtype())) {
    return reduce_parts(contiguous_as(input, out.dtype()), dim, out,
                        [=](const Tensor& x, SizesView dims, Tensor& to) { sum_into(x, dims, average, to); });
  }
  with_reduction_type(out.dtype(),
                      [&]<typename T>(std::type_identity<T>) { sum_as<Identity, T>(input, dim, average, out); });
}

// Computes the result from the number of non-zero elements.
struct CountPredicate {
  enum Kind { kCount, kAny, kAll } kind;
  int64_t of;  // number of all elements

  TT_FUNCTION int64_t operator()(int64_t count) const {
    return kind == kCount ? count : kind == kAny ? count > 0 : count == of;
  }
};

void count_into(const Tensor& input, const OptionalDims& dim, CountPredicate::Kind kind, Tensor& out) {
  if (is_complex(input.dtype())) return count_into(contiguous_as(input, DType::kBool), dim, kind, out);
  const ReducePlan plan = reduction_plan(input, dim);
  with_reduction_type(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    reduce(Count<T, CountPredicate>{Access(out), CountPredicate{kind, plan.count}}, input, plan);
  });
}

template <typename T>
struct Product {
  using Value = T;
  using Total = T;
  using Part = T;
  Access out;

  TT_FUNCTION T begin() const { return T(1); }
  TT_FUNCTION void add(T& part, T x, int64_t) const { part *= x; }
  TT_FUNCTION void flush(T&) const {}
  TT_FUNCTION T end(T part) const { return part; }
  TT_FUNCTION T merge(T a, T b) const { return a * b; }
  TT_FUNCTION void store(int64_t output, T total) const { out.store(output, total); }
};

}  // namespace

void sum(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  sum_into(input, dim, false, out);
}

void nansum(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  if (is_integral(out.dtype())) return sum_into(input, dim, false, out);
  out.dtype() == DType::kFloat64 ? sum_as<NotNaN, double>(input, dim, false, out)
                                 : sum_as<NotNaN, float>(input, dim, false, out);
}

void mean(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  sum_into(input, dim, true, out);
}

void prod(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) return complex_prod(input, dim.value_or(absl::Span<const int64_t>()), out);
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Tensor x = read_as<T>(input);
    reduce(Product<T>{Access(out)}, x, reduction_plan(x, dim));
  });
}

void any(const Tensor& input, OptionalDims dim, bool, Tensor& out) {
  const NamedReduction named(input, dim);
  count_into(named.input, named.dims, CountPredicate::kAny, out);
}

void all(const Tensor& input, OptionalDims dim, bool, Tensor& out) {
  const NamedReduction named(input, dim);
  count_into(named.input, named.dims, CountPredicate::kAll, out);
}

void count_nonzero(const Tensor& input, OptionalDims dim, Tensor& out) {
  count_into(input, dim, CountPredicate::kCount, out);
}

}  // namespace tt::cuda
