// Tensors from nothing but their arguments.
#include <cmath>

#include "kernels/common/math/complex_elementary.h"
#include "kernels/common/shape/linspace.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"

namespace tt::cuda {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

Complex<double> complex_of(const Scalar& number) { return {number.to_complex().real(), number.to_complex().imag()}; }

// Even steps from start to end, or `base` to their power.
void space_complex(const Scalar& start, const Scalar& end, int64_t steps, std::optional<double> base,
                   const Tensor& out) {
  const Access to(out.data(), out.dtype());
  const Complex<double> first = complex_of(start), last = complex_of(end), from(base.value_or(0));
  const bool raised = base.has_value();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    const Complex<double> at = linspace_at(first, last, steps, i);
    to.store(i, raised ? math::pow(from, at) : at);
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
  const Access to(out);
  start = start.in_dtype(out.dtype()), step = step.in_dtype(out.dtype());
  if (start.category() == Category::kFloating || step.category() == Category::kFloating) {
    const double first = start.to_double(), by = step.to_double();
    for_each(queue_of(out), out.numel(),
             [=] TT_DEVICE(int64_t i) { to.store(i, first + by * static_cast<double>(i)); });
  } else {
    const int64_t first = start.to_int(), by = step.to_int();
    for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to.store(i, first + by * i); });
  }
}

void linspace(Scalar start, Scalar end, int64_t steps, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) return space_complex(start, end, steps, std::nullopt, out);
  const Access to(out);
  const double first = start.in_dtype(out.dtype()).to_double(), last = end.in_dtype(out.dtype()).to_double();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to.store(i, linspace_at(first, last, steps, i)); });
}

void logspace(Scalar start, Scalar end, int64_t steps, double base, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) return space_complex(start, end, steps, base, out);
  const Access to(out);
  const double first = start.in_dtype(out.dtype()).to_double(), last = end.in_dtype(out.dtype()).to_double();
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to.store(i, pow(base, linspace_at(first, last, steps, i))); });
}

void eye(int64_t, std::optional<int64_t>, OptionalDType, OptionalDevice, Tensor& out) {
  fill_with(out, Scalar(false));
  const int64_t diagonal = std::min(out.size(0), out.size(1));
  if (diagonal > 0) fill_with(view_of(out, {{diagonal}, {out.size(1) + 1}, out->offset, true}), Scalar(true));
}

void literal(std::string_view bytes, absl::Span<const int64_t>, DType, Device, Tensor& out) {
  const size_t size = static_cast<size_t>(out.numel()) * item_size(out.dtype());
  upload(out, [&](void* to) { bytes.copy(static_cast<char*>(to), size); });
}

}  // namespace tt::cuda
