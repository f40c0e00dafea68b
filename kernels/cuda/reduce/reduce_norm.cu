// Norms and logsumexp.
#include <cmath>

#include "engine/schema/op_ids.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/reduce/complex_reduce.h"
#include "kernels/cuda/reduce/reduce_extremum.h"
#include "kernels/cuda/reduce/reduce_sum.h"

namespace tt::cuda {

namespace {

// Computes the norm of order `power` from the sum of powers.
struct Root {
  double power;
  TT_FUNCTION double operator()(double total) const {
    return power == 1 ? total : power == 2 ? math::sqrt(total) : math::pow(total, 1 / power);
  }
};

// The sum of |x|^power, where `power` is the norm's order in `finish`.
template <typename T>
struct PowerSum : Sum<T, Magnitude, Root> {
  using Part = typename Sum<T, Magnitude, Root>::Part;
  TT_FUNCTION void add(Part& part, T x, int64_t) const {
    part.recent += math::pow(math::abs(x), static_cast<T>(this->finish.power));
  }
};

struct RawCount {
  TT_FUNCTION int64_t operator()(int64_t count) const { return count; }
};

// The maximum so far, and the sum of exp(x - largest).
template <typename T>
struct ExpTotal {
  T largest;
  double sum;
};

// Computes the logarithm of the sum of exponentials, without overflow.
template <typename T>
struct ExpSum {
  using Value = T;
  using Total = ExpTotal<T>;
  using Part = ExpTotal<T>;
  Access out;

  TT_FUNCTION ExpTotal<T> begin() const { return {extremum_identity<T, true>(), 0}; }
  TT_FUNCTION void add(ExpTotal<T>& part, T x, int64_t) const { part = merge(part, {x, 1}); }
  TT_FUNCTION void flush(ExpTotal<T>&) const {}
  TT_FUNCTION ExpTotal<T> end(const ExpTotal<T>& part) const { return part; }
  // If the maxima are equal, which includes infinities, no exponential is needed.
  TT_FUNCTION ExpTotal<T> merge(const ExpTotal<T>& a, const ExpTotal<T>& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const bool rises = !(b.largest < a.largest);  // true if one is NaN, so that the result is NaN
    const T high = rises ? b.largest : a.largest, low = rises ? a.largest : b.largest;
    const double scale = static_cast<double>(math::exp(low - high));
    return {high, rises ? a.sum * scale + b.sum : a.sum + b.sum * scale};
  }
  TT_FUNCTION void store(int64_t output, const ExpTotal<T>& total) const {
    out.store(output, static_cast<T>(static_cast<double>(total.largest) + math::log(total.sum)));
  }
};

template <typename T>
void norm_into(const Tensor& input, const ReducePlan& plan, double ord, Tensor& out) {
  const Access to(out);
  if (ord == 2) return reduce(Sum<T, Squared, Root>{to, Root{2}}, input, plan);
  if (ord == 1) return reduce(Sum<T, Magnitude, Root>{to, Root{1}}, input, plan);
  if (ord == 0) return reduce(Count<T, RawCount>{to, RawCount()}, input, plan);
  if (ord == INFINITY) return reduce(Extremum<T, true, Magnitude>{to, T(0)}, input, plan);
  if (ord == -INFINITY) return reduce(Extremum<T, false, Magnitude>{to, extremum_identity<T, false>()}, input, plan);
  reduce(PowerSum<T>{{to, Root{ord}}}, input, plan);
}

template <typename T>
void norm_as(const Tensor& input, double ord, const OptionalDims& dim, Tensor& out) {
  const Tensor x = read_as<T>(input);
  norm_into<T>(x, reduction_plan(x, dim), ord, out);
}

template <typename T>
void logsumexp_as(const Tensor& input, absl::Span<const int64_t> dim, Tensor& out) {
  const Tensor x = read_as<T>(input);
  reduce(ExpSum<T>{Access(out)}, x, ReducePlan(x, dim, Order::kAny));
}

// Returns the magnitudes of a complex tensor, in the real dtype.
Tensor magnitudes(const Tensor& t) {
  Tensor out = empty(t.sizes(), to_real(t.dtype()), t.device());
  const Arg args[] = {Arg(t.get())};
  run_step({find_op(op_id::kAbs), args, t.dtype()}, out);
  return out;
}

}  // namespace

void vector_norm(const Tensor& input, double ord, std::optional<absl::Span<const int64_t>> dim, bool keepdim,
                 std::optional<DType>, Tensor& out) {
  if (is_complex(input.dtype())) return vector_norm(magnitudes(input), ord, dim, keepdim, std::nullopt, out);
  out.dtype() == DType::kFloat64 ? norm_as<double>(input, ord, dim, out) : norm_as<float>(input, ord, dim, out);
}

void chebyshev_norm(const Tensor& input, absl::Span<const int64_t> dim, Tensor& out) {
  vector_norm(input, INFINITY, dim, false, std::nullopt, out);
}

void logsumexp(const Tensor& input, absl::Span<const int64_t> dim, bool, Tensor& out) {
  if (is_complex(out.dtype())) return complex_logsumexp(input, dim, out);
  out.dtype() == DType::kFloat64 ? logsumexp_as<double>(input, dim, out) : logsumexp_as<float>(input, dim, out);
}

}  // namespace tt::cuda
