// reduce: combines many elements into one result, for any reduction.
//
// A reduction R is a value type with these members:
//   Value                                      the type that elements are read as: float, double, int64_t or complex
//   Part, begin() -> Part                      the state of one thread
//   add(Part&, Value, int64_t position)        adds an element; position: index of the element in its result's elements
//   flush(Part&)                               called once every few dozen elements
//   Total, end(Part) -> Total                  the state that threads exchange: at most four 64-bit words
//   merge(Total, Total) -> Total               associative and commutative
//   store(int64_t output, Total)               stores the result
// Elements are added in any order.
#pragma once

#include <algorithm>

#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/common/reduce/reduce_plan.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {

// Whether elements of `dtype` can be reduced in C without copying all of them to another type.
template <typename C>
bool is_read_as(DType dtype) {
  if constexpr (is_complex_v<C>)
    return dtype == (sizeof(C) == 16 ? DType::kComplex128 : DType::kComplex64);
  else if constexpr (std::is_same_v<C, double>)
    return dtype == DType::kFloat64;
  else if constexpr (std::is_same_v<C, float>)
    return is_floating(dtype) && dtype != DType::kFloat64;
  else
    return is_integral(dtype);
}
template <typename C>
Tensor read_as(const Tensor& t) {
  constexpr DType kType = is_complex_v<C>             ? (sizeof(C) == 16 ? DType::kComplex128 : DType::kComplex64)
                          : std::is_same_v<C, double> ? DType::kFloat64
                          : std::is_same_v<C, float>  ? DType::kFloat32
                                                      : DType::kInt64;
  return is_read_as<C>(t.dtype()) ? t : contiguous_as(t, kType);
}

// Like with_element(), for the dtypes that is_read_as<C>() accepts.
template <typename C, typename F>
void with_element_read_as(DType dtype, F f) {
  if constexpr (std::is_same_v<C, double> || is_complex_v<C>) {
    f(std::type_identity<C>());
  } else if constexpr (std::is_same_v<C, float>) {
    if (dtype == DType::kFloat16)
      f(std::type_identity<Half>());
    else if (dtype == DType::kBFloat16)
      f(std::type_identity<BFloat16>());
    else
      f(std::type_identity<float>());
  } else {
    switch (dtype) {
      case DType::kBool: return f(std::type_identity<Bool>());
      case DType::kUInt8: return f(std::type_identity<uint8_t>());
      case DType::kInt8: return f(std::type_identity<int8_t>());
      case DType::kInt16: return f(std::type_identity<int16_t>());
      case DType::kInt32: return f(std::type_identity<int32_t>());
      case DType::kUInt16: return f(std::type_identity<uint16_t>());
      case DType::kUInt32: return f(std::type_identity<uint32_t>());
      default: return f(std::type_identity<int64_t>());
    }
  }
}

// Memory layout of a reduction's input. `outputs` is the number of results, `count` the number of elements of each
// result.
struct ReduceSpace {
  const void* data;
  DType dtype;
  Layout<1> kept, reduced;
  int64_t outputs, count;
  // The elements of one result are `runs` contiguous runs of `run_length` elements each, which begin at `starts`.
  // If the elements are scattered, `runs` is 0.
  Layout<1> starts;
  int64_t runs, run_length;

  ReduceSpace(const Tensor& input, const ReducePlan& plan)
      : data(input.data()),
        dtype(input.dtype()),
        kept(layout_of(plan.kept)),
        reduced(layout_of(plan.reduced)),
        outputs(plan.outputs),
        count(plan.count),
        starts(layout_of(outer_of(plan.reduced))) {
    constexpr int64_t kLong = 64;  // minimum length of a run that a group processes as a whole
    const Extent& inner = plan.reduced.back();
    const bool has_runs = count > 0 && inner.stride == 1 && (plan.reduced.size() == 1 || inner.size >= kLong);
    run_length = has_runs ? inner.size : count;
    runs = !has_runs ? 0 : plan.reduced.size() == 1 ? 1 : count / run_length;
  }

  static absl::Span<const Extent> outer_of(const Extents& extents) {
    return absl::MakeConstSpan(extents).first(extents.size() - 1);
  }
  static Layout<1> layout_of(absl::Span<const Extent> extents) {
    Sizes sizes, strides;
    for (const Extent& extent : extents) {
      sizes.push_back(extent.size);
      strides.push_back(extent.stride);
    }
    return Layout<1>(sizes, {strides});
  }
};

// Like load_vector(), but also supports sizes that no single instruction can load.
template <typename T, int kCount>
TT_DEVICE Vector<T, kCount> load_together(const T* from) {
  if constexpr (kCount == 1 || kCount * sizeof(T) > 16) {
    Vector<T, kCount> each;
    TT_UNROLL
    for (int i = 0; i < kCount; ++i) each.at[i] = from[i];
    return each;
  } else {
    return load_vector<T, kCount>(from);
  }
}

