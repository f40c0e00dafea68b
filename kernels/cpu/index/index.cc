// Advanced indexing: picking and placing what a Selection names.
#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/element.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/strided_loop.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/reduce/count_nonzero.h"
#include "kernels/cpu/sort/selection.h"

namespace tt::cpu {

namespace {

template <typename T>
TT_CLONES void pick_elements(T* __restrict to, const T* __restrict x, int64_t step, const int64_t* __restrict offsets,
                             int64_t offset_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i * step + offsets[i * offset_step]];
}

int64_t elements(const Selection& selection) {
  int64_t n = 1;
  for (int64_t size : selection.sizes) n *= size;
  return n;
}

// Offsets that go on by one, from the `first` on: what they name is moved as one piece.
struct Run {
  int64_t first, offset, length;
};
using Runs = std::vector<Run>;

// The runs of a selection's offsets, where all rows of a walk go through the same ones and that is worth it.
Runs runs_of(const Selection& selection) {
  constexpr int64_t kWorthwhile = 8;  // elements a run, in the mean
  const int64_t n = selection.offsets.numel(), rows = elements(selection) / std::max<int64_t>(n, 1);
  Runs runs;
  if (rows < 2) return runs;
  const int64_t* offsets = selection.offsets.data_as<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0 && offsets[i] == offsets[i - 1] + 1) {
      ++runs.back().length;
    } else {
      runs.push_back({i, offsets[i], 1});
    }
  }
  if (static_cast<int64_t>(runs.size()) * kWorthwhile > n) runs.clear();
  return runs;
}

template <typename T>
void copy_runs(T* to, const T* from, const Runs& runs) {
  for (const Run& run : runs) {
    if (run.length == 1) {  // at borders there are many
      to[run.first] = from[run.offset];
    } else {
      std::copy_n(from + run.offset, run.length, to + run.first);
    }
  }
}

// out (contiguous, of the selection's sizes) = the selected elements.
void pick(const Tensor& x, const Selection& selection, Tensor& out) {
  const Sizes lie = contiguous_strides(selection.sizes);
  const StridedLoop<3> loop(selection.sizes, {lie, selection.steps, selection.offset_strides});
  const Runs runs = runs_of(selection);
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t step = loop.stride(1), offset_step = loop.stride(2);
    loop.parallel_for_row_pieces([&](const StridedLoop<3>::Offsets& at, int64_t n) {
      T* to = out.data_as<T>() + at[0];
      const T* from = x.data_as<T>() + at[1];
      const int64_t* offsets = selection.offsets.data_as<int64_t>() + at[2];
      if (offset_step == 0 && step == 1) {
        std::memcpy(to, from + offsets[0], n * sizeof(T));
      } else if (step == 0 && offset_step == 1 && n == selection.offsets.numel() && !runs.empty()) {
        copy_runs(to, from, runs);
      } else {
        pick_elements(to, from, step, offsets, offset_step, n);
      }
    });
  });
}

// The dimension to share out among threads: each of its places has elements of its own, whatever the offsets are.
// -1 where there is none.
int64_t dim_to_share(const Selection& selection) {
  for (size_t d = 0; d < selection.sizes.size(); ++d) {
    const bool own = selection.offset_strides[d] == 0 && selection.steps[d] != 0;
    if (own && selection.sizes[d] >= num_threads()) return static_cast<int64_t>(d);
  }
  return -1;
}

// to[i * step + offsets[i * offset_step]] = combine(that, from[i * value_step]).
template <typename T, typename Combine>
void place_row(T* to, int64_t step, const int64_t* offsets, int64_t offset_step, const T* from, int64_t value_step,
               int64_t n, Combine combine) {
  if (offset_step == 0 && step == 1 && value_step == 1) {
    T* row = to + offsets[0];
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(combine(row[i], from[i]));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    T& element = to[i * step + offsets[i * offset_step]];
    element = static_cast<T>(combine(element, from[i * value_step]));
  }
}

