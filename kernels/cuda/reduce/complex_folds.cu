#include "kernels/cuda/reduce/complex_folds.h"

#include "kernels/common/math/complex_elementary.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

namespace {

using Wide = Complex<double>;

template <typename T>
struct Product {
  using Value = T;
  using Total = Wide;
  using Part = Wide;
  Access out;

  TT_FUNCTION Wide begin() const { return Wide(1); }
  TT_FUNCTION void take(Wide& part, T x, int64_t) const { part *= Wide(x); }
  TT_FUNCTION void settle(Wide&) const {}
  TT_FUNCTION Wide end(Wide part) const { return part; }
  TT_FUNCTION Wide merge(Wide a, Wide b) const { return a * b; }
  TT_FUNCTION void put(int64_t output, Wide total) const { out.store(output, total); }
};

// The largest real part so far, and the sum of exp(x - largest).
struct ExpTotal {
  double largest;
  Wide sum;
};

// Relative to the largest real part, so that nothing overflows.
template <typename T>
struct ExpSum {
  using Value = T;
  using Total = ExpTotal;
  using Part = ExpTotal;
  Access out;

  TT_FUNCTION ExpTotal begin() const { return {-math::kInf<double>, Wide(0)}; }
  TT_FUNCTION void take(ExpTotal& part, T x, int64_t) const {
    const double re = x.re, im = x.im;
    const bool adds = re != -math::kInf<double>;
    part = merge(part, {re, adds ? Wide(math::cos(im), math::sin(im)) : Wide(0)});
  }
  TT_FUNCTION void settle(ExpTotal&) const {}
  TT_FUNCTION ExpTotal end(const ExpTotal& part) const { return part; }
  TT_FUNCTION ExpTotal merge(const ExpTotal& a, const ExpTotal& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const bool rises = !(b.largest < a.largest);  // a NaN does, and stays
    const double high = rises ? b.largest : a.largest, low = rises ? a.largest : b.largest;
    const Wide scale(math::exp(low - high));
    return {high, rises ? a.sum * scale + b.sum : a.sum + b.sum * scale};
  }
  TT_FUNCTION void put(int64_t output, const ExpTotal& total) const {
    const Wide result = math::log(total.sum);
    out.store(output, Wide(result.re + total.largest, result.im));
  }
};

template <template <typename> typename Fold, typename T>
void fold_as(const Tensor& input, absl::Span<const int64_t> dims, const Tensor& out) {
  const Tensor x = read_as<T>(input);
  reduce(Fold<T>{Access(out.data(), out.dtype())}, x, ReducePlan(x, dims, Order::kAny));
}

template <template <typename> typename Fold>
void fold(const Tensor& input, absl::Span<const int64_t> dims, const Tensor& out) {
  out.dtype() == DType::kComplex64 ? fold_as<Fold, Complex<float>>(input, dims, out)
                                   : fold_as<Fold, Complex<double>>(input, dims, out);
}

}  // namespace

void complex_prod(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) { fold<Product>(input, dims, out); }

void complex_logsumexp(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) {
  fold<ExpSum>(input, dims, out);
}

}  // namespace tt::cuda