// Number of loads that a thread issues before it processes the elements of the first load.
inline constexpr int kLoadsAhead = 4;

// Adds those elements in [begin, end) of the run at `x` that thread `rank` of `size` threads processes. `position` is
// the index of the run's first element among the result's elements. Requires fewer than 2^31 elements.
template <typename T, typename R>
TT_DEVICE void add_row(const R& r, typename R::Part& part, const T* x, int64_t begin, int64_t end, int64_t position,
                       int rank, int size) {
  using C = typename R::Value;
  constexpr int kWide = 16 / sizeof(T);
  using WideVector = Vector<T, kWide>;
  x += begin;
  position += begin;
  const int n = static_cast<int>(end - begin);
  const int odd = static_cast<int>(reinterpret_cast<uintptr_t>(x) % sizeof(WideVector) / sizeof(T));
  const int first = odd == 0 ? 0 : kWide - odd < n ? kWide - odd : n;
  TT_ROLLED
  for (int i = rank; i < first; i += size) r.add(part, convert<C>(x[i]), position + i);
  const int step = size * kWide, packed = first + (n - first) / kWide * kWide;
  const auto add = [&](const WideVector& loaded, int at) {
    const Lanes<C, kWide> lanes = lanes_of<C>(loaded);
    TT_UNROLL
    for (int j = 0; j < kWide; ++j) r.add(part, lanes.at[j], position + at + j);
  };
  int i = first + rank * kWide;
  TT_ROLLED
  for (; i + (kLoadsAhead - 1) * step < packed; i += kLoadsAhead * step) {
    WideVector loaded[kLoadsAhead];
    TT_UNROLL
    for (int a = 0; a < kLoadsAhead; ++a) loaded[a] = load_together<T, kWide>(x + (i + a * step));
    TT_UNROLL
    for (int a = 0; a < kLoadsAhead; ++a) add(loaded[a], i + a * step);
    r.flush(part);
  }
  TT_ROLLED
  for (; i < packed; i += step) add(load_together<T, kWide>(x + i), i);
  TT_ROLLED
  for (int i = packed + rank; i < n; i += size) r.add(part, convert<C>(x[i]), position + i);
  r.flush(part);
}

// Adds elements begin, begin + step, ... below `end`, in any layout.
template <typename T, typename R>
TT_DEVICE void add_scattered(const R& r, typename R::Part& part, const T* x, const Layout<1>& layout, int64_t begin,
                             int64_t end, int64_t step) {
  int unflushed = 0;
  TT_ROLLED
  for (int64_t i = begin; i < end; i += step) {
    r.add(part, convert<typename R::Value>(x[layout.offsets(i).at[0]]), i);
    if (++unflushed == 32) {
      r.flush(part);
      unflushed = 0;
    }
  }
  r.flush(part);
}

// Wraps `merge` for Group::reduce().
template <typename R>
struct Merge {
  R r;
  TT_FUNCTION typename R::Total operator()(const typename R::Total& a, const typename R::Total& b) const {
    return r.merge(a, b);
  }
};

// Merges, for each result, the totals of `parts` threads or groups. `totals` has shape parts x outputs.
template <typename R>
void merge_parts(const Queue& queue, const R& r, const typename R::Total* totals, int64_t outputs, int64_t parts) {
  for_each_group(queue, outputs, parts, [=] TT_DEVICE(Group & group) {
    typename R::Total total = r.end(r.begin());
    for (int64_t p = group.rank(); p < parts; p += group.size()) {
      total = r.merge(total, totals[p * outputs + group.index()]);
    }
    total = group.reduce(total, Merge<R>{r});
    if (group.rank() == 0) r.store(group.index(), total);
  });
}

// Allocates `parts` totals per output. Returns an undefined tensor if one part is enough.
template <typename Total>
Tensor allocate_totals(Device device, int64_t outputs, int64_t parts) {
  if (parts == 1) return Tensor();
  return empty({outputs * parts * static_cast<int64_t>(sizeof(Total))}, DType::kUInt8, device);
}

// How each row, that is, the elements of one result, is divided among groups.
struct RowParts {
  int64_t pieces;        // per contiguous run
  int64_t all_pieces;    // per row
  int64_t parts;         // groups per row
  int64_t piece_length;  // elements per piece
  int64_t work;          // `work` argument of for_each_group

