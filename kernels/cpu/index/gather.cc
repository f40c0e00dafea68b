// Operators that read or write single elements along one dimension.
#include <algorithm>

#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/index/index_values.h"
#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/iteration/operands.h"
#include "kernels/cpu/index/out_of_range.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/strided_loop.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// The indices of one row: element i of the indexed tensor is at i * step + index[i] * stride.
struct Picked {
  int64_t step;
  int64_t stride;
  int64_t size;  // size of the indexed dimension, not 0
  const int64_t* index;
  int64_t index_step;
};

// Returns false if an index is out of range. Of a row whose elements are neighbours, as are the indices and the
// results.
template <typename T>
TT_CLONES bool gather_line(T* __restrict out, const T* __restrict x, const int64_t* __restrict index, int64_t size,
                           int64_t n) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = index[i];
    const bool outside = static_cast<uint64_t>(k) >= static_cast<uint64_t>(size);
    bad |= outside;
    out[i] = x[outside ? 0 : k];
  }
  return bad == 0;
}

// The same for any steps.
template <typename T>
TT_CLONES bool gather_row(T* __restrict out, int64_t out_step, const T* __restrict x, Picked p, int64_t n) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = p.index[i * p.index_step];
    const bool outside = static_cast<uint64_t>(k) >= static_cast<uint64_t>(p.size);
    bad |= outside;
    out[i * out_step] = x[i * p.step + (outside ? 0 : k) * p.stride];
  }
  return bad == 0;
}

struct Assign {
  static constexpr bool kOrders = false;
  template <typename T>
  static T apply(T, T value) {
    return value;
  }
};
struct Add {
  static constexpr bool kOrders = false;
  template <typename T>
  static T apply(T old, T value) {
    return static_cast<T>(old + value);
  }
};
struct Multiply {
  static constexpr bool kOrders = false;
  template <typename T>
  static T apply(T old, T value) {
    return static_cast<T>(old * value);
  }
};
// NaN propagates.
struct Largest {
  static constexpr bool kOrders = true;
  template <typename T>
  static T apply(T old, T value) {
    return is_nan(old) || old > value ? old : value;
  }
};
struct Smallest {
  static constexpr bool kOrders = true;
  template <typename T>
  static T apply(T old, T value) {
    return is_nan(old) || old < value ? old : value;
  }
};
template <typename Combine, typename T>
bool scatter_row(T* out, const T* values, int64_t value_step, Picked p, int64_t n) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = p.index[i * p.index_step];
    if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(p.size)) [[unlikely]] {
      good = false;
      continue;
    }
    T& place = out[i * p.step + k * p.stride];
    place = Combine::apply(place, values[i * value_step]);
  }
  return good;
}

void report_row(OutOfRange& range, const Picked& p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = p.index[i * p.index_step];
    if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(p.size)) return range.report(k);
  }
}

}  // namespace

void gather(const Tensor& input, int64_t dim, const Tensor& index, bool, Tensor& out) {
  if (index.numel() == 0) return;
  const Tensor x = at_least_1d(input), where = at_least_1d(index_values(&contiguous_as, index)), to = at_least_1d(out);
  dim = shape_rules::wrap_dim(dim, x.dim());
  check_indexable(dim, x.size(dim), where.numel());
  OutOfRange range(dim, x.size(dim));
  const Sizes around = strides_without_dim(x, dim);
  const StridedLoop<3> loop(where.sizes(), {to.strides(), where.strides(), around});
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    loop.parallel_for_row_pieces([&](const StridedLoop<3>::Offsets& at, int64_t n) {
      Picked p{loop.stride(2), x.stride(dim), x.size(dim), where.data_as<int64_t>() + at[1], loop.stride(1)};
      T* const results = to.data_as<T>() + at[0];
      const T* const from = x.data_as<T>() + at[2];
      const bool is_line = p.step == 0 && p.stride == 1 && p.index_step == 1 && loop.stride(0) == 1;
      const bool good =
          is_line ? gather_line(results, from, p.index, p.size, n) : gather_row(results, loop.stride(0), from, p, n);
      if (!good) report_row(range, p, n);
    });
  });
  range.rethrow();
}

