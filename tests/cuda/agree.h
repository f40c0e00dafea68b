// expect_agreement: runs a computation on the CPU and on a simulated GPU; compares results and in-place changes of
// inputs.
#pragma once

#include "tests/cuda/compare.h"

namespace tt::cuda {

using testing::filled;
using testing::tolerance_of;
using testing::values;

inline const DType kFloatings[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

inline Tensor on_gpu(const Tensor& t) { return there(t, Device{DeviceType::kCUDA, 0}); }

// A copy of a CPU tensor: contiguous, or, if `spread`, with gaps between its elements.
inline Tensor copied(const Tensor& t, bool spread) {
  if (!t || !spread || t.dim() == 0) return t ? ops::clone(t) : t;
  const Tensor pairs = ops::stack({t, ops::zeros_like(t)}, -1);
  Geometry view{t.sizes(), contiguous_strides(t.sizes()), 0, true};
  for (int64_t& stride : view.strides) stride *= 2;
  return view_of(pairs, view);
}

// f maps inputs to a list of results.
template <typename F>
void expect_agreement(const Tensors& inputs, double tolerance, F f, const std::string& what = "") {
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