  explicit RowParts(const ReduceSpace& space) {
    constexpr int64_t kEnoughGroups = 2048, kMinPiece = 16 * 1024, kMaxPiece = int64_t{1} << 30;
    const int64_t runs = std::max<int64_t>(space.runs, 1);
    const int64_t wanted = std::min(kEnoughGroups / (space.outputs * runs), space.run_length / kMinPiece);
    pieces = std::max<int64_t>({wanted, (space.run_length + kMaxPiece - 1) / kMaxPiece, 1});
    all_pieces = runs * pieces;
    parts = std::min(all_pieces, std::max<int64_t>(4 * kEnoughGroups / space.outputs, 1));
    piece_length = ((space.run_length + pieces - 1) / pieces + 15) / 16 * 16;
    // With few groups, a thread issues kLoadsAhead loads. With many groups, it issues four times as many, to reduce the
    // relative cost of per-thread work and of merging threads.
    constexpr int64_t kMany = 8 * kEnoughGroups, kRoundBytes = 16 * kLoadsAhead;
    work = piece_length * static_cast<int64_t>(item_size(space.dtype)) /
           (space.outputs * parts >= kMany ? 4 * kRoundBytes : kRoundBytes);
  }
};

template <typename T, typename R>
void launch_rows(const Queue& queue, const R& r, const ReduceSpace& space, const RowParts& by,
                 typename R::Total* totals) {
  for_each_group(queue, space.outputs * by.parts, by.work, [=] TT_DEVICE(Group & group) {
    // Avoids a 64-bit division, which takes as long as a short row.
    const int64_t output = by.parts == 1 ? group.index() : group.index() / by.parts;
    const int64_t part = group.index() - output * by.parts;
    const T* x = static_cast<const T*>(space.data) + space.kept.offsets(output).at[0];
    typename R::Part gathered = r.begin();
    TT_ROLLED
    for (int64_t piece = part; piece < by.all_pieces; piece += by.parts) {
      const int64_t run = by.pieces == 1 ? piece : piece / by.pieces;
      const int64_t begin = (piece - run * by.pieces) * by.piece_length;
      const int64_t end = begin + by.piece_length < space.run_length ? begin + by.piece_length : space.run_length;
      if (space.runs > 0) {
        add_row(r, gathered, x + space.starts.offsets(run).at[0], begin, end, run * space.run_length, group.rank(),
                group.size());
      } else {
        add_scattered(r, gathered, x, space.reduced, begin + group.rank(), end, group.size());
      }
    }
    const typename R::Total total = group.reduce(r.end(gathered), Merge<R>{r});
    if (group.rank() != 0) return;
    if (totals)
      totals[part * space.outputs + output] = total;
    else
      r.store(output, total);
  });
}

// Uses one group per row, or one group per part of a row. A part is a number of pieces of the row.
template <typename R>
void reduce_rows(const Queue& queue, const R& r, const ReduceSpace& space) {
  using Total = typename R::Total;
  const RowParts by(space);
  const Tensor memory = allocate_totals<Total>(queue.device(), space.outputs, by.parts);
  Total* totals = memory ? static_cast<Total*>(memory.data()) : nullptr;
  with_element_read_as<typename R::Value>(
      space.dtype, [&]<typename T>(std::type_identity<T>) { launch_rows<T>(queue, r, space, by, totals); });
  if (totals) merge_parts(queue, r, totals, space.outputs, by.parts);
}

// State of a thread that reduces kWidth adjacent columns.
template <int kWidth, typename R>
struct Columns {
  R r;
  typename R::Part part[kWidth];

  TT_DEVICE explicit Columns(const R& r) : r(r) {
    TT_UNROLL
    for (int w = 0; w < kWidth; ++w) part[w] = r.begin();
  }
  TT_DEVICE void flush() {
    TT_UNROLL
    for (int w = 0; w < kWidth; ++w) r.flush(part[w]);
  }
  template <typename T>
  TT_DEVICE void add(const Vector<T, kWidth>& row, int64_t position) {
    const auto lanes = lanes_of<typename R::Value>(row);
    TT_UNROLL
    for (int w = 0; w < kWidth; ++w) r.add(part[w], lanes.at[w], position);
  }
  // Adds rows first, first + parts, ... below `count`. `at(row)` returns the offset of a row.
  template <typename T, typename At>
  TT_DEVICE void add_rows(const T* x, At at, int64_t first, int64_t count, int64_t parts) {
    int64_t row = first;
    TT_ROLLED
    for (int unflushed = 0; row + (kLoadsAhead - 1) * parts < count; row += kLoadsAhead * parts) {
      Vector<T, kWidth> loaded[kLoadsAhead];
      TT_UNROLL
      for (int a = 0; a < kLoadsAhead; ++a) loaded[a] = load_together<T, kWidth>(x + at(row + a * parts));
      TT_UNROLL
      for (int a = 0; a < kLoadsAhead; ++a) add(loaded[a], row + a * parts);
      if (++unflushed == 8) {
        flush();
        unflushed = 0;
      }
    }
    flush();
    TT_ROLLED
    for (; row < count; row += parts) add(load_together<T, kWidth>(x + at(row)), row);
    flush();
  }
};

