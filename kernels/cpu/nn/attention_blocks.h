// The loops of attention, computed in blocks of scores. The softmax of a row is corrected after each block (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022), so the full score
// matrix is never stored. 16-bit floats are computed in float32; if the CPU multiplies bfloat16, the operands of their
// products, among them the weights and the gradients of the scores, are bfloat16, as in PyTorch.
//
// Forward and Backward take a problem P, which has:
//   rows, columns, depth, width   the sizes of a batch: queries, keys, elements of a key and of a value
//   scale                         the factor of the scores
//   q(batch, row), k(batch, column), v(batch, column) -> Operand<In>
//   columns_before(end), visible(row, j, n)     which columns the rows attend to
//   causal, is_masked()                         whether the causal limit applies, and whether there is a mask
//   mask_row(batch, row, column) -> MaskRow<T>  the mask of a row, from a column on
//   row_block(), column_block()                 the largest blocks that any batch has
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/schema/half.h"
#include "kernels/cpu/blas/accumulate_product.h"
#include "kernels/cpu/blas/bfloat16_product.h"
#include "kernels/cpu/blas/openblas_call.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/nn/attention_columns.h"
#include "kernels/cpu/nn/attention_products.h"
#include "kernels/cpu/nn/attention_rows.h"

namespace tt::cpu::attention_blocks {

inline constexpr int64_t kRows = 128;     // rows per block of scores; many, because every product packs its operands
inline constexpr int64_t kColumns = 256;  // columns per block: 128 KiB in float32, which fits the L2 cache
// Multiplications per thread, about 10 us.
inline constexpr double kGrain = 1 << 20;
template <typename T>
inline constexpr DType kDTypeOf = std::is_same_v<T, double>     ? DType::kFloat64
                                  : std::is_same_v<T, BFloat16> ? DType::kBFloat16
                                                                : DType::kFloat32;

// 8 elements, and the sums of the lanes of 8 vectors, of each of which halves, quarters and pairs are added.
template <typename T>
struct Eight {
  typedef T Vector __attribute__((vector_size(8 * sizeof(T))));
};
template <typename T>
[[gnu::always_inline]] inline typename Eight<T>::Vector lane_sums(const typename Eight<T>::Vector (&x)[8]) {
  typename Eight<T>::Vector halves[4], quarters[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto a = x[2 * i], b = x[2 * i + 1];
    halves[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
                __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const auto a = halves[2 * i], b = halves[2 * i + 1];
    quarters[i] = __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13) +
                  __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
  }
  const auto a = quarters[0], b = quarters[1];
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
         __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}

// out[r] = the scalar product of rows r of x and y. The lanes of eight rows are added together.
template <typename T>
TT_CLONES void row_products(int64_t m, int64_t width, const T* x, int64_t x_step, const T* y, int64_t y_step, T* out) {
  using Part = typename Eight<T>::Vector;
  const auto load = [](const T* from) {
    Part part;
    std::memcpy(&part, from, sizeof(part));
    return part;
  };
  int64_t r = 0;
  for (; r + 8 <= m; r += 8) {
    Part sums[8] = {};
    int64_t i = 0;
    for (; i + 8 <= width; i += 8) {
#pragma GCC unroll 8
      for (int row = 0; row < 8; ++row) {
        sums[row] += load(x + (r + row) * x_step + i) * load(y + (r + row) * y_step + i);
      }
    }
    const Part totals = lane_sums<T>(sums);
    for (int row = 0; row < 8; ++row) {
      T rest = 0;
      for (int64_t j = i; j < width; ++j) rest += x[(r + row) * x_step + j] * y[(r + row) * y_step + j];
      out[r + row] = totals[row] + rest;
    }
  }
  for (; r < m; ++r) {
    T total = 0;
    for (int64_t i = 0; i < width; ++i) total += x[r * x_step + i] * y[r * y_step + i];
    out[r] = total;
  }
}

// The scores of kKeys keys and kQueries queries: the products of each pair of elements are added in the lanes of a
// vector, whose halves are added to each other. Eight scores share the instructions that join lanes. Keys that the
// caller needs soon are `ahead` elements away; 0: none. They are loaded into the caches, because these loops read
// several keys at once, which processors do not recognise as one sequence.
template <int kQueries, int kKeys, typename T>
[[gnu::always_inline]] inline void scores_of(int64_t depth, const T* queries, int64_t q_step, const T* keys,
                                             int64_t k_step, int64_t ahead, T* scores, int64_t n) {
  static_assert(kQueries * kKeys <= 8);
  constexpr int64_t kCount = Lanes<T>::kCount;
  using Part = typename Eight<T>::Vector;
  constexpr int kParts = static_cast<int>(kCount / 8);
  Part sums[kQueries][kKeys][kParts] = {};
  const auto load = [](const T* from) {
    Part part;
    std::memcpy(&part, from, sizeof(part));
    return part;
  };
  int64_t i = 0;
  for (; i + kCount <= depth; i += kCount) {
    if (ahead > 0) {
#pragma GCC unroll 8
      for (int c = 0; c < kKeys; ++c) __builtin_prefetch(keys + c * k_step + i + ahead);
    }
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const int64_t at = i + 8 * part;
#pragma GCC unroll 8
      for (int c = 0; c < kKeys; ++c) {
        const Part of_key = load(keys + c * k_step + at);
#pragma GCC unroll 2
        for (int r = 0; r < kQueries; ++r) sums[r][c][part] += load(queries + r * q_step + at) * of_key;
      }
    }
  }
  Part eight[8] = {};
#pragma GCC unroll 2
  for (int r = 0; r < kQueries; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kKeys; ++c) {
      eight[r * kKeys + c] = kParts == 1 ? sums[r][c][0] : sums[r][c][0] + sums[r][c][kParts - 1];
    }
  }
  const Part totals = lane_sums<T>(eight);
