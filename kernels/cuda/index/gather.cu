// Operators that read or write single elements along one dimension.
#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/index/index_values.h"
#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/iteration/operands.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

namespace {

// Computes the offsets in `t` of the elements that an index tensor selects along `dim`.
struct IndexedElements {
  Layout<3> layout;  // strides of the other tensor, the index, and `t` without `dim`
  const int64_t* index;
  int64_t count, dim, size, stride;
  DeviceErrorCell* cell;

  // `t` and `index` must have at least one dimension. `other_strides` has one stride per dimension of the index.
  IndexedElements(const Queue& queue, const Tensor& t, int64_t dim, const Tensor& index, SizesView other_strides)
      : layout(index.sizes(), {other_strides, index.strides(), strides_without_dim(t, dim)}),
        index(index.data_as<int64_t>()),
        count(index.numel()),
        dim(dim),
        size(t.size(dim)),
        stride(t.stride(dim)) {
    check_indexable(dim, size, count);
    cell = open_error_cell(queue, &index_out_of_range);
  }
  // Returns the offset in `t` of the element that the index selects for the element at `at`. If the index is out of
  // range, reports the error and sets `good` to false.
  TT_DEVICE int64_t offset(const Offsets<3>& at, bool* good) const {
    int64_t place = index[at.at[1]];
    if (place < 0 || place >= size) {
      place = report_error(cell, place, dim, size);
      *good = false;
    }
    return at.at[2] + place * stride;
  }
};

template <typename T>
void gather_elements(const Queue& queue, const IndexedElements& elements, const Tensor& x, const Tensor& out) {
  const T* from = x.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue, elements.count, [=] TT_DEVICE(int64_t i) {
    const Offsets<3> at = elements.layout.offsets(i);
    bool good = true;
    to[at.at[0]] = from[elements.offset(at, &good)];
  });
}

// If an index selects the same element several times, any of the values may be stored.
template <typename T>
void scatter_elements(const Queue& queue, const IndexedElements& elements, const Tensor& values, const Tensor& out) {
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue, elements.count, [=] TT_DEVICE(int64_t i) {
    const Offsets<3> at = elements.layout.offsets(i);
    bool good = true;
    const int64_t offset = elements.offset(at, &good);
    if (good) to[offset] = from[at.at[0]];
  });
}

template <typename T>
void add_elements(const Queue& queue, const IndexedElements& elements, const Tensor& values, const Tensor& out) {
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue, elements.count, [=] TT_DEVICE(int64_t i) {
    const Offsets<3> at = elements.layout.offsets(i);
    bool good = true;
    const int64_t offset = elements.offset(at, &good);
    if (good) atomic_add(to + offset, from[at.at[0]]);
  });
}

enum class Combination { kReplace, kAdd, kMultiply, kLargest, kSmallest };  // NaN takes precedence

template <typename T>
TT_FUNCTION T combined(Combination how, T old, T value) {
  switch (how) {
    case Combination::kMultiply: return static_cast<T>(old * value);
    case Combination::kLargest: return is_nan(old) || old > value ? old : value;
    case Combination::kSmallest: return is_nan(old) || old < value ? old : value;
    default: return value;
  }
}

template <typename T>
void combine_elements(const Queue& queue, const IndexedElements& elements, Combination how, const Tensor& values,
                      const Tensor& out) {
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue, elements.count, [=] TT_DEVICE(int64_t i) {
    const Offsets<3> at = elements.layout.offsets(i);
    bool good = true;
    const int64_t offset = elements.offset(at, &good);
    if (!good) return;
    const T value = from[at.at[0]];
    atomic_update(to + offset, [how, value](T old) { return combined(how, old, value); });
  });
}

