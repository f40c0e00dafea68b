// Attention, computed in blocks of scores. The softmax of a row is corrected after each block (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022), so the full score matrix is
// never stored. 16-bit floats are computed in float32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/common/math/vector_math.h"
#include "kernels/common/nn/attention_shape.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/linear/gemm.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int64_t kRows = 192;     // rows per block of scores; large, because every product packs its operands
constexpr int64_t kColumns = 192;  // columns per block: 144 KiB in float32, which fits the L2 cache

// row[i] = row[i] * scale, plus mask[i * step] if there is a mask.
template <typename T>
TT_CLONES void scale_row(T* __restrict row, int64_t n, T scale, const T* mask, int64_t step) {
  if (!mask) {
    for (int64_t i = 0; i < n; ++i) row[i] *= scale;
  } else {
    for (int64_t i = 0; i < n; ++i) row[i] = row[i] * scale + mask[i * step];
  }
}
template <typename T>
TT_CLONES void multiply_row(T* __restrict row, int64_t n, T by) {
  for (int64_t i = 0; i < n; ++i) row[i] *= by;
}
template <typename T>
TT_CLONES void add_row(T* __restrict row, const T* __restrict other, int64_t n) {
  for (int64_t i = 0; i < n; ++i) row[i] += other[i];
}
// Overloads rather than a template, because a template's clones would not use libm's vector forms.
TT_CLONES void exp_row(float* __restrict row, int64_t n, float shift) {
  for (int64_t i = 0; i < n; ++i) row[i] = ::expf(row[i] - shift);
}
TT_CLONES void exp_row(double* __restrict row, int64_t n, double shift) {
  for (int64_t i = 0; i < n; ++i) row[i] = ::exp(row[i] - shift);
}
// grads[i] = weights[i] * (grads[i] - delta) * scale.
template <typename T>
TT_CLONES void score_grad_row(T* __restrict grads, const T* __restrict weights, int64_t n, T delta, T scale) {
  for (int64_t i = 0; i < n; ++i) grads[i] = weights[i] * (grads[i] - delta) * scale;
}

// Reduces into enough partial results to keep the vector units busy, then joins them.
template <typename T, typename Step, typename Join>
[[gnu::always_inline]] inline T reduce(int64_t n, T start, Step step, Join join) {
  constexpr int kLanes = 256 / sizeof(T);
  T lanes[kLanes];
  for (T& lane : lanes) lane = start;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] = step(lanes[j], i + j);
  }
  for (int j = 0; i < n; ++i, ++j) lanes[j] = step(lanes[j], i);
  T total = lanes[0];
  for (int j = 1; j < kLanes; ++j) total = join(total, lanes[j]);
  return total;
}
template <typename T>
TT_CLONES T largest_of(const T* x, int64_t n) {
  const auto larger = [](T a, T b) { return b > a ? b : a; };
  return reduce(
      n, -std::numeric_limits<T>::infinity(), [&](T most, int64_t i) { return larger(most, x[i]); }, larger);
}
template <typename T>
TT_CLONES T sum_of(const T* x, int64_t n) {
  const auto plus = [](T a, T b) { return a + b; };
  return reduce(
      n, T(0), [&](T sum, int64_t i) { return sum + x[i]; }, plus);
}
template <typename T>
TT_CLONES T dot_of(const T* x, const T* y, int64_t n) {
  const auto plus = [](T a, T b) { return a + b; };
  return reduce(
      n, T(0), [&](T sum, int64_t i) { return sum + x[i] * y[i]; }, plus);
}