#pragma GCC unroll 2
  for (int r = 0; r < kQueries; ++r) {
    for (int c = 0; c < kKeys; ++c) {
      T rest = 0;
      for (int64_t j = i; j < depth; ++j) rest += queries[r * q_step + j] * keys[c * k_step + j];
      scores[r * n + c] = totals[r * kKeys + c] + rest;
    }
  }
}
// The scores of few queries, q_step elements apart: scores[r * n + c] is the scalar product of query r and key c. A
// product of matrices would pack all keys, which takes longer than to read them once per pair of queries.
template <typename T>
TT_CLONES void few_scores(int64_t m, int64_t n, int64_t depth, const T* q, int64_t q_step, const T* k, int64_t k_step,
                          T* scores) {
  constexpr int64_t kAhead = 16;  // keys
  int64_t c = 0;
  for (; c + 8 <= n; c += 8) {
    const int64_t ahead = c + 8 + kAhead <= n ? kAhead * k_step : 0;
    int64_t r = 0;
    for (; r + 2 <= m; r += 2) {
      const T* const two = q + r * q_step;
      scores_of<2, 4>(depth, two, q_step, k + c * k_step, k_step, r == 0 ? ahead : 0, scores + r * n + c, n);
      scores_of<2, 4>(depth, two, q_step, k + (c + 4) * k_step, k_step, r == 0 ? ahead : 0, scores + r * n + c + 4, n);
    }
    if (r < m) {
      scores_of<1, 8>(depth, q + r * q_step, q_step, k + c * k_step, k_step, r == 0 ? ahead : 0, scores + r * n + c, n);
    }
  }
  for (; c < n; ++c) {
    for (int64_t r = 0; r < m; ++r) {
      scores_of<1, 1>(depth, q + r * q_step, q_step, k + c * k_step, k_step, 0, scores + r * n + c, n);
    }
  }
}
// sums[r * s_step + i] = the sum over c of weights[r * n + c] * v[c * v_step + i], added to what is there if `add`, for
// kRows rows and kVectors vectors, whose sums stay in registers.
template <int kRows, int kVectors, typename T>
[[gnu::always_inline]] inline void sums_of(int64_t n, const T* weights, const T* v, int64_t v_step, T* sums,
                                           int64_t s_step, bool add) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  typename Lanes<T>::Vector totals[kRows][kVectors] = {};
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      if (add) totals[r][i] = lanes_at(sums + r * s_step + i * kCount);
    }
  }
  for (int64_t c = 0; c < n; ++c) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const T weight = weights[r * n + c];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) totals[r][i] += weight * lanes_at(v + c * v_step + i * kCount);
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) lanes_at(sums + r * s_step + i * kCount) = totals[r][i];
  }
}
template <int kVectors, typename T>
[[gnu::always_inline]] inline void sums_of_rows(int64_t m, int64_t n, const T* weights, const T* v, int64_t v_step,
                                                T* sums, int64_t s_step, bool add) {
  int64_t r = 0;
  for (; r + 2 <= m; r += 2) sums_of<2, kVectors>(n, weights + r * n, v, v_step, sums + r * s_step, s_step, add);
  if (r < m) sums_of<1, kVectors>(n, weights + r * n, v, v_step, sums + r * s_step, s_step, add);
}
// sums[r * width + i] = the sum over c of weights[r * n + c] * v[c * v_step + i], added to what is there if `add`.
template <typename T>
TT_CLONES void few_sums(int64_t m, int64_t n, int64_t width, const T* weights, const T* v, int64_t v_step, T* sums,
                        bool add) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  int64_t i = 0;
  for (; i + 4 * kCount <= width; i += 4 * kCount) sums_of_rows<4>(m, n, weights, v + i, v_step, sums + i, width, add);
  for (; i + 2 * kCount <= width; i += 2 * kCount) sums_of_rows<2>(m, n, weights, v + i, v_step, sums + i, width, add);
  for (; i + kCount <= width; i += kCount) sums_of_rows<1>(m, n, weights, v + i, v_step, sums + i, width, add);
  for (; i < width; ++i) {
    for (int64_t r = 0; r < m; ++r) {
      T total = add ? sums[r * width + i] : T(0);
      for (int64_t c = 0; c < n; ++c) total += weights[r * n + c] * v[c * v_step + i];
      sums[r * width + i] = total;
    }
  }
}