template <int kWidth, typename T, typename R>
void launch_columns(const Queue& queue, const R& r, const ReduceSpace& space, int64_t parts,
                    typename R::Total* totals) {
  const int64_t columns = space.outputs / kWidth;
  // Rows are usually evenly spaced. The offset is then a product, and no layout lookup is needed.
  const bool even = space.reduced.dims() <= 1;
  const int64_t distance = space.reduced.inner_stride(0);
  for_each(queue, columns * parts, [=] TT_DEVICE(int64_t i) {
    const int64_t first = i / columns, output = i % columns * kWidth;
    const T* x = static_cast<const T*>(space.data) + space.kept.offsets(output).at[0];
    Columns<kWidth, R> gathered(r);
    if (even) {
      gathered.add_rows(
          x, [&](int64_t row) { return row * distance; }, first, space.count, parts);
    } else {
      gathered.add_rows(
          x, [&](int64_t row) { return space.reduced.offsets(row).at[0]; }, first, space.count, parts);
    }
    TT_UNROLL
    for (int w = 0; w < kWidth; ++w) {
      const typename R::Total total = r.end(gathered.part[w]);
      if (totals)
        totals[first * space.outputs + output + w] = total;
      else
        r.store(output + w, total);
    }
  });
}

// Uses one thread per kWidth adjacent results, or `parts` threads, each of which adds every `parts`-th row.
template <int kWidth, typename R>
void reduce_columns(const Queue& queue, const R& r, const ReduceSpace& space) {
  using Total = typename R::Total;
  // The number of threads that an H200 runs at once. With eight columns per thread, registers limit the number further.
  constexpr int64_t kEnoughThreads = (kWidth > 4 ? 96 : 128) * 1024, kMinRows = 16, kMaxParts = 4096;
  const int64_t wanted = std::min(kEnoughThreads / (space.outputs / kWidth), space.count / kMinRows);
  const int64_t parts = std::clamp<int64_t>(wanted, 1, kMaxParts);
  const Tensor memory = allocate_totals<Total>(queue.device(), space.outputs, parts);
  Total* totals = memory ? static_cast<Total*>(memory.data()) : nullptr;
  with_element_read_as<typename R::Value>(space.dtype, [&]<typename T>(std::type_identity<T>) {
    // Loads are at most 16 bytes. Only 16-bit types are loaded with twice the usual width.
    if constexpr (kWidth * sizeof(T) <= 16) launch_columns<kWidth, T>(queue, r, space, parts, totals);
  });
  if (totals) merge_parts(queue, r, totals, space.outputs, parts);
}

// Whether `width` adjacent results can be computed with loads of `width` elements.
inline bool is_vectorizable(const ReduceSpace& space, const ReducePlan& plan, int64_t width) {
  const auto even = [&](const Extents& extents, size_t from_end) {
    for (size_t d = 0; d + from_end < extents.size(); ++d) {
      if (extents[d].stride % width != 0) return false;
    }
    return true;
  };
  const size_t bytes = static_cast<size_t>(width) * item_size(space.dtype);
  return !plan.kept.empty() && plan.kept.back().stride == 1 && plan.kept.back().size % width == 0 &&
         even(plan.kept, 1) && even(plan.reduced, 0) && reinterpret_cast<uintptr_t>(space.data) % bytes == 0;
}

// Whether adjacent threads should read adjacent elements of one result instead of computing adjacent results.
inline bool runs_along_rows(const ReducePlan& plan) {
  constexpr int64_t kShort = 32;  // with many rows, a row up to this length is read by one thread
  if (plan.outputs >= 4096 && plan.count <= kShort) return false;
  return plan.kept.empty() || plan.reduced.back().stride <= plan.kept.back().stride;
}

// Enqueues the reduction. Requires is_read_as<R::Value>(input.dtype()).
template <typename R>
void reduce(const R& r, const Tensor& input, const ReducePlan& plan) {
  if (plan.outputs == 0) return;
  constexpr int kWidth = 16 / std::max<size_t>(sizeof(typename R::Value), 4);  // in elements of Value
  const Queue queue = queue_of(input);
  const ReduceSpace space(input, plan);
  if (runs_along_rows(plan)) return reduce_rows(queue, r, space);
  if constexpr (std::is_same_v<typename R::Value, float>) {
    if (item_size(space.dtype) == 2 && is_vectorizable(space, plan, 2 * kWidth)) {
      return reduce_columns<2 * kWidth>(queue, r, space);
    }
  }
  if (is_vectorizable(space, plan, kWidth)) return reduce_columns<kWidth>(queue, r, space);
  reduce_columns<1>(queue, r, space);
}

}  // namespace tt::cuda
