// Operators that create tensors: arange, linspace, logspace, and literals.
#include <cmath>

#include "kernels/common/math/complex_elementary.h"
#include "kernels/common/shape/creation.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"

namespace tt::cuda {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

// Computes out[i] = sequence(i).
template <typename T>
void fill_arithmetic(const Tensor& out, ArithmeticSequence<T> sequence) {
  const Access to(out);
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to.store(i, sequence(i)); });
}

// Fills `out` with evenly spaced complex numbers from start to end or, if `base` is given, with `base` to the power of
// these numbers.
void space_complex(const Scalar& start, const Scalar& end, int64_t steps, std::optional<double> base,
                   const Tensor& out) {
  const Access to(out.data(), out.dtype());
  const auto ends = complex_linspace_ends(start, end);
  const Complex<double> from(base.value_or(0));
  const bool raised = base.has_value();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    const Complex<double> at = linspace_at(ends.start, ends.end, steps, i);
    to.store(i, raised ? math::pow(from, at) : at);
  });
}

}  // namespace

void arange_from(Scalar start, Scalar, Scalar step, OptionalDType, OptionalDevice, Tensor& out) {
  with_arange(start, step, out.dtype(), [&](auto sequence) { fill_arithmetic(out, sequence); });
}

void linspace(Scalar start, Scalar end, int64_t steps, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) return space_complex(start, end, steps, std::nullopt, out);
  const Access to(out);
  const auto ends = linspace_ends(start, end, out.dtype());
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to.store(i, linspace_at(ends.start, ends.end, steps, i)); });
}

void logspace(Scalar start, Scalar end, int64_t steps, double base, OptionalDType, OptionalDevice, Tensor& out) {
  if (is_complex(out.dtype())) return space_complex(start, end, steps, base, out);
  const Access to(out);
  const auto ends = linspace_ends(start, end, out.dtype());
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to.store(i, pow(base, linspace_at(ends.start, ends.end, steps, i))); });
}

void literal(std::string_view bytes, absl::Span<const int64_t>, DType, Device, Tensor& out) {
  const size_t size = static_cast<size_t>(out.numel()) * item_size(out.dtype());
  upload(out, [&](void* to) { bytes.copy(static_cast<char*>(to), size); });
}

}  // namespace tt::cuda