// Throws Error (RuntimeError) for more keys than a call may take that have no elements: memory does not bound them.
inline void check_countable(int64_t keys, int64_t elements) {
  check(elements > 0 || keys <= INT_MAX, "expected at most ", INT_MAX, " keys without elements, got ", keys);
}

// A row-major operand of a product, whose rows are `step` elements apart; or its transpose.
template <typename In>
struct Operand {
  const In* data;
  int64_t step;
  bool transposed = false;
};

// Rows of results, `step` elements apart.
template <typename T>
struct Result {
  T* data;
  int64_t step;

  Result row(int64_t i) const { return {data + i * step, step}; }
};

// c = a b, or c += a b if `add`, where c is m x n. Its rows are neighbours if In is BFloat16. Uses the calling thread
// only.
template <typename In, typename T>
void product(int64_t m, int64_t n, int64_t k, Operand<In> a, Operand<In> b, Result<T> c, bool add) {
  if constexpr (std::is_same_v<In, BFloat16>) {
    bfloat16_product({m, n, k, a.data, a.step, a.transposed, b.data, b.step, b.transposed, c.data, add});
  } else if (k == 0) {
    for (int64_t r = 0; r < m && !add; ++r) std::fill_n(c.row(r).data, n, T(0));
  } else {  // the row-major c = a b is the column-major c^T = b^T a^T
    accumulate_product<T>(b.transposed ? 'T' : 'N', a.transposed ? 'T' : 'N', static_cast<int>(n), static_cast<int>(m),
                          static_cast<int>(k), 1, b.data, static_cast<int>(b.step), a.data, static_cast<int>(a.step),
                          add ? 1 : 0, c.data, static_cast<int>(c.step));
  }
}

template <typename T>
std::unique_ptr<T[]> buffer(int64_t n) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n));
}

// Rows of T as the operand of a product of In: the rows themselves, or a copy that convert() fills.
template <typename In, typename T>
class Converted {
 public:
  Converted(const T* rows, int64_t n) : rows_(rows) {
    if constexpr (!std::is_same_v<In, T>) copy_ = buffer<In>(n);
  }
  // Converts n elements that begin at element `at`.
  void convert(int64_t at, int64_t n) {
    if constexpr (!std::is_same_v<In, T>) convert_row(copy_.get() + at, rows_ + at, n, T(1));
  }
  const In* data() const {
    if constexpr (std::is_same_v<In, T>)
      return rows_;
    else
      return copy_.get();
  }

 private:
  const T* rows_;
  std::unique_ptr<In[]> copy_;
};