// Complex numbers have no atomic update, so one thread processes each line along the dimension and no other thread
// writes to that line.
template <typename T>
void multiply_lines(const Queue& queue, const IndexedElements& firsts, const Tensor& values, int64_t value_step,
                    const Tensor& index, const Tensor& out) {
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  const int64_t length = index.size(firsts.dim), step = index.stride(firsts.dim);
  for_each(queue, firsts.count, [=] TT_DEVICE(int64_t i) {
    Offsets<3> at = firsts.layout.offsets(i);
    for (int64_t k = 0; k < length; ++k) {
      bool good = true;
      const int64_t offset = firsts.offset(at, &good);
      if (good) to[offset] *= from[at.at[0]];
      at.at[0] += value_step;
      at.at[1] += step;
    }
  });
}
void multiply_lines(const Queue& queue, const Tensor& t, int64_t dim, const Tensor& index, const Tensor& values,
                    SizesView value_strides) {
  Geometry first{index.sizes(), index.strides(), index->offset, true};
  first.sizes[static_cast<size_t>(dim)] = 1;
  const IndexedElements firsts(queue, t, dim, view_of(index, first), value_strides);
  const int64_t value_step = value_strides[static_cast<size_t>(dim)];
  t.dtype() == DType::kComplex64 ? multiply_lines<Complex<float>>(queue, firsts, values, value_step, index, t)
                                 : multiply_lines<Complex<double>>(queue, firsts, values, value_step, index, t);
}

// out = input with `values` combined into the indexed elements. `value_strides` has one stride per dimension of the
// index.
void scatter_into(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& values, SizesView value_strides,
                  Combination how, Tensor& out) {
  copy(input, out);
  if (index.numel() == 0) return;
  const Tensor where = at_least_1d(index_values(&contiguous_as, index)), to = at_least_1d(out);
  const Queue queue = queue_of(out);
  const int64_t along = shape_rules::wrap_dim(dim, to.dim());
  if (how == Combination::kMultiply && is_complex(to.dtype())) {
    return multiply_lines(queue, to, along, where, values, value_strides);
  }
  const IndexedElements elements(queue, to, along, where, value_strides);
  if (how == Combination::kReplace) {
    with_bits(to.dtype(), [&]<typename T>(std::type_identity<T>) { scatter_elements<T>(queue, elements, values, to); });
  } else if (how == Combination::kAdd) {
    with_any_element(to.dtype(),
                     [&]<typename T>(std::type_identity<T>) { add_elements<T>(queue, elements, values, to); });
  } else {  // complex numbers have no order
    with_element(to.dtype(),
                 [&]<typename T>(std::type_identity<T>) { combine_elements<T>(queue, elements, how, values, to); });
  }
}

}  // namespace

void gather(const Tensor& input, int64_t dim, const Tensor& index, bool, Tensor& out) {
  if (index.numel() == 0) return;
  const Tensor x = at_least_1d(input), where = at_least_1d(index_values(&contiguous_as, index)), to = at_least_1d(out);
  const Queue queue = queue_of(out);
  const IndexedElements elements(queue, x, shape_rules::wrap_dim(dim, x.dim()), where, to.strides());
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) { gather_elements<T>(queue, elements, x, to); });
}

void scatter(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Tensor& out) {
  const Tensor values = at_least_1d(src);
  scatter_into(input, dim, index, values, values.strides(), Combination::kReplace, out);
}

void scatter_value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Tensor& out) {
  const Tensor number = empty({}, out.dtype(), out.device());
  fill_with(number, value);
  const Sizes strides(std::max<size_t>(index.sizes().size(), 1), 0);
  scatter_into(input, dim, index, number, strides, Combination::kReplace, out);
}

// Sums of 16-bit floats are rounded once, as in PyTorch.
void scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Tensor& out) {
  Tensor values = at_least_1d(src);
  const DType wide = accumulate_type(out.dtype());
  const bool rounds = wide != out.dtype();
  Tensor sums = rounds ? empty(out.sizes(), wide, out.device()) : out;
  if (rounds) values = contiguous_as(values, wide);
  scatter_into(input, dim, index, values, values.strides(), Combination::kAdd, sums);
  if (rounds) copy(sums, out);
}

void scatter_combine(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                     Tensor& out) {
  const bool most = reduce == "amax", product = reduce == "prod";
  check(product || most || reduce == "amin", "reduce argument must be either prod, amax or amin, got ", reduce);
  const Tensor values = at_least_1d(src);
  const Combination how = product ? Combination::kMultiply : most ? Combination::kLargest : Combination::kSmallest;
  scatter_into(input, dim, index, values, values.strides(), how, out);
}

}  // namespace tt::cuda
