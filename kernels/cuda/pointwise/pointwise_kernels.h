// Loops around pointwise bodies. Included only by generated sources.
//
// Each body and type has three loops: over whole vectors, if all operands are contiguous; over groups of four elements
// of any dtype, if rows are contiguous or a single repeated element; and over elements of any layout. Complex numbers
// and uint64 have only the last loop, because their elements are wide.
#pragma once

#include "kernels/common/math/binary_parts.h"
#include "kernels/common/math/half_math.h"
#include "kernels/common/math/special_math.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/vectors.h"
#include "kernels/cuda/pointwise/pointwise_rows.h"

namespace tt::cuda {

template <typename Body, typename C>
struct Applied {
  ScalarArgs<C, Body::kScalarArgs> scalar_args;
  DeviceErrorCell* error_cell;

  explicit Applied(const PointwiseCall<C>& call) : error_cell(call.fault) {
    for (int i = 0; i < Body::kScalarArgs; ++i) scalar_args.value[i] = call.scalar_args.value[i];
    scalar_args.present = call.scalar_args.present;
  }
  TT_DEVICE C operator()(const C* in) const {
    if constexpr (std::is_integral_v<C> && Body::kDivisor >= 0) {
      if (in[Body::kDivisor] == 0) report_error(error_cell, 0, 0, 0);
    }
    return Body::template call<C>(in, scalar_args);
  }
};

// Computes whole vectors of elements stored as S. With one input, a thread processes two distant vectors, so that as
// many loads are pending as with two inputs. Index i is the index of the thread's first vector.
template <typename Body, typename C, typename S>
struct Vectors {
  static constexpr int kInputs = Body::kInputs, kLanes = 16 / sizeof(S), kVectors = kInputs == 1 ? 2 : 1;
  // Limits a thread to 40 registers, which are enough to load both vectors of four floats at once.
  static constexpr int kBlocks = kVectors == 2 && std::is_same_v<S, float> ? 6 : 0;
  Applied<Body, C> apply;
  int64_t n, num_indices;  // numbers of elements and of indices i
  S* out;
  const S* in[kInputs];  // null: a number
  C number[kInputs];

  explicit Vectors(const PointwiseCall<C>& call)
      : apply(call),
        n(call.numel),
        num_indices((call.numel + kVectors * kLanes - 1) / (kVectors * kLanes)),
        out(static_cast<S*>(call.out)) {
    for (int k = 0; k < kInputs; ++k) {
      in[k] = static_cast<const S*>(call.in[k].data);
      number[k] = call.in[k].number;
    }
  }
  // A single input is always a tensor. Omitting the check keeps its elements in the registers that they were loaded to.
  TT_DEVICE bool is_tensor(int k) const { return kInputs == 1 || in[k] != nullptr; }
  TT_DEVICE void operator()(int64_t i) const {
    if ((i + (kVectors - 1) * num_indices + 1) * kLanes > n) return pieces(i);
    Vector<S> values[kVectors][kInputs];
    TT_UNROLL
    for (int t = 0; t < kVectors; ++t) {
      TT_UNROLL
      for (int k = 0; k < kInputs; ++k) {
        if (is_tensor(k)) values[t][k] = load_vector(in[k] + (i + t * num_indices) * kLanes);
      }
    }
    TT_UNROLL
    for (int t = 0; t < kVectors; ++t) whole((i + t * num_indices) * kLanes, values[t]);
  }
  TT_DEVICE void whole(int64_t at, const Vector<S> (&values)[kInputs]) const {
    Lanes<C, kLanes> wide[kInputs], results;
    TT_UNROLL
    for (int k = 0; k < kInputs; ++k) {
      if (is_tensor(k)) wide[k] = lanes_of<C>(values[k]);
    }
    TT_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) {
      C arguments[kInputs];
      for (int k = 0; k < kInputs; ++k) arguments[k] = is_tensor(k) ? wide[k].at[lane] : number[k];
      results.at[lane] = apply(arguments);
    }
    store_vector(out + at, vector_of<S>(results));
  }
  // Processes an index at which a vector is incomplete.
  TT_DEVICE void pieces(int64_t i) const {
    TT_ROLLED
    for (; i < kVectors * num_indices; i += num_indices) {
      TT_ROLLED
      for (int64_t at = i * kLanes; at < n && at < (i + 1) * kLanes; ++at) {
        C arguments[kInputs];
        for (int k = 0; k < kInputs; ++k) arguments[k] = is_tensor(k) ? convert<C>(in[k][at]) : number[k];
        out[at] = convert<S>(apply(arguments));
      }
    }
  }
};

// Computes single elements of any dtype in any layout.
template <typename Body, typename C>
struct StridedElements {
  static constexpr int kInputs = Body::kInputs;
  Applied<Body, C> apply;
  Layout<kInputs + 1> layout;
  Access out;
  const void* in[kInputs];  // null: a number
  DType dtype[kInputs];
  C number[kInputs];