// Running sums of exponentials per row, and the maximum that is subtracted from the scores.
template <typename T>
struct Rows {
  T most[kRows], sum[kRows];
  explicit Rows(int64_t m) {
    std::fill_n(most, m, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, m, T(0));
  }
  // Processes a block's row of n products, of which the first `visible` are scores: replaces them by unnormalised
  // weights and zeros, and returns the factor by which earlier results must be scaled.
  T add_scores(int64_t r, T* row, int64_t visible, int64_t n, T scale, MaskRow<T> mask) {
    RowSum<T> added = weigh_row(row, visible, n, scale, mask, most[r]);
    if (added.most == -kInfinity<T>) {
      const bool has_nan = std::any_of(row, row + visible, [](T x) { return std::isnan(x); });
      std::fill(row + visible, row + n, T(0));
      if (!has_nan) {  // all scores so far are -inf: fully masked
        std::fill_n(row, visible, T(0));
        return 1;
      }
      added = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
      std::fill_n(row, visible, added.sum);
    }
    const T correction = most[r] == -kInfinity<T> && added.most == added.most ? T(0) : std::exp(most[r] - added.most);
    sum[r] = sum[r] * correction + added.sum;
    most[r] = added.most;
    return correction;
  }
};

// Up to these rows, packing costs a product more than it saves.
inline constexpr int64_t kFewRows = 4;

// The distance of the rows of a block whose columns are queries.
template <typename T>
int64_t column_step(int64_t queries) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  return (queries + kCount - 1) / kCount * kCount;
}
// Whether the loops of attention_columns.h compute blocks of m queries.
template <typename In, typename T, typename P>
bool uses_columns(const P& p, int64_t m) {
  return std::is_same_v<In, float> && std::is_same_v<T, float> && m > kFewRows && !p.is_masked();
}

template <typename In, typename T, typename P>
bool uses_column_products(const P& p) {
  return uses_columns<In, T>(p, p.row_block()) && has_column_products(p.depth, p.width);
}
inline FloatRows rows_of(const Operand<float>& x) { return {x.data, x.step}; }

// Computes blocks of rows of the output. One thread's: it has buffers for a block.
template <typename In, typename T, typename P>
class Forward {
 public:
  explicit Forward(const P& p)
      : p_(p),
        scores_(buffer<T>(column_step<T>(p.row_block()) * p.column_block())),
        sums_(buffer<T>(p.row_block() * p.width)),
        weights_(scores_.get(), p.row_block() * p.column_block()) {
    if (uses_column_products<In, T>(p)) queries_.emplace(p.row_block(), p.depth);
  }

  // Rows [i, i + m) of a batch, where m is the rest of the rows or kRows.
  template <typename Out>
  void run(int64_t batch, int64_t i, Out* out, T* logsumexp) {
    const int64_t m = std::min(kRows, p_.rows - i), seen = p_.columns_before(i + m);
    Rows<T> rows(m);
    T* const sums = sums_.get();
    if (seen == 0) std::fill_n(sums, m * p_.width, T(0));
    const bool by_column = uses_columns<In, T>(p_, m);
    for (int64_t j = 0; j < seen && !cancel_requested(); j += kColumns) {
      const int64_t n = attended(batch, i, m, j, std::min(kColumns, seen - j));
      if (by_column) {
        add_columns(batch, i, m, j, n, rows);
        continue;
      }
      scores(m, n, p_.q(batch, i), p_.k(batch, j));
      for (int64_t r = 0; r < m; ++r) {
        T* const row = scores_.get() + r * n;
        const int64_t visible = std::min(n, p_.visible(i + r, j, n));
        const T correction = rows.add_scores(r, row, visible, n, p_.scale, p_.mask_row(batch, i + r, j));
        if (correction != 1 && j > 0) multiply_row(sums + r * p_.width, p_.width, correction);
        weights_.convert(r * n, n);
      }
      add_values(m, n, p_.v(batch, j), sums, j > 0);
    }
    divide_rows(out, sums, m, p_.width, rows.sum);
    add_logs(m, rows.most, rows.sum, logsumexp);
  }
  static Operand<In> transpose(Operand<In> x) { return {x.data, x.step, !x.transposed}; }

