// Advanced indexing: picking and placing what a Selection names.
#include <algorithm>
#include <cstring>

#include "engine/rules/error.h"
#include "engine/rules/shape_rules.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/copy.h"
#include "kernels/common/element.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nest.h"
#include "kernels/cpu/selection.h"
#include "kernels/cpu/truth.h"

namespace tt::cpu {

namespace {

template <typename T>
TT_CLONES void pick_elements(T* __restrict to, const T* __restrict x, int64_t step, const int64_t* __restrict offsets,
                             int64_t offset_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i * step + offsets[i * offset_step]];
}

// out (contiguous, of the selection's sizes) = the selected elements.
void pick(const Tensor& x, const Selection& selection, Tensor& out) {
  const Sizes lie = contiguous_strides(selection.sizes);
  const Nest<3> nest(selection.sizes, {lie, selection.steps, selection.offset_strides});
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t n = nest.length(), step = nest.stride(1), offset_step = nest.stride(2);
    nest.walk_in_parallel([&](const Nest<3>::Offsets& at, int64_t) {
      T* to = out.data_as<T>() + at[0];
      const T* from = x.data_as<T>() + at[1];
      const int64_t* offsets = selection.offsets.data_as<int64_t>() + at[2];
      if (offset_step == 0 && step == 1) {
        std::memcpy(to, from + offsets[0], n * sizeof(T));
      } else {
        pick_elements(to, from, step, offsets, offset_step, n);
      }
    });
  });
}

// Each selected element of `out` = combine(element, value), one after the other: of several values
// for one place the last one wins, and sums come out the same every time.
template <typename Combine>
void place(const Tensor& out, const Selection& selection, const Tensor& values, Combine combine) {
  const Sizes value_strides = broadcast_strides(values.sizes(), values.strides(), selection.sizes);
  const Nest<3> nest(selection.sizes, {value_strides, selection.steps, selection.offset_strides});
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t value_step = nest.stride(0), step = nest.stride(1), offset_step = nest.stride(2);
    nest.walk(0, nest.rows(), [&](const Nest<3>::Offsets& at, int64_t) {
      const T* from = values.data_as<T>() + at[0];
      T* to = out.data_as<T>() + at[1];
      const int64_t* offsets = selection.offsets.data_as<int64_t>() + at[2];
      for (int64_t i = 0; i < nest.length(); ++i) {
        T& element = to[i * step + offsets[i * offset_step]];
        element = static_cast<T>(combine(element, from[i * value_step]));
      }
    });
  });
}

constexpr auto kReplace = [](auto, auto value) { return value; };
constexpr auto kAdd = [](auto old, auto value) { return old + value; };

// `values` as `dtype`: itself where it is that.
Tensor values_as(const Tensor& values, DType dtype) {
  if (values.dtype() == dtype) return values;
  Tensor out = empty(values.sizes(), dtype, values.device());
  copy(values, out);
  return out;
}

Selection select(const Tensor& x, const Tensors& indices) {
  return Selection(kSelectionKernels, x, indices, IndexRange::kEitherEnd);
}

Selection along(const Tensor& x, int64_t dim, const Tensor& index) {
  return Selection::along(kSelectionKernels, x, dim, index);
}

}  // namespace

void index(const Tensor& input, const Tensors& indices, Tensor& out) { pick(input, select(input, indices), out); }

void index_masked(const Tensor& input, const Tensors& indices, Tensor& out) {
  const Selection selection = select(input, indices);
  out = empty(selection.sizes, input.dtype(), input.device());
  pick(input, selection, out);
}

void index_put(const Tensor& input, const Tensors& indices, const Tensor& values, bool accumulate, Tensor& out) {
  const Selection selection = select(out, indices);
  const Tensor converted = values_as(selection.fitting(values), out.dtype());
  copy(input, out);
  if (accumulate) {
    place(out, selection, converted, kAdd);
  } else {
    place(out, selection, converted, kReplace);
  }
}

void index_select(const Tensor& input, int64_t dim, const Tensor& index, Tensor& out) {
  const Tensor x = at_least_1d(input);
  pick(x, along(x, dim, index), out);
}

void index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha, Tensor& out) {
  copy(input, out);
  const Tensor target = at_least_1d(out), values = at_least_1d(source);
  const Selection selection = along(target, dim, index);
  const double factor = alpha.to_double();
  const Complex<double> complex_factor(factor, alpha.to_complex().imag());
  const int64_t whole = alpha.to_int();
  place(target, selection, values, [=](auto old, auto value) {
    using T = decltype(old);
    if constexpr (is_complex_v<T>) {
      return old + T(complex_factor) * value;
    } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>) {
      return static_cast<int64_t>(old) + whole * static_cast<int64_t>(value);
    } else {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      return static_cast<Wide>(old) + static_cast<Wide>(factor) * static_cast<Wide>(value);
    }
  });
}

void index_fill(const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Tensor& out) {
  copy(input, out);
  const Tensor target = at_least_1d(out);
  place(target, along(target, dim, index), scalar_tensor(value, out.dtype(), out.device()), kReplace);
}

void masked_select(const Tensor& input, const Tensor& mask, Tensor& out) {
  const Sizes sizes = shape_rules::broadcast_sizes(input.sizes(), mask.sizes());
  const Sizes steps = broadcast_strides(input.sizes(), input.strides(), sizes);
  const Sizes mask_steps = broadcast_strides(mask.sizes(), mask.strides(), sizes);
  const Selection selection(offsets_of_true(view_of(mask, Geometry{sizes, mask_steps, mask->offset}), steps));
  out = empty(selection.sizes, input.dtype(), input.device());
  pick(input, selection, out);
}

void nonzero(const Tensor& input, Tensor& out) {
  const int64_t count = count_true(input), ndim = input.dim();
  out = empty({count, ndim}, DType::kInt64, input.device());
  if (count == 0 || ndim == 0) return;
  const int64_t length = input.size(-1), rows = input.numel() / length, step = input.stride(-1);
  with_any_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    int64_t* to = out.data_as<int64_t>();
    int64_t* const end = to + count * ndim;
    absl::InlinedVector<int64_t, 6> index(ndim, 0);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t offset = 0;
      for (int64_t d = 0; d + 1 < ndim; ++d) offset += index[d] * input.stride(d);
      const T* row = input.data_as<T>() + offset;
      for (int64_t i = 0; i < length && to < end; ++i) {
        if (row[i * step] == T(0)) continue;
        index[ndim - 1] = i;
        to = std::copy(index.begin(), index.end(), to);
      }
      for (int64_t d = ndim - 1; d-- > 0;) {
        if (++index[d] < input.size(d)) break;
        index[d] = 0;
      }
    }
  });
}

}  // namespace tt::cpu