namespace {

// Excludes complex dtypes if Combine compares elements.
template <typename Combine, typename F>
void with_combined(DType dtype, F f) {
  if constexpr (Combine::kOrders)
    with_element(dtype, f);
  else
    with_any_element(dtype, f);
}

// Reports an index that is out of range.
bool are_in_range(const Tensor& where, int64_t size, OutOfRange& range) {
  const Tensor plain = contiguous_as(where, DType::kInt64);
  const auto indices = absl::MakeConstSpan(plain.data_as<int64_t>(), static_cast<size_t>(plain.numel()));
  uint64_t largest = 0;
  for (const int64_t k : indices) largest = std::max(largest, static_cast<uint64_t>(k));
  if (largest < static_cast<uint64_t>(size)) return true;
  range.report(static_cast<int64_t>(largest));
  return false;
}

// Copies input to out, then combines `values` (with strides `value_strides`) into the indexed elements, in the order of
// `index`. If an element is indexed several times, the last value is kept; the order of sums is deterministic.
template <typename Combine>
void scatter_into(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& values, SizesView value_strides,
                  Tensor& out) {
  if (index.numel() == 0) return copy(input, out);
  const Tensor where = at_least_1d(index_values(&contiguous_as, index)), to = at_least_1d(out);
  dim = shape_rules::wrap_dim(dim, to.dim());
  check_indexable(dim, to.size(dim), where.numel());
  OutOfRange range(dim, to.size(dim));
  // Before anything is written: a call that fails leaves its target as it was.
  if (!are_in_range(where, to.size(dim), range)) range.rethrow();
  copy(input, out);
  const Sizes around = strides_without_dim(to, dim);
  const StridedLoop<3> loop(where.sizes(), {around, where.strides(), value_strides});
  with_combined<Combine>(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    auto body = [&](const StridedLoop<3>::Offsets& at, int64_t) {
      Picked p{loop.stride(0), to.stride(dim), to.size(dim), where.data_as<int64_t>() + at[1], loop.stride(1)};
      const T* from = values.data_as<T>() + at[2];
      if (!scatter_row<Combine>(to.data_as<T>() + at[0], from, loop.stride(2), p, loop.length())) {
        report_row(range, p, loop.length());
      }
    };
    // Rows along the last dimension write to separate elements. Rows along another dimension may write to the same
    // elements.
    if (dim == to.dim() - 1) {
      loop.parallel_for_rows(body);
    } else {
      loop.for_rows(0, loop.rows(), body);
    }
  });
  range.rethrow();
}

}  // namespace

void scatter(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Tensor& out) {
  const Tensor values = at_least_1d(src);
  scatter_into<Assign>(input, dim, index, values, values.strides(), out);
}

void scatter_value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Tensor& out) {
  const Tensor number = scalar_tensor(value, out.dtype(), out.device());
  const Sizes strides(std::max<size_t>(index.sizes().size(), 1), 0);
  scatter_into<Assign>(input, dim, index, number, strides, out);
}

// Sums of 16-bit floats are rounded once, as in PyTorch.
void scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Tensor& out) {
  Tensor values = at_least_1d(src);
  const DType wide = accumulate_type(out.dtype());
  const bool rounds = wide != out.dtype();
  Tensor sums = rounds ? empty(out.sizes(), wide, out.device()) : out;
  if (rounds) values = contiguous_as(values, wide);
  scatter_into<Add>(input, dim, index, values, values.strides(), sums);
  if (rounds) copy(sums, out);
}

void scatter_combine(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                     Tensor& out) {
  const Tensor values = at_least_1d(src);
  if (reduce == "prod") return scatter_into<Multiply>(input, dim, index, values, values.strides(), out);
  if (reduce == "amax") return scatter_into<Largest>(input, dim, index, values, values.strides(), out);
  check(reduce == "amin", "reduce argument must be either prod, amax or amin, got ", reduce);
  scatter_into<Smallest>(input, dim, index, values, values.strides(), out);
}

}  // namespace tt::cpu