  static Layout<kInputs + 1> layout_of(const PointwiseCall<C>& call) {
    std::array<SizesView, kInputs + 1> strides;
    for (int k = 0; k < kInputs; ++k) strides[k] = call.in[k].strides;
    strides[kInputs] = call.strides;
    return Layout<kInputs + 1>(call.sizes, strides);
  }
  explicit StridedElements(const PointwiseCall<C>& call)
      : apply(call), layout(layout_of(call)), out(call.out, call.dtype) {
    for (int k = 0; k < kInputs; ++k) {
      in[k] = call.in[k].data;
      dtype[k] = call.in[k].dtype;
      number[k] = call.in[k].number;
    }
  }
  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<kInputs + 1> offsets = layout.offsets(i);
    C arguments[kInputs];
    for (int k = 0; k < kInputs; ++k) {
      arguments[k] = in[k] ? load_any<C>(in[k], dtype[k], offsets.at[k]) : number[k];
    }
    store_any<C>(out, offsets.at[kInputs], apply(arguments));
  }
};

// Computes groups of four elements along the innermost dimension. Index i is the index of a group.
template <typename Body, typename C>
struct Vec4Elements {
  static constexpr int kInputs = Body::kInputs;
  StridedElements<Body, C> elements;
  int64_t n;
  int64_t step[kInputs];

  // Whether groups of four can be used: no group may cross a row's end, except the last group of a single row.
  static bool fit(const Layout<kInputs + 1>& layout) {
    bool fit = layout.dims() <= 1 || layout.inner_size() % 4 == 0;
    for (int k = 0; k <= kInputs; ++k)
      fit = fit && (layout.inner_stride(k) == 1 || (k < kInputs && layout.inner_stride(k) == 0));
    return fit;
  }
  Vec4Elements(const StridedElements<Body, C>& elements, int64_t n) : elements(elements), n(n) {
    for (int k = 0; k < kInputs; ++k) step[k] = elements.layout.inner_stride(k);
  }
  TT_DEVICE void operator()(int64_t i) const {
    const int64_t at = 4 * i;
    if (at + 4 > n) {
      for (int64_t j = at; j < n; ++j) elements(j);
      return;
    }
    const Offsets<kInputs + 1> offsets = elements.layout.offsets(at);
    Vec4<C> values[kInputs], results;
    TT_UNROLL
    for (int k = 0; k < kInputs; ++k) {
      if (elements.in[k]) values[k] = load_vec4<C>(elements.in[k], elements.dtype[k], offsets.at[k], step[k]);
    }
    TT_UNROLL
    for (int lane = 0; lane < 4; ++lane) {
      C arguments[kInputs];
      TT_UNROLL
      for (int k = 0; k < kInputs; ++k) arguments[k] = elements.in[k] ? values[k].at[lane] : elements.number[k];
      results.at[lane] = elements.apply(arguments);
    }
    store_vec4<C>(elements.out, offsets.at[kInputs], results);
  }
};

// The body for elements stored as S. An operator may have a separate body for 16-bit floats.
template <typename Body, typename S>
struct BodyOf {
  using Type = Body;
};
template <typename Body, typename S>
requires kIsHalf<S> && requires { typename Body::Half; }
struct BodyOf<Body, S> {
  using Type = typename Body::Half;
};

template <typename Body, typename C, typename S>
void launch_vectors(const Queue& queue, const PointwiseCall<C>& call) {
  using Loop = Vectors<typename BodyOf<Body, S>::Type, C, S>;
  const Loop loop(call);
  for_each<Loop::kBlocks>(queue, loop.num_indices, loop);
}

template <typename Body, typename C>
void launch(const Queue& queue, const PointwiseCall<C>& call) {
  if (call.is_plain) {
    if constexpr (std::is_same_v<C, float>) {
      if (call.dtype == DType::kFloat32) return launch_vectors<Body, C, float>(queue, call);
      if (call.dtype == DType::kFloat16) return launch_vectors<Body, C, Half>(queue, call);
      if (call.dtype == DType::kBFloat16) return launch_vectors<Body, C, BFloat16>(queue, call);
    } else if constexpr (std::is_same_v<C, double>) {
      if (call.dtype == DType::kFloat64) return launch_vectors<Body, C, double>(queue, call);
    } else if constexpr (std::is_same_v<C, int64_t>) {
      if (call.dtype == DType::kInt64) return launch_vectors<Body, C, int64_t>(queue, call);
    }
  }
  const StridedElements<Body, C> elements(call);
  if constexpr (std::is_floating_point_v<C> || std::is_signed_v<C>) {
    if (Vec4Elements<Body, C>::fit(elements.layout)) {
      return for_each(queue, (call.numel + 3) / 4, Vec4Elements<Body, C>(elements, call.numel));
    }
  }
  for_each(queue, call.numel, elements);
}

template <typename Body, typename C>
constexpr Launch<C> find() {
  if constexpr (Body::template kComputes<C>) return &launch<Body, C>;
  return nullptr;
}

}  // namespace tt::cuda