// The operands of one call, contiguous except for the mask.
template <typename T>
struct Problem : AttentionShape {
  Tensor query, key, value, mask;
  T scale;

  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, bool is_causal, double factor)
      : AttentionShape(q, k, v, is_causal),
        query(as_accumulate_type(q)),
        key(as_accumulate_type(k)),
        value(as_accumulate_type(v)),
        scale(static_cast<T>(factor)) {
    // The mask keeps its strides, because most masks are broadcast over the heads.
    if (m) mask = m.dtype() == query.dtype() ? m : as_accumulate_type(m);
  }
  const T* q(int64_t batch, int64_t row) const { return query.template data_as<T>() + (batch * rows + row) * depth; }
  const T* k(int64_t batch, int64_t column) const {
    return key.template data_as<T>() + (batch * columns + column) * depth;
  }
  const T* v(int64_t batch, int64_t column) const {
    return value.template data_as<T>() + (batch * columns + column) * width;
  }

  // The block of scaled and masked scores of rows [i, i + m) and columns [j, j + n).
  void scores(int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n, T* out) const {
    product(m, n, depth, {q(batch, i), depth, 1}, {k(batch, j), 1, depth}, out);
    for (int64_t r = 0; r < m; ++r) {
      scale_row(out + r * n, n, scale, mask_row(batch, i + r, j), mask ? mask.stride(3) : 0);
      if (!causal) continue;
      const int64_t visible = std::clamp<int64_t>(i + r + 1 - j, 0, n);
      std::fill(out + r * n + visible, out + (r + 1) * n, -std::numeric_limits<T>::infinity());
    }
  }
  const T* mask_row(int64_t batch, int64_t row, int64_t column) const {
    if (!mask) return nullptr;
    return mask.template data_as<T>() + batch / heads * mask.stride(0) + batch % heads * mask.stride(1) +
           row * mask.stride(2) + column * mask.stride(3);
  }
  static void product(int64_t m, int64_t n, int64_t depth, Matrix a, Matrix b, T* out) {
    gemm({sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64, m, n, depth, a, b, out});
  }
};

// One thread's buffers for a block.
template <typename T>
struct Block {
  std::vector<T> scores, grads, part;
  explicit Block(int64_t width)
      : scores(kRows * kColumns), grads(kRows * kColumns), part(std::max(kRows, kColumns) * width) {}
};

// Running sums of exponentials per row, and the maximum that is subtracted from the scores.
template <typename T>
struct Rows {
  T most[kRows], sum[kRows];
  explicit Rows(int64_t m) {
    std::fill_n(most, m, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, m, T(0));
  }
  // Processes a block's row: replaces the scores by unnormalised weights, and returns the factor by which earlier
  // results must be scaled.
  T add_scores(int64_t r, T* row, int64_t n) {
    T next = std::max(most[r], largest_of(row, n));
    if (next == -std::numeric_limits<T>::infinity()) {
      if (std::none_of(row, row + n, [](T x) { return std::isnan(x); })) {  // all scores so far are -inf: fully masked
        std::fill_n(row, n, T(0));
        return 1;
      }
      next = std::numeric_limits<T>::quiet_NaN();  // largest_of ignores NaN
    }
    const T correction = std::exp(most[r] - next);
    exp_row(row, n, next);
    sum[r] = sum[r] * correction + sum_of(row, n);
    most[r] = next;
    return correction;
  }
};

template <typename T>
void forward_rows(const Problem<T>& p, int64_t batch, int64_t i, Block<T>& block, T* out, T* logsumexp) {
  const int64_t m = std::min(kRows, p.rows - i), seen = p.columns_before(i + m);
  Rows<T> rows(m);
  std::fill_n(out, m * p.width, T(0));
  for (int64_t j = 0; j < seen; j += kColumns) {
    const int64_t n = std::min(kColumns, seen - j);
    p.scores(batch, i, m, j, n, block.scores.data());
    for (int64_t r = 0; r < m; ++r) {
      const T correction = rows.add_scores(r, block.scores.data() + r * n, n);
      if (correction != 1) multiply_row(out + r * p.width, p.width, correction);
    }
    p.product(m, p.width, n, {block.scores.data(), n, 1}, {p.v(batch, j), p.width, 1}, block.part.data());
    add_row(out, block.part.data(), m * p.width);
  }
  for (int64_t r = 0; r < m; ++r) {
    if (rows.sum[r] != 0) multiply_row(out + r * p.width, p.width, 1 / rows.sum[r]);
    logsumexp[r] = rows.most[r] + std::log(rows.sum[r]);
  }
}

