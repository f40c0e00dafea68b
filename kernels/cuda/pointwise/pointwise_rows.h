// PointwiseRow: table entry that the generated sources (generated/kernels/cuda/pointwise_*.cu) define for an operator
// with a `body:`.
//
// Bodies for real numbers compute in float (also for float16 and bfloat16), double or int64_t. int64_t is also used for
// narrower integers and bool: the result wraps to the same value when it is stored.
#pragma once

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

inline constexpr int kMaxInputs = 4;   // maximum number of tensor parameters of a body
inline constexpr int kMaxNumbers = 8;  // maximum number of other parameters of a body

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

// One call of an operator. Used on the host.
template <typename C>
struct PointwiseCall {
  std::array<Source<C>, kMaxInputs> in;
  ScalarArgs<C> scalar_args;
  void* out = nullptr;
  DType dtype = DType::kFloat32;
  SizesView sizes;
  SizesView strides;
  int64_t numel = 0;
  // Whether all tensor operands are contiguous, are aligned to 16 bytes, and have the output's sizes and dtype.
  bool is_plain = false;
  DeviceErrorCell* fault = nullptr;  // set if the operator's row has a divisor and C is int64_t
};

template <typename C>
using Launch = void (*)(const Queue& queue, const PointwiseCall<C>& call);

struct PointwiseRow {
  uint16_t op;
  int8_t divisor;  // index of the input that is checked for zeros if it has integers; -1: none
  // Null if the operator does not compute in that type.
  Launch<float> f32;
  Launch<double> f64;
  Launch<int64_t> i64;
  Launch<int64_t> boolean;
};

// An operator's table entry for complex numbers and uint64. These less common types have separate sources
// (pointwise_extended_*.cu) and only one loop.
struct ExtendedDTypeRow {
  uint16_t op;
  bool is_signless;  // whether computing in int64_t produces the same bits as computing in uint64_t
  Launch<uint64_t> u64;
  Launch<Complex<float>> c64;
  Launch<Complex<double>> c128;
};

// Return the tables of all generated sources.
std::vector<absl::Span<const PointwiseRow>> pointwise_files();
std::vector<absl::Span<const ExtendedDTypeRow>> extended_files();

}  // namespace tt::cuda
