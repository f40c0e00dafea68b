// Functions for decompositions by cuSOLVER (runtime/solver.h): the choice between cuSOLVER and our own kernels, and
// conversions to and from column-major matrices. For .cu files only.
#pragma once

#include <algorithm>
#include <limits>

#include "engine/session/context.h"
#include "kernels/common/linalg/decomposition.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/linalg/failed_matrix.h"
#include "kernels/cuda/linalg/largest_part.h"
#include "kernels/cuda/runtime/solver.h"

namespace tt::cuda {

// Returns the library if it should decompose `batch` matrices of `rows` rows, and null if our own kernels should. If
// `batched`, one library call decomposes all matrices. Otherwise the library is called once per matrix, which is faster
// than our kernels if the matrices are large or few. The limits are PyTorch's for QR and were not measured here. The
// library's work cannot be captured into a graph.
inline Solver* solver_for(int64_t batch, int64_t rows, bool batched = false) {
  constexpr int64_t kSmall = 32, kLarge = 256;
  const bool few = batched ? rows > kSmall : rows > kLarge || batch < std::max<int64_t>(2, rows / 16);
  const bool worthwhile = batch > 0 && rows > 0 && (batch == 1 || few);
  return worthwhile && !Context::current().capturing() ? solver() : nullptr;
}

// Returns a view of column-major matrices as a tensor of shape `sizes`. Requires that `t` is contiguous.
inline Tensor transposed_view(const Tensor& t, Sizes sizes) {
  std::swap(sizes.end()[-1], sizes.end()[-2]);
  Sizes strides = contiguous_strides(sizes);
  std::swap(sizes.end()[-1], sizes.end()[-2]);
  std::swap(strides.end()[-1], strides.end()[-2]);
  return view_of(t, {sizes, strides, t->offset, true});
}

// Copies m x n matrices to a new contiguous tensor of shape batch x n x m, that is, to column-major matrices.
inline Tensor to_column_major(const Tensor& input) {
  const Sizes sizes{matrix_count(input), input.size(-1), input.size(-2)};
  const Tensor columns = empty(sizes, input.dtype(), input.device());
  copy(input, transposed_view(columns, input.sizes()));
  return columns;
}

// Copies column-major matrices to `out`.
inline void store_column_major(const Tensor& columns, const Tensor& out) {
  copy(transposed_view(columns, out.sizes()), out);
}

// Returns the address of matrix i of a contiguous tensor of matrices of `elements` elements each.
template <typename T>
T* matrix(const Tensor& t, int64_t i, int64_t elements) {
  return t.data_as<T>() + i * elements;
}

struct ReportFailures {
  MatrixFaults faults;
  const int32_t* info;

  TT_DEVICE void operator()(int64_t i) const { faults.report(i, info[i] < 0 ? -info[i] : info[i]); }
};

// Reports each matrix whose `info` is not 0 as failed.
inline void report_failures(const Queue& queue, const MatrixFaults& faults, const Tensor& info) {
  if (faults.cell) for_each(queue, info.numel(), ReportFailures{faults, info.data_as<int32_t>()});
}

inline Tensor info_of(int64_t batch, Device device) { return empty(Sizes{batch}, DType::kInt32, device); }

// Prepares matrices for the library. A matrix with an element that is not finite is filled with zeros and reported as
// failed. A matrix whose squared elements would overflow or underflow is scaled.
template <typename T>
struct Scaling {
  using R = real_of_t<T>;
  MatrixFaults faults;
  int64_t elements;
  int32_t info;  // reported for matrices that are not finite
  T* matrices;
  R* scales;  // divisors, one per matrix

  TT_DEVICE void operator()(Group& group) const {
    T* const own = matrices + group.index() * elements;
    const R most = largest_part(group, own, elements);
    const bool finite = most < math::kInf<R>;
    const R large = math::sqrt(math::sqrt(std::numeric_limits<R>::max()));
    const R scale = finite && most > 0 && (most > large || most < 1 / large) ? most : R(1);
    for (int64_t e = group.rank(); e < elements && (!finite || scale != 1); e += group.size()) {
      own[e] = finite ? math::over(own[e], scale) : T(0);
    }
    if (group.rank() != 0) return;
    scales[group.index()] = scale;
    if (!finite) faults.report(group.index(), info);
  }
};

// Applies Scaling to `matrices`. Returns the divisors, one per matrix, for unscale(). Reports `info` for matrices that
// are not finite.
template <typename T>
Tensor scale_matrices(const Queue& queue, const MatrixFaults& faults, int64_t info, const Tensor& matrices) {
  const int64_t batch = matrices.size(0), elements = matrices.numel() / batch;
  const Tensor scales = empty(Sizes{batch}, to_real(matrices.dtype()), matrices.device());
  for_each_group(
      queue, batch, elements,
      Scaling<T>{faults, elements, static_cast<int32_t>(info), matrices.data_as<T>(), scales.data_as<real_of_t<T>>()});
  return scales;
}

// Multiplies `each` values per matrix, real or complex, by the matrix's scale.
template <typename V>
struct Unscale {
  V* values;
  const real_of_t<V>* scales;
  int64_t each;

  TT_DEVICE void operator()(int64_t i) const { values[i] = math::times(values[i], scales[i / each]); }
};

template <typename V>
void unscale(const Queue& queue, const Tensor& scales, const Tensor& values) {
  for_each(queue, values.numel(),
           Unscale<V>{values.data_as<V>(), scales.data_as<real_of_t<V>>(), values.numel() / scales.numel()});
}

}  // namespace tt::cuda