 private:
  // The number of columns from j on, at most n, up to the last one that a mask of -inf leaves to a row, and at least 1:
  // a cache of keys is usually longer than its contents. The values behind it have weights of 0, which change nothing
  // unless one of the values is infinite or NaN: n then.
  int64_t attended(int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n) const {
    int64_t end = 1;
    for (int64_t r = 0; r < m && end < n; ++r) {
      const MaskRow<T> mask = p_.mask_row(batch, i + r, j);
      if (!mask.excluded || mask.value != -std::numeric_limits<T>::infinity()) return n;
      int64_t last = n;
      while (last > end && mask.excluded[(last - 1) * mask.step]) --last;
      end = last;
    }
    constexpr int64_t kCount = Lanes<T>::kCount;  // of whole vectors: the rest would be computed one by one
    end = std::min(n, (end + kCount - 1) / kCount * kCount);
    return are_finite(batch, j + end, j + n) ? end : n;
  }

  // Whether values [begin, end) are known to be finite.
  bool are_finite(int64_t batch, int64_t begin, int64_t end) const {
    if constexpr (std::is_same_v<In, T>) {
      T zero = 0;
      for (int64_t c = begin; c < end; ++c) zero += zero_or_nan(p_.v(batch, c).data, p_.width);
      return zero == 0;
    }
    return begin == end;
  }

  // The same as the loop over rows, with weights whose columns are queries.
  void add_columns(int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n, Rows<T>& rows) {
    if constexpr (std::is_same_v<In, float> && std::is_same_v<T, float>) {
      const int64_t step = column_step<T>(m);
      T* const sums = sums_.get();
      T corrections[kRows];
      KeyRows block{n, step, i + 1 - j, p_.causal};
      if (queries_) {
        if (j == 0) queries_->assign(rows_of(p_.q(batch, i)), m, p_.depth);
        score_product(block, p_.depth, rows_of(p_.k(batch, j)), queries_->data(), scores_.get());
      } else {
        product(n, m, p_.depth, p_.k(batch, j), transpose(p_.q(batch, i)), Result<T>{scores_.get(), step}, false);
      }
      weigh_columns(block, m, p_.scale, scores_.get(), rows.most, rows.sum, corrections);
      for (int64_t r = 0; r < m && j > 0; ++r) {
        if (corrections[r] != 1) multiply_row(sums + r * p_.width, p_.width, corrections[r]);
      }
      const Operand<In> v = p_.v(batch, j);
      if (queries_) {
        block.causal = block.causal && attention_blocks::are_finite(rows_of(v), n, p_.width);
        sum_over_keys(block, m, p_.width, scores_.get(), rows_of(v), sums, p_.width, j > 0);
      } else {
        product(m, p_.width, n, {scores_.get(), step, true}, v, Result<T>{sums, p_.width}, j > 0);
      }
    }
  }

  void scores(int64_t m, int64_t n, Operand<In> q, Operand<In> k) {
    if constexpr (std::is_same_v<In, T>) {
      if (m <= kFewRows) return few_scores<T>(m, n, p_.depth, q.data, q.step, k.data, k.step, scores_.get());
    }
    product(m, n, p_.depth, q, transpose(k), Result<T>{scores_.get(), n}, false);
  }
  void add_values(int64_t m, int64_t n, Operand<In> v, T* sums, bool add) {
    if constexpr (std::is_same_v<In, T>) {
      if (m <= kFewRows) return few_sums<T>(m, n, p_.width, weights_.data(), v.data, v.step, sums, add);
    }
    product(m, p_.width, n, {weights_.data(), n}, v, Result<T>{sums, p_.width}, add);
  }

  const P& p_;
  std::unique_ptr<T[]> scores_, sums_;
  Converted<In, T> weights_;
  std::optional<TransposedRows> queries_;  // if the products of attention_products.h are used
};

// Adds gradients of queries, keys and values, batch by batch. One thread's: it has buffers for a block.
template <typename In, typename T, typename P>
class Backward {
 public:
  explicit Backward(const P& p)
      : p_(p),
        weights_(buffer<T>(column_step<T>(p.row_block()) * p.column_block())),
        grads_(buffer<T>(column_step<T>(p.row_block()) * p.column_block())),
        delta_(buffer<T>(column_step<T>(p.rows))),
        low_weights_(weights_.get(), p.row_block() * p.column_block()),
        low_grads_(grads_.get(), p.row_block() * p.column_block()) {
    if (!uses_column_products<In, T>(p)) return;
    queries_.emplace(p.row_block(), p.depth);
    query_grads_.emplace(p.row_block(), p.width);
    keys_.emplace(p.column_block(), p.depth);
    values_.emplace(p.column_block(), p.width);
  }

