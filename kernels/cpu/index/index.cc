// Advanced indexing: reads and writes the elements of a Selection.
#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/index/selection.h"
#include "kernels/cpu/iteration/strided_loop.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/reduce/count_nonzero.h"

namespace tt::cpu {

namespace {

template <typename T>
TT_CLONES void pick_elements(T* __restrict to, const T* __restrict x, int64_t step, const int64_t* __restrict offsets,
                             int64_t offset_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i * step + offsets[i * offset_step]];
}

// Consecutive offsets, starting at `first`, whose elements are copied together.
struct Run {
  int64_t first, offset, length;
};
using Runs = std::vector<Run>;

// The runs of a selection's offsets if several rows use the same offsets and the runs are long enough, else empty.
Runs runs_of(const Selection& selection) {
  constexpr int64_t kMinMeanLength = 8;  // mean elements per run
  const int64_t n = selection.offsets.numel(), rows = selection.numel() / std::max<int64_t>(n, 1);
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
  if (static_cast<int64_t>(runs.size()) * kMinMeanLength > n) runs.clear();
  return runs;
}

template <typename T>
void copy_runs(T* to, const T* from, const Runs& runs) {
  for (const Run& run : runs) {
    if (run.length == 1) {  // faster than a call of copy; such runs are frequent
      to[run.first] = from[run.offset];
    } else {
      std::copy_n(from + run.offset, run.length, to + run.first);
    }
  }
}

}  // namespace

void copy_selected(const Tensor& x, const Selection& selection, Tensor& out) {
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

namespace {

// The dimension to split among threads: its positions select different elements for any offsets. -1 if there is none.
int64_t dim_to_share(const Selection& selection) {
  for (size_t d = 0; d < selection.sizes.size(); ++d) {
    const bool own = selection.offset_strides[d] == 0 && selection.steps[d] != 0;
    if (own && selection.sizes[d] >= num_threads()) return static_cast<int64_t>(d);
  }
  return -1;
}

template <typename T, typename Combine>
TT_CLONES void combine_rows(T* to, const T* from, int64_t n, Combine combine) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(combine(to[i], from[i]));
}

// Sets each e = to[i * step + offsets[i * offset_step]] to combine(e, from[i * value_step]).
template <typename T, typename Combine>
void place_row(T* to, int64_t step, const int64_t* offsets, int64_t offset_step, const T* from, int64_t value_step,
               int64_t n, Combine combine) {
  if (offset_step == 0 && step == 1 && value_step == 1) return combine_rows(to + offsets[0], from, n, combine);
  for (int64_t i = 0; i < n; ++i) {
    T& element = to[i * step + offsets[i * offset_step]];
    element = static_cast<T>(combine(element, from[i * value_step]));
  }
}

// Sets each selected element of `out` to combine(element, value), sequentially. If an element is selected several
// times, the last value is kept, and the order of sums is deterministic. T has the size of out's elements.
template <typename T, typename Combine>
void place(const Tensor& out, const Selection& selection, const Tensor& values, Combine combine) {
  constexpr int64_t kGrain = 32 * 1024, kLine = 64 / sizeof(T);  // minimum elements per thread; elements per cache line
  const Sizes value_strides = broadcast_strides(values.sizes(), values.strides(), selection.sizes);
  const int64_t shared = dim_to_share(selection), shares = shared < 0 ? 1 : selection.sizes[shared];
  const Runs runs = runs_of(selection);
  const int64_t work = std::max<int64_t>(selection.numel() / shares, 1);
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

}  // namespace

void replace_selected(const Tensor& out, const Selection& selection, const Tensor& values) {
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    place<T>(out, selection, values, [](T, T value) { return value; });
  });
}

namespace {

template <typename Combine>
void place_sums(const Tensor& out, const Selection& selection, const Tensor& values, Combine combine) {
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) { place<T>(out, selection, values, combine); });
}

}  // namespace

void accumulate_selected(const Tensor& out, const Selection& selection, const Tensor& values) {
  place_sums(out, selection, values, [](auto old, auto value) { return old + value; });
}

void add_selected(const Tensor& out, const Selection& selection, const Tensor& values, const Scalar& alpha) {
  const double factor = alpha.to_double();
  const Complex<double> complex_factor(factor, alpha.to_complex().imag());
  const int64_t whole = alpha.to_int();
  place_sums(out, selection, values, [=](auto old, auto value) {
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

namespace {

// Appends the index of each nonzero element of a row to `to`: the leading ndim - 1 entries of `index`, then the
// element's position in the row. Writes nothing at or after `end`. Returns the end of the written data.
template <typename T>
int64_t* write_places(const T* row, int64_t step, int64_t length, const int64_t* index, int64_t ndim, int64_t* to,
                      const int64_t* end) {
  constexpr int64_t kPiece = 512;  // positions per pass: first finds them without branches, then writes the indices
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
