// Compares CPU and CUDA: copies tensors to both, and compares results.
#pragma once

#include <cmath>
#include <string>

#include "engine/dispatch/ops.h"
#include "tests/cuda/simulated/engine.h"
#include "tests/kernels/tensors.h"

namespace tt::cuda {

// A copy of a CPU tensor on `device`, with the same strides.
inline Tensor there(const Tensor& t, Device device) {
  if (!t) return t;
  const int64_t elements = static_cast<int64_t>(t->storage->bytes() / item_size(t.dtype()));
  const Tensor whole = view_of(t, {{elements}, {1}, 0, true});
  return view_of(ops::to_device(whole, device), {t.sizes(), t.strides(), t->offset, true});
}

// Copies to the CPU, contiguous.
inline Tensor back(const Tensor& t) { return ops::contiguous(ops::to_device(t, Device{})); }

// testing::filled, extended to complex numbers.
inline Tensor filled_any(SizesView sizes, DType dtype) {
  const Sizes own(sizes.begin(), sizes.end());
  if (!is_complex(dtype)) return testing::filled(own, dtype);
  return ops::complex(testing::filled(own, to_real(dtype)), testing::filled(own, to_real(dtype)));
}

// Expects equal dtypes, sizes and elements, the latter within relative `tolerance`; NaN equals NaN.
inline void expect_same(const Tensor& got, const Tensor& want, double tolerance, const std::string& what = "") {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  if (is_complex(got.dtype())) {
    expect_same(ops::view_as_real(got), ops::view_as_real(want), tolerance, what);
    return;
  }
  const Tensor a = back(got), b = back(want);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = testing::at(a, i), y = testing::at(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0, std::fabs(y)))
        << what << " at " << i << ": " << x << ", " << y;
  }
}

}  // namespace tt::cuda