  // Whether one block has all rows and columns, so that run() need not add to gradients.
  static bool is_one_block(const P& p) {
    return p.rows > 0 && p.rows <= kRows && p.columns <= kColumns && p.columns_before(p.rows) == p.columns &&
           p.columns > 0;
  }
  // `grad` and `output` have a row per query, and are not transposed. Adds to gradients if `add`; else stores them,
  // which requires is_one_block().
  void run(int64_t batch, Operand<In> grad, Operand<In> output, const T* logsumexp, Result<T> dq, Result<T> dk,
           Result<T> dv, bool add = true) {
    if constexpr (std::is_same_v<In, T>) {
      row_products(p_.rows, p_.width, grad.data, grad.step, output.data, output.step, delta_.get());
    } else {
      for (int64_t r = 0; r < p_.rows; ++r) {
        delta_[r] = dot_of<T>(grad.data + r * grad.step, output.data + r * output.step, p_.width);
      }
    }
    for (int64_t i = 0; i < p_.rows; i += kRows) {
      const int64_t m = std::min(kRows, p_.rows - i), seen = p_.columns_before(i + m);
      const Operand<In> g{grad.data + i * grad.step, grad.step};
      const bool by_column = !compute_factors(batch, i, m, seen, logsumexp + i) && uses_columns<In, T>(p_, m);
      for (int64_t j = 0; j < seen && !cancel_requested(); j += kColumns) {
        const int64_t n = std::min(kColumns, seen - j);
        if (by_column) {
          add_columns(batch, i, m, j, n, g, logsumexp + i, dq, dk, dv, add);
          continue;
        }
        product(m, n, p_.depth, p_.q(batch, i), transpose(p_.k(batch, j)), Result<T>{weights_.get(), n}, false);
        for (int64_t r = 0; r < m; ++r) {
          compute_weights(batch, i + r, j, n, logsumexp[i + r], r * n);
          if (factors_[r] != 1) multiply_row(weights_.get() + r * n, n, factors_[r]);
          low_weights_.convert(r * n, n);
        }
        product(n, p_.width, m, {low_weights_.data(), n, true}, g, dv.row(j), add);
        product(m, n, p_.width, g, transpose(p_.v(batch, j)), Result<T>{grads_.get(), n}, false);
        for (int64_t r = 0; r < m; ++r) {
          score_grad_row(grads_.get() + r * n, weights_.get() + r * n, n, delta_[i + r], p_.scale);
          const MaskRow<T> mask = p_.mask_row(batch, i + r, j);
          if (mask.excluded) clear_excluded(grads_.get() + r * n, n, mask);
          low_grads_.convert(r * n, n);
        }
        product(m, p_.depth, n, {low_grads_.data(), n}, p_.k(batch, j), dq.row(i), add);
        product(n, p_.depth, m, {low_grads_.data(), n, true}, p_.q(batch, i), dk.row(j), add);
      }
    }
  }

