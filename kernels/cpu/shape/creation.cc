// Operators that create tensors: arange, linspace, logspace, and literals.
#include <cmath>
#include <complex>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/shape/creation.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

constexpr int64_t kGrain = 16384;

// out[i] = value(i). Requires a contiguous out.
template <typename F>
void fill_by_index(const Tensor& out, F value) {
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* to = out.data_as<T>();
    parallel_for(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(value(i));
    });
  });
}

template <typename F>
void fill_complex(const Tensor& out, F value) {
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (is_complex_v<T>) {
      for (int64_t i = 0; i < out.numel(); ++i) out.data_as<T>()[i] = T(value(i));
    }
  });
}

}  // namespace

void arange_from(Scalar start, Scalar, Scalar step, OptionalDType, OptionalDevice, Tensor& out) {
  with_arange(start, step, out.dtype(), [&](auto sequence) { fill_by_index(out, sequence); });
}

void linspace(Scalar start, Scalar end, int64_t steps, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) {
    const auto ends = complex_linspace_ends(start, end);
    return fill_complex(out, [=](int64_t i) { return linspace_at(ends.start, ends.end, steps, i); });
  }
  const auto ends = linspace_ends(start, end, out.dtype());
  fill_by_index(out, [=](int64_t i) { return linspace_at(ends.start, ends.end, steps, i); });
}

void logspace(Scalar start, Scalar end, int64_t steps, double base, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) {
    const auto ends = complex_linspace_ends(start, end);
    return fill_complex(out, [=](int64_t i) {
      const Complex<double> at = linspace_at(ends.start, ends.end, steps, i);
      const auto value = std::pow(std::complex<double>(base), std::complex<double>(at.re, at.im));
      return Complex<double>(value.real(), value.imag());
    });
  }
  const auto ends = linspace_ends(start, end, out.dtype());
  fill_by_index(out, [=](int64_t i) { return std::pow(base, linspace_at(ends.start, ends.end, steps, i)); });
}

void literal(std::string_view bytes, absl::Span<const int64_t>, DType, Device, Tensor& out) {
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());  // the shape rule has checked the length
}

}  // namespace tt::cpu
