#include "kernels/cpu/nn/attention_products.h"

#include <algorithm>

#include "kernels/cpu/iteration/isa.h"
#include "kernels/cpu/iteration/transpose.h"
#include "kernels/cpu/loops/lanes.h"

namespace tt::cpu::attention_blocks {
namespace {

using Floats = Lanes<float>::Vector;
constexpr int64_t kCount = Lanes<float>::kCount;
constexpr int64_t kTileRows = 8;        // with two vectors, 16 independent sums: two per cycle, each four cycles long
constexpr int64_t kMostElements = 512;  // of a row: bounds the transposed copies

// c(r, i) = the sum over p of a(r, p) b(p, i), added to c if `add`, where a(r, p) = a[r * a_row + p * a_term].
struct Product {
  const float* a;
  int64_t a_row, a_term;
  const float* b;
  int64_t b_step;
  float* c;
  int64_t c_step;
  bool add;
};

// Computes kRows x kVectors vectors of the result at (r, i), of the terms [begin, end).
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void tile(const Product& x, int64_t r, int64_t i, int64_t begin, int64_t end) {
  Floats sums[kRows][kVectors] = {};
  float* const c = x.c + r * x.c_step + i;
  if (x.add) {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[row][v] = lanes_at(c + row * x.c_step + v * kCount);
    }
  }
  const float* a = x.a + r * x.a_row + begin * x.a_term;
  const float* b = x.b + begin * x.b_step + i;
  for (int64_t p = begin; p < end; ++p, a += x.a_term, b += x.b_step) {
    Floats of_b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) of_b[v] = lanes_at(b + v * kCount);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[row][v] += a[row * x.a_row] * of_b[v];
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) lanes_at(c + row * x.c_step + v * kCount) = sums[row][v];
  }
}

struct Terms {
  int64_t begin, end;
};

// Computes rows [0, m) of kVectors vectors at column i, where terms_of(r, count) are the terms of `count` rows from r.
template <int kVectors, typename F>
[[gnu::always_inline]] inline void rows_of(const Product& x, int64_t m, int64_t i, F terms_of) {
  int64_t r = 0;
  for (; r + kTileRows <= m; r += kTileRows) {
    const Terms terms = terms_of(r, kTileRows);
    tile<kTileRows, kVectors>(x, r, i, terms.begin, terms.end);
  }
  if (r + 4 <= m) {
    const Terms terms = terms_of(r, 4);
    tile<4, kVectors>(x, r, i, terms.begin, terms.end);
    r += 4;
  }
  for (; r < m; ++r) {
    const Terms terms = terms_of(r, 1);
    tile<1, kVectors>(x, r, i, terms.begin, terms.end);
  }
}

// Computes m rows of n columns, where rows_before(end) are the rows of the columns before `end`.
template <typename R, typename F>
[[gnu::always_inline]] inline void columns_of(const Product& x, int64_t n, R rows_before, F terms_of) {
  int64_t i = 0;
  for (; i + 2 * kCount <= n; i += 2 * kCount) rows_of<2>(x, rows_before(i + 2 * kCount), i, terms_of);
  if (i < n) rows_of<1>(x, rows_before(n), i, terms_of);
}

// The number of keys that queries [0, end) see.
[[gnu::always_inline]] inline int64_t keys_before(const KeyRows& block, int64_t end) {
  return block.causal ? std::clamp<int64_t>(block.seen + end - 1, 0, block.n) : block.n;
}

[[gnu::target("arch=x86-64-v4")]] void scores_v4(const KeyRows& block, int64_t depth, const Product& x) {
  columns_of(
      x, block.step, [&](int64_t end) { return keys_before(block, end); },
      [&](int64_t, int64_t) {
        return Terms{0, depth};
      });
}
[[gnu::target("arch=x86-64-v4")]] void sums_over_keys_v4(const KeyRows& block, int64_t queries, int64_t width,
                                                         const Product& x) {
  columns_of(
      x, width, [&](int64_t) { return queries; },
      [&](int64_t q, int64_t count) {
        return Terms{0, keys_before(block, q + count)};
      });
}
[[gnu::target("arch=x86-64-v4")]] void sums_over_queries_v4(const KeyRows& block, int64_t queries, int64_t width,
                                                            const Product& x) {
  columns_of(
      x, width, [&](int64_t) { return block.n; }, [&](int64_t c, int64_t) {  // the first query that sees key c
        return Terms{block.causal ? std::clamp<int64_t>(c - block.seen + 1, 0, queries) : 0, queries};
      });
}

[[gnu::target("arch=x86-64-v4")]] bool are_finite_v4(FloatRows rows, int64_t m, int64_t width) {
  Floats zeros = {};  // or NaN
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t i = 0; i < width; i += kCount) zeros += lanes_at(rows.data + r * rows.step + i) * 0.0F;
  }
  float lanes[kCount];
  lanes_at(lanes) = zeros;
  return std::all_of(lanes, lanes + kCount, [](float x) { return x == 0; });
}

[[gnu::target("arch=x86-64-v4")]] void copy_rows_v4(FloatRows from, float* to, int64_t m, int64_t width) {
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t i = 0; i < width; i += kCount) lanes_at(to + r * width + i) = lanes_at(from.data + r * from.step + i);
  }
}

}  // namespace

bool has_column_products(int64_t depth, int64_t width) {
  static const bool has_avx512 = allows_avx512() && __builtin_cpu_supports("avx512f") &&
                                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512vl");
  const auto fits = [](int64_t n) { return n > 0 && n % kCount == 0 && n <= kMostElements; };
  return has_avx512 && fits(depth) && fits(width);
}

TransposedRows::TransposedRows(int64_t most, int64_t depth)
    : data_(std::make_unique_for_overwrite<float[]>(
          static_cast<size_t>((most + kCount - 1) / kCount * kCount * std::min(depth, kMostElements)))) {}

void TransposedRows::assign(FloatRows rows, int64_t m, int64_t depth) {
  const int64_t step = (m + kCount - 1) / kCount * kCount;
  transpose_plane(reinterpret_cast<const uint32_t*>(rows.data), reinterpret_cast<uint32_t*>(data_.get()),
                  {depth, m, rows.step, step});
  for (int64_t p = 0; p < depth && m < step; ++p) std::fill_n(data_.get() + p * step + m, step - m, 0.0F);
}

AdjacentRows::AdjacentRows(int64_t most, int64_t width)
    : data_(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(most * std::min(width, kMostElements)))) {}

FloatRows AdjacentRows::assign(FloatRows rows, int64_t m, int64_t width) {
  if (rows.step == width) return rows;
  copy_rows_v4(rows, data_.get(), m, width);
  return {data_.get(), width};
}

bool are_finite(FloatRows rows, int64_t m, int64_t width) { return are_finite_v4(rows, m, width); }

void score_product(const KeyRows& block, int64_t depth, FloatRows keys, const float* queries, float* scores) {
  scores_v4(block, depth, {keys.data, keys.step, 1, queries, block.step, scores, block.step, false});
}

void sum_over_keys(const KeyRows& block, int64_t queries, int64_t width, const float* weights, FloatRows values,
                   float* sums, int64_t step, bool add) {
  sums_over_keys_v4(block, queries, width, {weights, 1, block.step, values.data, values.step, sums, step, add});
}

void sum_over_queries(const KeyRows& block, int64_t queries, int64_t width, const float* weights, FloatRows values,
                      float* sums, int64_t step, bool add) {
  sums_over_queries_v4(block, queries, width, {weights, block.step, 1, values.data, values.step, sums, step, add});
}

}  // namespace tt::cpu::attention_blocks