 private:
  static Operand<In> transpose(Operand<In> x) { return Forward<In, T, P>::transpose(x); }
  // The same as the loop over rows, with weights whose columns are queries.
  void add_columns(int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n, Operand<In> g, const T* logsumexp,
                   Result<T> dq, Result<T> dk, Result<T> dv, bool add) {
    if constexpr (std::is_same_v<In, float> && std::is_same_v<T, float>) {
      const int64_t step = column_step<T>(m);
      T* const weights = weights_.get();
      T* const grads = grads_.get();
      T logs[kRows] = {};
      std::copy_n(logsumexp, m, logs);
      KeyRows block{n, step, i + 1 - j, p_.causal};
      const Operand<In> q = p_.q(batch, i), k = p_.k(batch, j);
      FloatRows keys{};
      if (queries_) {
        if (j == 0) {
          queries_->assign(rows_of(q), m, p_.depth);
          query_grads_->assign(rows_of(g), m, p_.width);
        }
        keys = keys_->assign(rows_of(k), n, p_.depth);
        score_product(block, p_.depth, keys, queries_->data(), weights);
        const FloatRows values = values_->assign(rows_of(p_.v(batch, j)), n, p_.width);
        score_product(block, p_.width, values, query_grads_->data(), grads);
      } else {
        product(n, m, p_.depth, k, transpose(q), Result<T>{weights, step}, false);
        product(n, m, p_.width, p_.v(batch, j), transpose(g), Result<T>{grads, step}, false);
      }
      score_grad_columns(block, m, p_.scale, logs, delta_.get() + i, weights, grads);
      if (queries_) {
        block.causal = block.causal && are_finite(rows_of(g), m, p_.width) && are_finite(rows_of(q), m, p_.depth) &&
                       are_finite(keys, n, p_.depth);
        sum_over_queries(block, m, p_.width, weights, rows_of(g), dv.row(j).data, dv.step, add);
        sum_over_keys(block, m, p_.depth, grads, keys, dq.row(i).data, dq.step, add);
        sum_over_queries(block, m, p_.depth, grads, rows_of(q), dk.row(j).data, dk.step, add);
      } else {
        product(n, p_.width, m, {weights, step}, g, dv.row(j), add);
        product(m, p_.depth, n, {grads, step, true}, k, dq.row(i), add);
        product(n, p_.depth, m, {grads, step}, q, dk.row(j), add);
      }
    }
  }
  // Replaces the products of a row's query and keys [j, j + n), which begin at element `at`, by their weights.
  void compute_weights(int64_t batch, int64_t row, int64_t j, int64_t n, T logsumexp, int64_t at) {
    T* const weights = weights_.get() + at;
    const int64_t visible = logsumexp == -std::numeric_limits<T>::infinity() ? 0 : p_.visible(row, j, n);
    row_weights(weights, visible, n, p_.scale, p_.mask_row(batch, row, j), logsumexp);
  }
  // The factors of the weights of rows [i, i + m), of which `seen` columns are visible; returns whether one is not 1.
  // The weights of a row sum to 1, but for the rounding of its logsumexp, which is large if all scores of the row are:
  // where a mask of large numbers excludes all keys, for example.
  bool compute_factors(int64_t batch, int64_t i, int64_t m, int64_t seen, const T* logsumexp) {
    constexpr T kAccuracy = sizeof(T) == 8 ? T(1e-12) : T(4e-6);
    std::fill_n(factors_, kRows, T(1));
    const auto is_inaccurate = [](T log) {
      return std::isfinite(log) && std::abs(log) * std::numeric_limits<T>::epsilon() > kAccuracy;
    };
    if (std::none_of(logsumexp, logsumexp + m, is_inaccurate)) return false;
    T sums[kRows] = {};
    for (int64_t j = 0; j < seen && !cancel_requested(); j += kColumns) {
      const int64_t n = std::min(kColumns, seen - j);
      product(m, n, p_.depth, p_.q(batch, i), transpose(p_.k(batch, j)), Result<T>{weights_.get(), n}, false);
      for (int64_t r = 0; r < m; ++r) {
        compute_weights(batch, i + r, j, n, logsumexp[r], r * n);
        sums[r] += sum_of(weights_.get() + r * n, n);
      }
    }
    for (int64_t r = 0; r < m; ++r) {
      if (is_inaccurate(logsumexp[r]) && sums[r] > 0) factors_[r] = 1 / sums[r];
    }
    return true;
  }

  const P& p_;
  T factors_[kRows];
  std::unique_ptr<T[]> weights_, grads_, delta_;
  Converted<In, T> low_weights_, low_grads_;
  std::optional<TransposedRows> queries_, query_grads_;  // as in Forward
  std::optional<AdjacentRows> keys_, values_;
};

// Runs body(begin, end) over [0, n), each of which takes `work` multiplications, with products on one thread.
template <typename T>
void parallel_products(int64_t n, double work, absl::FunctionRef<void(int64_t, int64_t)> body) {
  parallel_for(n, static_cast<int64_t>(kGrain / std::max(work, 1.0)) + 1, [&](int64_t begin, int64_t end) {
    const PoolLease alone(1);
    std::optional<OpenBlasCall> allowed;
    if (std::is_same_v<T, double>) allowed.emplace();
    if (!allowed || *allowed) body(begin, end);  // parallel_for throws if the call was cancelled
  });
}

}  // namespace tt::cpu::attention_blocks
