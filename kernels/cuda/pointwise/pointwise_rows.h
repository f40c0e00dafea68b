// PointwiseRow: table entry that the generated sources (generated/kernels/cuda/pointwise_*.cu) define for an operator
// with a `body:`.
//
// Bodies for real numbers compute in float (also for float16 and bfloat16), double or int64_t (also for narrower
// integers and bool: wrapping when the result is stored gives the same value).
#pragma once

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

inline constexpr int kMaxInputs = 4;   // tensors per body
inline constexpr int kMaxNumbers = 8;  // other parameters per body

// An operator's non-tensor parameters, in order, in the type of the computation.
template <typename C, int kCount = kMaxNumbers>
struct ScalarArgs {
  C value[kCount > 0 ? kCount : 1] = {};
  uint32_t present = 0;  // bit i: parameter i was given
};

// One operand, broadcast to the output's shape.
template <typename C>
struct Source {
  const void* data = nullptr;  // null: the operand is a number
  DType dtype = DType::kFloat32;
  C number{};
  Sizes strides;  // in elements; zeros for a number
};

// One call, on the host.
template <typename C>
struct PointwiseCall {
  std::array<Source<C>, kMaxInputs> in;
  ScalarArgs<C> scalar_args;
  void* out = nullptr;
  DType dtype = DType::kFloat32;
  SizesView sizes;
  SizesView strides;
  int64_t numel = 0;
  // All tensor operands are contiguous in the output's order, aligned to 16 bytes, and have its dtype.
  bool is_plain = false;
  DeviceErrorCell* fault = nullptr;  // set if the row has a divisor and C is int64_t
};

template <typename C>
using Launch = void (*)(const Queue& queue, const PointwiseCall<C>& call);

struct PointwiseRow {
  uint16_t op;
  int8_t divisor;  // the input checked for zeros when computing in integers; -1: none
  // Null if the operator does not compute in that type.
  Launch<float> f32;
  Launch<double> f64;
  Launch<int64_t> i64;
  Launch<int64_t> boolean;
};

// The table entry for the less common types, which have separate sources (pointwise_extended_*.cu) and only one loop:
// complex numbers and uint64.
struct ExtendedDTypeRow {
  uint16_t op;
  bool is_signless;  // computing in int64_t gives the bits of uint64
  Launch<uint64_t> u64;
  Launch<Complex<float>> c64;
  Launch<Complex<double>> c128;
};

// The tables of all generated sources.
std::vector<absl::Span<const PointwiseRow>> pointwise_files();
std::vector<absl::Span<const ExtendedDTypeRow>> extended_files();

}  // namespace tt::cuda
