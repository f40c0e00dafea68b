// Tensors from nothing but their arguments.
#include <cmath>

#include "kernels/cuda/access.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/fill.h"
#include "kernels/cuda/kernels.h"

namespace tt::cuda {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

// Counts from both ends, so that rounding is symmetrical and the last element is exactly `end`.
TT_FUNCTION double evenly(double start, double end, int64_t steps, int64_t i) {
  if (steps == 1) return start;
  const double step = (end - start) / static_cast<double>(steps - 1);
  return i < steps / 2 ? start + step * static_cast<double>(i) : end - step * static_cast<double>(steps - 1 - i);
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
  const Access to(out);
  const double first = start.in_dtype(out.dtype()).to_double(), last = end.in_dtype(out.dtype()).to_double();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to.store(i, evenly(first, last, steps, i)); });
}

void logspace(Scalar start, Scalar end, int64_t steps, double base, OptionalDType, OptionalDevice, Tensor& out) {
  const Access to(out);
  const double first = start.in_dtype(out.dtype()).to_double(), last = end.in_dtype(out.dtype()).to_double();
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to.store(i, pow(base, evenly(first, last, steps, i))); });
}

void eye(int64_t, std::optional<int64_t>, OptionalDType, OptionalDevice, Tensor& out) {
  const Access to(out);
  const int64_t columns = out.size(1);
  for_each(queue_of(out), out.numel(),
           [=] TT_DEVICE(int64_t i) { to.store(i, static_cast<int64_t>(i / columns == i % columns)); });
}

void literal(std::string_view bytes, absl::Span<const int64_t>, DType, Device, Tensor& out) {
  const size_t size = static_cast<size_t>(out.numel()) * item_size(out.dtype());
  upload(out, [&](void* to) { bytes.copy(static_cast<char*>(to), size); });
}

}  // namespace tt::cuda