// Each selected element of `out`, of elements T or as many bytes, = combine(element, value), one after the other: of
// several values for one place the last one wins, and sums come out the same every time.
template <typename T, typename Combine>
void place(const Tensor& out, const Selection& selection, const Tensor& values, Combine combine) {
  constexpr int64_t kGrain = 32 * 1024, kLine = 64 / sizeof(T);  // elements worth a thread; of a line of the cache
  const Sizes value_strides = broadcast_strides(values.sizes(), values.strides(), selection.sizes);
  const int64_t shared = dim_to_share(selection), shares = shared < 0 ? 1 : selection.sizes[shared];
  const Runs runs = runs_of(selection);
  const int64_t work = std::max<int64_t>(elements(selection) / shares, 1);
  const int64_t least = shared >= 0 && selection.steps[shared] == 1 ? kLine : 1;
  parallel_for(shares, std::max<int64_t>(kGrain / work, least), [&](int64_t begin, int64_t end) {
    Sizes sizes = selection.sizes;
    int64_t first_value = 0, first_element = 0;
    if (shared >= 0) {
      sizes[shared] = end - begin;
      first_value = begin * value_strides[shared];
      first_element = begin * selection.steps[shared];
    }
    const StridedLoop<3> loop(sizes, {value_strides, selection.steps, selection.offset_strides});
    const int64_t value_step = loop.stride(0), step = loop.stride(1), offset_step = loop.stride(2);
    const bool whole = step == 0 && offset_step == 1 && loop.length() == selection.offsets.numel();
    const bool by_runs = whole && !runs.empty();
    loop.for_rows(0, loop.rows(), [&](const StridedLoop<3>::Offsets& at, int64_t) {
      const T* from = values.data_as<T>() + first_value + at[0];
      T* to = out.data_as<T>() + first_element + at[1];
      if (!by_runs) {
        const int64_t* offsets = selection.offsets.data_as<int64_t>() + at[2];
        return place_row(to, step, offsets, offset_step, from, value_step, loop.length(), combine);
      }
      for (const Run& run : runs) {
        place_row(to, 1, &run.offset, 0, from + run.first * value_step, value_step, run.length, combine);
      }
    });
  });
}

void place_last(const Tensor& out, const Selection& selection, const Tensor& values) {
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    place<T>(out, selection, values, [](T, T value) { return value; });
  });
}

template <typename Combine>
void place_sums(const Tensor& out, const Selection& selection, const Tensor& values, Combine combine) {
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) { place<T>(out, selection, values, combine); });
}

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
    place_sums(out, selection, converted, [](auto old, auto value) { return old + value; });
  } else {
    place_last(out, selection, converted);
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
  place_sums(target, selection, values, [=](auto old, auto value) {
    using T = decltype(old);
    if constexpr (is_complex_v<T>) {
      return old + T(complex_factor) * value;
    } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>) {
      return static_cast<int64_t>(old) + whole * static_cast<int64_t>(value);
    } else {
      using AccumulateType = std::conditional_t<std::is_same_v<T, double>, double, float>;
      return static_cast<AccumulateType>(old) +
             static_cast<AccumulateType>(factor) * static_cast<AccumulateType>(value);
    }
  });
}

void index_fill(const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Tensor& out) {
  copy(input, out);
  const Tensor target = at_least_1d(out);
  place_last(target, along(target, dim, index), scalar_tensor(value, out.dtype(), out.device()));
}

void masked_select(const Tensor& input, const Tensor& mask, Tensor& out) {
  const Sizes sizes = shape_rules::broadcast_sizes(input.sizes(), mask.sizes());
  const Sizes steps = broadcast_strides(input.sizes(), input.strides(), sizes);
  const Sizes mask_steps = broadcast_strides(mask.sizes(), mask.strides(), sizes);
  const Selection selection(offsets_of_true(view_of(mask, Geometry{sizes, mask_steps, mask->offset}), steps));
  out = empty(selection.sizes, input.dtype(), input.device());
  pick(input, selection, out);
}

namespace {

// Writes `index` with each place of the row that is not 0 as its last number, up to `end`; gives the next `to`.
template <typename T>
int64_t* write_places(const T* row, int64_t step, int64_t length, const int64_t* index, int64_t ndim, int64_t* to,
                      const int64_t* end) {
  constexpr int64_t kPiece = 512;  // without branches, which nobody can foretell: first the places, then the numbers
  int64_t places[kPiece];
  for (int64_t first = 0; first < length; first += kPiece) {
    int64_t n = 0;
    for (int64_t i = first; i < std::min(length, first + kPiece); ++i) {
      places[n] = i;
      n += row[i * step] != T(0);
    }
    n = std::min(n, (end - to) / ndim);
    for (int64_t d = 0; d + 1 < ndim; ++d) {
      for (int64_t i = 0; i < n; ++i) to[i * ndim + d] = index[d];
    }
    for (int64_t i = 0; i < n; ++i) to[i * ndim + ndim - 1] = places[i];
    to += n * ndim;
  }
  return to;
}

}  // namespace

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
      to = write_places(input.data_as<T>() + offset, step, length, index.data(), ndim, to, end);
      for (int64_t d = ndim - 1; d-- > 0;) {
        if (++index[d] < input.size(d)) break;
        index[d] = 0;
      }
    }
  });
}

}  // namespace tt::cpu
