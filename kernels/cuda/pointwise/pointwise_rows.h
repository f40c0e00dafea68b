// PointwiseRow: what the generated sources (generated/kernels/cuda/pointwise_*.cu) give for an operator with a `body:`.
//
// Bodies compute in real numbers in float (float16 and bfloat16 too), double or int64_t (all narrower integers and
// bools too: what wraps around in a narrower type is the same once the result is stored in it).
#pragma once

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/launch/fault.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

inline constexpr int kMaxInputs = 4;   // tensors of a body
inline constexpr int kMaxNumbers = 8;  // and its other parameters

// An operator's parameters that are no tensors, in order, in the type of the computation.
template <typename C, int kCount = kMaxNumbers>
struct Numbers {
  C value[kCount > 0 ? kCount : 1] = {};
  uint32_t present = 0;  // bit i: parameter i was given
};

// One operand over the space of the output.
template <typename C>
struct Source {
  const void* data = nullptr;  // null: a number
  DType dtype = DType::kFloat32;
  C number{};
  Sizes strides;  // in elements; zeros for a number
};

// One call, on the host.
template <typename C>
struct PointwiseCall {
  std::array<Source<C>, kMaxInputs> in;
  Numbers<C> numbers;
  void* out = nullptr;
  DType dtype = DType::kFloat32;
  SizesView sizes;
  SizesView strides;
  int64_t numel = 0;
  // All operands that are tensors lie one after the other as the output does, aligned to 16 bytes, in its dtype.
  bool is_plain = false;
  FaultCell* fault = nullptr;  // where the row has a divisor and C is int64_t
};

template <typename C>
using Launch = void (*)(const Queue& queue, const PointwiseCall<C>& call);

struct PointwiseRow {
  uint16_t op;
  int8_t divisor;  // the input that must hold no zero when computing in integers; -1: none
  // Null where it does not compute in that type.
  Launch<float> f32;
  Launch<double> f64;
  Launch<int64_t> i64;
  Launch<int64_t> boolean;
};

// The same for what is computed less often, in sources of their own (pointwise_further_*.cu) and by one loop alone:
// complex numbers, and uint64.
struct FurtherRow {
  uint16_t op;
  bool is_signless;  // int64_t gives uint64's bits
  Launch<uint64_t> u64;
  Launch<Complex<float>> c64;
  Launch<Complex<double>> c128;
};

// Of all generated sources.
std::vector<absl::Span<const PointwiseRow>> pointwise_files();
std::vector<absl::Span<const FurtherRow>> further_files();

}  // namespace tt::cuda