// Adds the gradients of one batch's queries, keys and values to `dq`, `dk` and `dv`.
template <typename T>
void backward_batch(const Problem<T>& p, int64_t batch, const T* grad, const T* output, const T* logsumexp, T* dq,
                    T* dk, T* dv, Block<T>& block) {
  std::vector<T> delta(p.rows);
  for (int64_t r = 0; r < p.rows; ++r) delta[r] = dot_of(grad + r * p.width, output + r * p.width, p.width);
  for (int64_t i = 0; i < p.rows; i += kRows) {
    const int64_t m = std::min(kRows, p.rows - i), seen = p.columns_before(i + m);
    for (int64_t j = 0; j < seen; j += kColumns) {
      const int64_t n = std::min(kColumns, seen - j);
      T *weights = block.scores.data(), *grads = block.grads.data(), *part = block.part.data();
      p.scores(batch, i, m, j, n, weights);
      for (int64_t r = 0; r < m; ++r) {
        if (logsumexp[i + r] == -std::numeric_limits<T>::infinity())
          std::fill_n(weights + r * n, n, T(0));
        else
          exp_row(weights + r * n, n, logsumexp[i + r]);
      }
      const T* g = grad + i * p.width;
      p.product(n, p.width, m, {weights, 1, n}, {g, p.width, 1}, part);
      add_row(dv + j * p.width, part, n * p.width);
      p.product(m, n, p.width, {g, p.width, 1}, {p.v(batch, j), 1, p.width}, grads);
      for (int64_t r = 0; r < m; ++r) score_grad_row(grads + r * n, weights + r * n, n, delta[i + r], p.scale);
      p.product(m, p.depth, n, {grads, n, 1}, {p.k(batch, j), p.depth, 1}, part);
      add_row(dq + i * p.depth, part, m * p.depth);
      p.product(n, p.depth, m, {grads, 1, n}, {p.q(batch, i), p.depth, 1}, part);
      add_row(dk + j * p.depth, part, n * p.depth);
    }
  }
}

}  // namespace

void attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                       double scale, bool /*allow_cudnn*/, Tensor& output, Tensor& logsumexp) {
  AccumulateBuffer result(output), sums(logsumexp, accumulate_type(query.dtype()));
  with_real(accumulate_type(query.dtype()), [&]<typename T>(std::type_identity<T>) {
    const Problem<T> p(query, key, value, mask, is_causal, scale);
    const int64_t blocks = (p.rows + kRows - 1) / kRows;
    T *out = result.tensor().data_as<T>(), *logs = sums.tensor().data_as<T>();
    parallel_for(p.batches * blocks, 1, [&](int64_t begin, int64_t end) {
      Block<T> block(std::max(p.depth, p.width));
      for (int64_t b = begin; b < end; ++b) {
        const int64_t batch = b / blocks, i = b % blocks * kRows, row = batch * p.rows + i;
        forward_rows(p, batch, i, block, out + row * p.width, logs + row);
      }
    });
  });
  result.copy_to_output();
  sums.copy_to_output();
}

void attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale,
                        bool /*allow_cudnn*/, Tensor& query_grad, Tensor& key_grad, Tensor& value_grad) {
  AccumulateBuffer dq(query_grad), dk(key_grad), dv(value_grad);
  with_real(accumulate_type(query.dtype()), [&]<typename T>(std::type_identity<T>) {
    const Problem<T> p(query, key, value, mask, is_causal, scale);
    const Tensor g = contiguous_as(grad, p.query.dtype()), y = contiguous_as(output, p.query.dtype()),
                 logs = contiguous_as(logsumexp, p.query.dtype());
    for (Tensor* t : {&dq.tensor(), &dk.tensor(), &dv.tensor()}) std::fill_n(t->data_as<T>(), t->numel(), T(0));
    parallel_for(p.batches, 1, [&](int64_t begin, int64_t end) {
      Block<T> block(std::max(p.depth, p.width));
      for (int64_t b = begin; b < end; ++b) {
        backward_batch(p, b, g.data_as<T>() + b * p.rows * p.width, y.data_as<T>() + b * p.rows * p.width,
                       logs.data_as<T>() + b * p.rows, dq.tensor().data_as<T>() + b * p.rows * p.depth,
                       dk.tensor().data_as<T>() + b * p.columns * p.depth,
                       dv.tensor().data_as<T>() + b * p.columns * p.width, block);
      }
    });
  });
  dq.copy_to_output();
  dk.copy_to_output();
  dv.copy_to_output();
}

}  // namespace tt::cpu
