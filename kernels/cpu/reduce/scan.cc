#include <algorithm>

#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/dim_iterator.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/strided_block.h"
#include "kernels/cpu/reduce/complex_reduce.h"

namespace tt::cpu {

namespace {

constexpr int64_t kChunk = 1024;
constexpr int64_t kTile = 512;  // columns per tile

struct Plus {
  template <typename A>
  static A apply(A a, A b) {
    return a + b;
  }
};
struct Times {
  template <typename A>
  static A apply(A a, A b) {
    return a * b;
  }
};

// A running total is a chain of dependent operations. To hide their latency, eight segments are scanned concurrently.
// The total before each segment is added afterwards.
template <typename Op, typename V, typename A>
TT_CLONES void scan_chunk(V* out, const V* in, int64_t n, A& carry) {
  if constexpr (std::is_integral_v<A>) {  // a latency of one to three cycles: nothing to hide
    A total = carry;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<V>(total = Op::apply(total, static_cast<A>(in[i])));
    carry = total;
    return;
  }
  constexpr int64_t kChains = 8;
  A local[kChunk];
  const int64_t m = n / kChains;
  if (m > 0) {
    A chain[kChains];
    for (int64_t k = 0; k < kChains; ++k) local[k * m] = chain[k] = static_cast<A>(in[k * m]);
    for (int64_t i = 1; i < m; ++i) {
      for (int64_t k = 0; k < kChains; ++k) {
        chain[k] = Op::apply(chain[k], static_cast<A>(in[k * m + i]));
        local[k * m + i] = chain[k];
      }
    }
    for (int64_t k = 0; k < kChains; ++k) {
      const A before = carry;
      for (int64_t i = 0; i < m; ++i) out[k * m + i] = static_cast<V>(Op::apply(before, local[k * m + i]));
      carry = Op::apply(before, chain[k]);
    }
  }
  for (int64_t i = m * kChains; i < n; ++i) {
    carry = Op::apply(carry, static_cast<A>(in[i]));
    out[i] = static_cast<V>(carry);
  }
}

template <typename Op, typename V, typename A>
TT_CLONES void scan_row(V* __restrict out, const V* __restrict in, A* __restrict carry, int64_t cols) {
  for (int64_t j = 0; j < cols; ++j) {
    carry[j] = Op::apply(carry[j], static_cast<A>(in[j]));
    out[j] = static_cast<V>(carry[j]);
  }
}

template <typename V>
const V* read(const Tensor& t, int64_t offset, int64_t stride, int64_t n, V* buffer) {
  const char* at = t.data_as<char>() + offset * static_cast<int64_t>(item_size(t.dtype()));
  if (stride == 1 && is_stored_as<V>(t.dtype())) return reinterpret_cast<const V*>(at);
  load_block(buffer, at, t.dtype(), stride, n);
  return buffer;
}

template <typename Op, typename V, typename A>
void scan_lines(const Tensor& input, int64_t dim, A identity, Tensor& out) {
  const DimIterator<2> lines({&out, &input}, dim);
  const int64_t item = static_cast<int64_t>(item_size(out.dtype()));
  const bool in_place = is_stored_as<V>(out.dtype()) && lines.stride(0) == 1;
  lines.run([&](auto each) {
    V loaded[kChunk], results[kChunk];
    each([&](const std::array<int64_t, 2>& at, int64_t) {
      A carry = identity;
      for (int64_t i = 0; i < lines.length(0); i += kChunk) {
        const int64_t n = std::min(kChunk, lines.length(0) - i);
        const V* in = read(input, at[1] + i * lines.stride(1), lines.stride(1), n, loaded);
        char* to = out.data_as<char>() + (at[0] + i * lines.stride(0)) * item;
        scan_chunk<Op>(in_place ? reinterpret_cast<V*>(to) : results, in, n, carry);
        if (!in_place) store_block(to, out.dtype(), lines.stride(0), results, n);
      }
    });
  });
}

// Scans contiguous tensors in tiles of columns, row by row.
template <typename Op, typename V, typename A>
void scan_columns(const Tensor& input, int64_t n, int64_t inner, A identity, Tensor& out) {
  const int64_t tiles = (inner + kTile - 1) / kTile, outer = out.numel() / (n * inner);
  const int64_t item = static_cast<int64_t>(item_size(out.dtype()));
  const bool in_place = is_stored_as<V>(out.dtype());
  parallel_for(outer * tiles, std::max<int64_t>(1, 16 * kChunk / (n * std::min(kTile, inner))),
               [&](int64_t begin, int64_t end) {
                 V loaded[kTile], results[kTile];
                 A carry[kTile];
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t first = t % tiles * kTile, cols = std::min(kTile, inner - first);
                   std::fill_n(carry, cols, identity);
                   for (int64_t r = 0; r < n; ++r) {
                     const int64_t at = (t / tiles * n + r) * inner + first;
                     const V* in = read(input, at, 1, cols, loaded);
                     char* to = out.data_as<char>() + at * item;
                     scan_row<Op>(in_place ? reinterpret_cast<V*>(to) : results, in, carry, cols);
                     if (!in_place) store_block(to, out.dtype(), 1, results, cols);
                   }
                 }
               });
}

template <typename Op, typename V, typename A>
void scan_as(const Tensor& input, int64_t dim, A identity, Tensor& out) {
  int64_t inner = 1;
  for (int64_t d = shape_rules::wrap_dim(dim, out.dim()) + 1; d < out.dim(); ++d) inner *= out.size(d);
  if (inner >= 8 && input.is_contiguous()) {
    scan_columns<Op, V>(input, out.size(dim), inner, identity, out);
  } else {
    scan_lines<Op, V>(input, dim, identity, out);
  }
}

template <typename Op>
void scan_by(const Tensor& input, int64_t dim, int identity, Tensor& out) {
  if (out.numel() == 0) return;
  if (is_integral(out.dtype())) return scan_as<Op, int64_t>(input, dim, static_cast<int64_t>(identity), out);
  if (out.dtype() == DType::kFloat64) return scan_as<Op, double>(input, dim, static_cast<double>(identity), out);
  scan_as<Op, float>(input, dim, static_cast<double>(identity), out);
}

}  // namespace

