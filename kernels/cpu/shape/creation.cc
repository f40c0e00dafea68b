// Tensors from nothing but their arguments.

#include <cmath>
#include <complex>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/shape/linspace.h"
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

Complex<double> complex_of(const Scalar& number) { return {number.to_complex().real(), number.to_complex().imag()}; }

template <typename F>
void fill_complex(const Tensor& out, F value) {
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (is_complex_v<T>) {
      for (int64_t i = 0; i < out.numel(); ++i) out.data_as<T>()[i] = T(value(i));
    }
  });
}

}  // namespace

void empty(absl::Span<const int64_t>, OptionalDType, OptionalDevice, Tensor&) {}

void empty_like(const Tensor&, OptionalDType, OptionalDevice, Tensor&) {}

void full(absl::Span<const int64_t>, Scalar fill_value, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, fill_value);
}

void full_like(const Tensor&, Scalar fill_value, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, fill_value);
}

void fill(const Tensor&, Scalar value, Tensor& out) { fill_with(out, value); }

void arange_from(Scalar start, Scalar, Scalar step, OptionalDType, OptionalDevice, Tensor& out) {
  start = start.in_dtype(out.dtype()), step = step.in_dtype(out.dtype());
  const bool real = start.category() == Category::kFloating || step.category() == Category::kFloating;
  if (real) {
    const double first = start.to_double(), by = step.to_double();
    fill_by_index(out, [=](int64_t i) { return first + by * static_cast<double>(i); });
  } else {
    const int64_t first = start.to_int(), by = step.to_int();
    fill_by_index(out, [=](int64_t i) { return first + by * i; });
  }
}

void linspace(Scalar start, Scalar end, int64_t steps, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) {
    return fill_complex(out, [&](int64_t i) { return linspace_at(complex_of(start), complex_of(end), steps, i); });
  }
  const double first = start.in_dtype(out.dtype()).to_double(), last = end.in_dtype(out.dtype()).to_double();
  fill_by_index(out, [=](int64_t i) { return linspace_at(first, last, steps, i); });
}

void logspace(Scalar start, Scalar end, int64_t steps, double base, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) {
    return fill_complex(out, [&](int64_t i) {
      const Complex<double> at = linspace_at(complex_of(start), complex_of(end), steps, i);
      const auto value = std::pow(std::complex<double>(base), std::complex<double>(at.re, at.im));
      return Complex<double>(value.real(), value.imag());
    });
  }
  const double first = start.in_dtype(out.dtype()).to_double(), last = end.in_dtype(out.dtype()).to_double();
  fill_by_index(out, [=](int64_t i) { return std::pow(base, linspace_at(first, last, steps, i)); });
}

void eye(int64_t, std::optional<int64_t>, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, int64_t{0});
  const int64_t diagonal = std::min(out.size(0), out.size(1));
  if (diagonal > 0) fill_with(view_of(out, {{diagonal}, {out.size(1) + 1}, out->offset, true}), int64_t{1});
}

void literal(std::string_view bytes, absl::Span<const int64_t>, DType, Device, Tensor& out) {
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());  // the shape rule has compared the lengths
}

}  // namespace tt::cpu
