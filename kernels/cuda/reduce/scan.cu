// Cumulative sums, products and extrema along a dimension.
#include <algorithm>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/dim_iterator.h"
#include "kernels/cuda/launch/inclusive_scan.h"
#include "kernels/cuda/reduce/ordered_bits.h"

namespace tt::cuda {

namespace {

// Cumulative result of a range of elements, in the order of all lines. `fresh` is true if a line begins in the range;
// the other fields then cover only the last such line. Floats are accumulated in double.
template <typename T>
struct Running {
  using Value =
      std::conditional_t<is_complex_v<T>, Complex<double>, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;
  Value value;
  uint64_t position : 63;  // index of `value` in the line
  uint64_t fresh : 1;
};

// Loads the elements of lines that are stored consecutively.
template <typename T>
struct LoadRunning {
  const T* x;
  int64_t length;

  TT_FUNCTION Running<T> operator()(int64_t i) const {
    const uint64_t position = static_cast<uint64_t>(i % length);
    return {static_cast<typename Running<T>::Value>(x[i]), position, position == 0};
  }
};

enum class RunningKind { kSum, kProduct, kLargest, kSmallest };

// Combines the results of two adjacent ranges. If elements are equal, the last one is the extremum. NaN takes
// precedence.
struct Continue {
  RunningKind kind;

  template <typename T>
  TT_FUNCTION Running<T> operator()(const Running<T>& before, const Running<T>& next) const {
    if (next.fresh) return next;
    Running<T> result = before;
    if (kind == RunningKind::kSum) {
      result.value = before.value + next.value;
    } else if (kind == RunningKind::kProduct) {
      result.value = before.value * next.value;
    } else if constexpr (!is_complex_v<T>) {  // complex numbers have no order
      const bool beats = kind == RunningKind::kLargest ? next.value >= before.value : next.value <= before.value;
      if (beats || math::isnan(next.value)) result = next;
      result.fresh = before.fresh;
    }
    return result;
  }
};

template <typename T>
struct StoreRunning {
  T* values;
  int64_t* indices;  // null if not requested

  TT_FUNCTION void operator()(int64_t i, const Running<T>& running) const {
    values[i] = static_cast<T>(running.value);
    if (indices) indices[i] = static_cast<int64_t>(running.position);
  }
};

// Scans interleaved lines, with one thread per line.
template <typename T>
void scan_interleaved(const Tensor& input, int64_t dim, Continue next, Tensor& values, Tensor* indices) {
  const DimIterator in(input, dim), out(values, dim);
  const Access from(input), to(values);
  int64_t* positions = indices ? indices->data_as<int64_t>() : nullptr;
  for_each(queue_of(values), in.count(), [=] TT_DEVICE(int64_t line) {
    const int64_t x = in.start(line), y = out.start(line);
    Running<T> running{};
    for (int64_t i = 0; i < in.length(); ++i) {
      const auto value = from.load<typename Running<T>::Value>(x + i * in.stride());
      running = next(running, Running<T>{value, static_cast<uint64_t>(i), i == 0});
      to.store(y + i * out.stride(), running.value);
      if (positions) positions[y + i * out.stride()] = static_cast<int64_t>(running.position);
    }
  });
}

// Returns a view of which `dim` is the last dimension.
Tensor move_dim_last(const Tensor& t, int64_t dim) {
  if (t.dim() == 0) return t;
  Geometry geometry{t.sizes(), t.strides(), t->offset};
  std::rotate(geometry.sizes.begin() + dim, geometry.sizes.begin() + dim + 1, geometry.sizes.end());
  std::rotate(geometry.strides.begin() + dim, geometry.strides.begin() + dim + 1, geometry.strides.end());
  return view_of(t, geometry);
}

// Returns `t` if it is contiguous and of this dtype, else a new tensor for results that the caller then copies to `t`.
Tensor contiguous_buffer(const Tensor& t, DType dtype) {
  return t.dtype() == dtype && t.is_contiguous() ? t : empty(t.sizes(), dtype, t.device());
}

template <typename T>
void scan_contiguous(const Tensor& input, int64_t dim, DType dtype, Continue next, Tensor& values, Tensor* indices) {
  const Tensor x = contiguous_as(move_dim_last(input, dim), dtype);
  const Tensor to = move_dim_last(values, dim), positions = indices ? move_dim_last(*indices, dim) : Tensor();
  const Tensor value_buffer = contiguous_buffer(to, dtype),
               index_buffer = indices ? contiguous_buffer(positions, DType::kInt64) : Tensor();
  const int64_t length = x.dim() == 0 ? 1 : x.size(-1);
  inclusive_scan(queue_of(values), x.numel(), LoadRunning<T>{x.data_as<T>(), length}, next,
                 StoreRunning<T>{value_buffer.data_as<T>(), indices ? index_buffer.data_as<int64_t>() : nullptr});
  if (!value_buffer.same(to)) copy(value_buffer, to);
  if (indices && !index_buffer.same(positions)) copy(index_buffer, positions);
}

void scan(const Tensor& input, int64_t dim, RunningKind kind, Tensor& values, Tensor* indices) {
  if (values.numel() == 0) return;
  dim = shape_rules::wrap_dim(dim, input.dim());
  const Continue next{kind};
  const DimIterator lines(input, dim);
  const bool ordered = kind != RunningKind::kSum && kind != RunningKind::kProduct;
  check(ErrorKind::kNotImplemented, !ordered || !is_complex(values.dtype()), "not implemented for ",
        name(values.dtype()));
  if (values.dtype() == DType::kComplex64) {
    return scan_contiguous<Complex<float>>(input, dim, values.dtype(), next, values, indices);
  }
  if (values.dtype() == DType::kComplex128) {
    return scan_contiguous<Complex<double>>(input, dim, values.dtype(), next, values, indices);
  }
  constexpr int64_t kEnough = 4096;  // enough lines for one thread each
  if (lines.count() >= kEnough && (lines.is_interleaved() || lines.length() <= 16)) {
    return is_integral(values.dtype()) ? scan_interleaved<int64_t>(input, dim, next, values, indices)
                                       : scan_interleaved<double>(input, dim, next, values, indices);
  }
  if (is_integral(values.dtype())) return scan_contiguous<int64_t>(input, dim, DType::kInt64, next, values, indices);
  if (values.dtype() == DType::kFloat64)
    return scan_contiguous<double>(input, dim, DType::kFloat64, next, values, indices);
  scan_contiguous<float>(input, dim, DType::kFloat32, next, values, indices);
}

}  // namespace

void cumsum(const Tensor& input, int64_t dim, std::optional<DType>, Tensor& out) {
  scan(input, dim, RunningKind::kSum, out, nullptr);
}

void cumprod(const Tensor& input, int64_t dim, std::optional<DType>, Tensor& out) {
  scan(input, dim, RunningKind::kProduct, out, nullptr);
}

void cummax(const Tensor& input, int64_t dim, Tensor& values, Tensor& indices) {
  scan(ordered_bits(input), dim, RunningKind::kLargest, values, &indices);
  restore_bits(values);
}

void cummin(const Tensor& input, int64_t dim, Tensor& values, Tensor& indices) {
  scan(ordered_bits(input), dim, RunningKind::kSmallest, values, &indices);
  restore_bits(values);
}

}  // namespace tt::cuda
