#include "kernels/cuda/reduce/complex_reduce.h"

#include "kernels/common/math/complex_elementary.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

namespace {

using ComplexDouble = Complex<double>;

template <typename T>
struct Product {
  using Value = T;
  using Total = ComplexDouble;
  using Part = ComplexDouble;
  Access out;

  TT_FUNCTION ComplexDouble begin() const { return ComplexDouble(1); }
  TT_FUNCTION void add(ComplexDouble& part, T x, int64_t) const { part *= ComplexDouble(x); }
  TT_FUNCTION void flush(ComplexDouble&) const {}
  TT_FUNCTION ComplexDouble end(ComplexDouble part) const { return part; }
  TT_FUNCTION ComplexDouble merge(ComplexDouble a, ComplexDouble b) const { return a * b; }
  TT_FUNCTION void store(int64_t output, ComplexDouble total) const { out.store(output, total); }
};

// The maximum of the real parts so far, and the sum of exp(x - largest).
struct ExpTotal {
  double largest;
  ComplexDouble sum;
};

// Sums exponentials relative to the largest real part, to avoid overflow.
template <typename T>
struct ExpSum {
  using Value = T;
  using Total = ExpTotal;
  using Part = ExpTotal;
  Access out;

  TT_FUNCTION ExpTotal begin() const { return {-math::kInf<double>, ComplexDouble(0)}; }
  TT_FUNCTION void add(ExpTotal& part, T x, int64_t) const {
    const double re = x.re, im = x.im;
    const bool adds = re != -math::kInf<double>;
    part = merge(part, {re, adds ? ComplexDouble(math::cos(im), math::sin(im)) : ComplexDouble(0)});
  }
  TT_FUNCTION void flush(ExpTotal&) const {}
  TT_FUNCTION ExpTotal end(const ExpTotal& part) const { return part; }
  TT_FUNCTION ExpTotal merge(const ExpTotal& a, const ExpTotal& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const bool rises = !(b.largest < a.largest);  // true if one is NaN, so that the result is NaN
    const double high = rises ? b.largest : a.largest, low = rises ? a.largest : b.largest;
    const ComplexDouble scale(math::exp(low - high));
    return {high, rises ? a.sum * scale + b.sum : a.sum + b.sum * scale};
  }
  TT_FUNCTION void store(int64_t output, const ExpTotal& total) const {
    const ComplexDouble result = math::log(total.sum);
    out.store(output, ComplexDouble(result.re + total.largest, result.im));
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
