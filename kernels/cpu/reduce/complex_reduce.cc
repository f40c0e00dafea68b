#include "kernels/cpu/reduce/complex_reduce.h"

#include <cmath>
#include <complex>
#include <limits>

#include "engine/device/parallel.h"
#include "kernels/common/math/complex.h"
#include "kernels/common/reduce/reduce_plan.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/dim_iterator.h"

namespace tt::cpu {

namespace {

constexpr int64_t kGrain = 16 * 1024;

template <typename F>
void with_complex(DType dtype, F f) {
  dtype == DType::kComplex64 ? f(std::type_identity<Complex<float>>()) : f(std::type_identity<Complex<double>>());
}

// out[i] = fold(each), where each(f) calls f for the input elements of output i in order. fold() may call `each`
// repeatedly.
template <typename F>
void fold_lines(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out, F fold) {
  const Tensor x = contiguous_as(input, out.dtype());
  const ReducePlan plan(x, dims, Order::kLogical);
  with_complex(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(plan.outputs, std::max<int64_t>(1, kGrain / std::max<int64_t>(plan.count, 1)),
                 [&](int64_t begin, int64_t end) {
                   ExtentIterator kept(plan.kept, begin);
                   for (int64_t i = begin; i < end; ++i, kept.next()) {
                     out.data_as<T>()[i] = T(fold([&](auto f) {
                       ExtentIterator reduced(plan.reduced, 0);
                       for (int64_t j = 0; j < plan.count; ++j, reduced.next()) {
                         f(Complex<double>(x.data_as<T>()[kept.offset() + reduced.offset()]));
                       }
                     }));
                   }
                 });
  });
}

}  // namespace

void complex_prod(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) {
  fold_lines(input, dims, out, [](auto each) {
    Complex<double> product(1);
    each([&](Complex<double> x) { product *= x; });
    return product;
  });
}

// Computed relative to the largest real part, so that nothing overflows.
void complex_logsumexp(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) {
  fold_lines(input, dims, out, [](auto each) {
    double largest = -std::numeric_limits<double>::infinity();
    each([&](Complex<double> x) { largest = std::max(largest, x.re); });
    const double shift = std::isfinite(largest) ? largest : 0;
    std::complex<double> sum = 0;
    each([&](Complex<double> x) { sum += std::exp(std::complex<double>(x.re - shift, x.im)); });
    const std::complex<double> result = std::log(sum) + shift;
    return Complex<double>(result.real(), result.imag());
  });
}

void complex_cumprod(const Tensor& input, int64_t dim, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous_as(input, out.dtype());
  const DimIterator<2> lines({&out, &x}, dim);
  with_complex(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    lines.run([&](auto each) {
      each([&](const std::array<int64_t, 2>& at, int64_t) {
        Complex<double> product(1);
        for (int64_t i = 0; i < lines.length(0); ++i) {
          product *= Complex<double>(x.data_as<T>()[at[1] + i * lines.stride(1)]);
          out.data_as<T>()[at[0] + i * lines.stride(0)] = T(product);
        }
      });
    });
  });
}

}  // namespace tt::cpu