void cumsum(const Tensor& input, int64_t dim, std::optional<DType>, Tensor& out) {
  if (!is_complex(out.dtype())) return scan_by<Plus>(input, dim, 0, out);
  if (out.dim() == 0) return copy(input, out);
  Tensor to = parts(out);
  scan_by<Plus>(parts(contiguous_as(input, out.dtype())), shape_rules::wrap_dim(dim, out.dim()), 0, to);
}

void cumprod(const Tensor& input, int64_t dim, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) return complex_cumprod(input, dim, out);
  scan_by<Times>(input, dim, 1, out);
}

namespace {

// The running maximum (or minimum) and its index. Of equal elements the last is chosen; NaN propagates. Strides are
// in elements.
template <bool kMax, typename T>
[[gnu::always_inline]] inline void extremum_line(int64_t n, const T* x, int64_t step, T* __restrict values,
                                                 int64_t value_step, int64_t* __restrict indices, int64_t index_step) {
  T best = x[0];
  int64_t place = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T next = x[i * step];
    const bool is_next = is_nan(next) || (kMax ? next >= best : next <= best);
    best = is_next ? next : best;
    place = is_next ? i : place;
    values[i * value_step] = best;
    indices[i * index_step] = place;
  }
}

template <bool kMax>
void running_extremum(const Tensor& input, int64_t dim, Tensor& values, Tensor& indices) {
  if (input.numel() == 0) return;
  const DimIterator<3> lines({&input, &values, &indices}, dim);
  with_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    lines.run([&](auto each) {
      each([&](const std::array<int64_t, 3>& at, int64_t) {
        const T* x = input.data_as<T>() + at[0];
        T* value = values.data_as<T>() + at[1];
        int64_t* index = indices.data_as<int64_t>() + at[2];
        if (lines.stride(0) == 1 && lines.stride(1) == 1 && lines.stride(2) == 1) {
          extremum_line<kMax>(lines.length(0), x, 1, value, 1, index, 1);
        } else {
          extremum_line<kMax>(lines.length(0), x, lines.stride(0), value, lines.stride(1), index, lines.stride(2));
        }
      });
    });
  });
}

}  // namespace

void cummax(const Tensor& input, int64_t dim, Tensor& values, Tensor& indices) {
  running_extremum<true>(input, dim, values, indices);
}

void cummin(const Tensor& input, int64_t dim, Tensor& values, Tensor& indices) {
  running_extremum<false>(input, dim, values, indices);
}

}  // namespace tt::cpu
