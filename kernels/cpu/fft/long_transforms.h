// Fourier transforms of tensors along a dimension whose lines are long (long_line.h). Lines that are not contiguous are
// copied. Workspaces are charged to the session.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Whether complex lines, or real lines, of length n are transformed here. R is float or double.
template <typename R>
bool is_long(int64_t n, bool real);

// Complex to complex. Requires contiguous tensors of one shape; `to` may be `from`.
template <typename R>
void transform_long(const Tensor& from, const Tensor& to, int64_t dim, bool forward, R scale);
// Real lines to the first half of their spectra, and back. Require contiguous tensors.
template <typename R>
void transform_long_real(const Tensor& from, const Tensor& to, int64_t dim, R scale);
template <typename R>
void transform_long_to_real(const Tensor& from, const Tensor& to, int64_t dim, R scale);

}  // namespace tt::cpu
