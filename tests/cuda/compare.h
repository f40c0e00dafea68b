// Runs computations on the CPU and on a simulated GPU, and compares results.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "tests/cuda/simulated/engine.h"
#include "tests/kernels/tensors.h"

namespace tt::cuda {

using testing::filled;
using testing::tolerance_of;
using testing::values;

// A copy of a CPU tensor on `device`, with the same strides.
inline Tensor copy_to_device(const Tensor& t, Device device) {
  if (!t) return t;
  const int64_t elements = static_cast<int64_t>(t->storage->bytes() / item_size(t.dtype()));
  const Tensor whole = view_of(t, {{elements}, {1}, 0, true});
  return view_of(ops::to_device(whole, device), {t.sizes(), t.strides(), t->offset, true});
}

// Copies to the CPU, contiguous.
inline Tensor copy_to_cpu(const Tensor& t) { return ops::contiguous(ops::to_device(t, Device{})); }

// testing::filled, extended to complex numbers.
inline Tensor filled_any(SizesView sizes, DType dtype) {
  const Sizes own(sizes.begin(), sizes.end());
  if (!is_complex(dtype)) return testing::filled(own, dtype);
  return ops::complex(testing::filled(own, to_real(dtype)), testing::filled(own, to_real(dtype)));
}

// Expects equal dtypes and sizes, and elements that are equal within a relative `tolerance`; NaN equals NaN.
inline void expect_same(const Tensor& got, const Tensor& want, double tolerance, const std::string& what = "") {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  if (is_complex(got.dtype())) {
    expect_same(ops::view_as_real(got), ops::view_as_real(want), tolerance, what);
    return;
  }
  const Tensor a = copy_to_cpu(got), b = copy_to_cpu(want);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = testing::at(a, i), y = testing::at(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0, std::fabs(y)))
        << what << " at " << i << ": " << x << ", " << y;
  }
}

// Calls operators on its arguments.
using Compute = std::function<Tensors(const Tensors&)>;

inline Tensors copy_all_to_device(const Tensors& inputs, Device device) {
  Tensors moved;
  for (const Tensor& t : inputs) moved.push_back(copy_to_device(t, device));
  return moved;
}

// Runs `compute` on the CPU and on the GPU, and expects equal results.
inline void expect_equal_on_gpu(const SimulatedEngine& engine, const std::string& what, const Tensors& inputs,
                                const Compute& compute, double tolerance = 0) {
  const Tensors want = compute(inputs), got = compute(copy_all_to_device(inputs, engine.gpu()));
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].device(), engine.gpu()) << what;
    expect_same(got[i], want[i], tolerance, what + ", result " + std::to_string(i));
  }
}

// The error message of the call, or of reading its results.
inline std::string failure_of(const Tensors& inputs, const Compute& compute) {
  try {
    for (const Tensor& t : compute(inputs)) copy_to_cpu(t);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.kind())) + " " + error.what();
  }
  return "nothing was thrown";
}

// Expects both devices to fail with the same error, which contains `words`.
inline void expect_both_fail(const SimulatedEngine& engine, const std::string& words, const Tensors& inputs,
                             const Compute& compute) {
  const std::string here = failure_of(inputs, compute);
  EXPECT_NE(here.find(words), std::string::npos) << here;
  const std::string there = failure_of(copy_all_to_device(inputs, engine.gpu()), compute);
  EXPECT_NE(there.find(words), std::string::npos) << there;
}

inline const DType kFloatings[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

inline Tensor on_gpu(const Tensor& t) { return copy_to_device(t, Device{DeviceType::kCUDA, 0}); }

// A copy of a CPU tensor: contiguous, or, if `spread`, with gaps between its elements.
inline Tensor copied(const Tensor& t, bool spread) {
  if (!t || !spread || t.dim() == 0) return t ? ops::clone(t) : t;
  const Tensor pairs = ops::stack({t, ops::zeros_like(t)}, -1);
  Geometry view{t.sizes(), contiguous_strides(t.sizes()), 0, true};
  for (int64_t& stride : view.strides) stride *= 2;
  return view_of(pairs, view);
}

// Calls f, which maps inputs to a list of results, on the CPU and on the GPU. Compares the results, and the inputs,
// which f may change in place.
template <typename F>
void expect_cpu_and_gpu_agree(const Tensors& inputs, double tolerance, F f, const std::string& what = "") {
  for (const bool spread : {false, true}) {
    Tensors here, moved;
    for (const Tensor& t : inputs) {
      here.push_back(copied(t, spread));
      moved.push_back(on_gpu(here.back()));
    }
    const Tensors want = f(here), got = f(moved);
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_same(got[i], want[i], tolerance, what + ", result " + std::to_string(i)));
    }
    for (size_t i = 0; i < here.size(); ++i) {
      if (!here[i]) continue;
      ASSERT_NO_FATAL_FAILURE(expect_same(moved[i], here[i], tolerance, what + ", input " + std::to_string(i)));
    }
  }
}

}  // namespace tt::cuda
