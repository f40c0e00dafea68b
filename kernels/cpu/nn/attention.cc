// Attention, computed in blocks of scores. The softmax of a row is corrected after each block (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022), so the full score matrix is
// never stored. 16-bit floats are computed in float32; if the CPU multiplies bfloat16, the operands of their products,
// among them the weights and the gradients of the scores, are bfloat16, as in PyTorch.
#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

#include "engine/device/parallel.h"
#include "engine/schema/half.h"
#include "kernels/common/math/vector_math.h"
#include "kernels/common/nn/attention_shape.h"
#include "kernels/cpu/blas/accumulate_product.h"
#include "kernels/cpu/blas/bfloat16_product.h"
#include "kernels/cpu/blas/openblas_call.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

// The vector type may be wider than the baseline's registers.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tt::cpu {
namespace {

constexpr int64_t kRows = 128;     // rows per block of scores; many, because every product packs its operands
constexpr int64_t kColumns = 256;  // columns per block: 128 KiB in float32, which fits the L2 cache
// Multiplications per thread, about 10 us.
constexpr double kGrain = 1 << 20;
// Below this number of multiplications, products of bfloat16 do not save the time to compile them: 0.5 ms per shape,
// two shapes per shape of blocks and five for gradients. The sizes of all sequences must be multiples of
// kBFloat16Multiple, so that sequences of many lengths have few shapes of blocks.
constexpr double kMinBFloat16Work = 1 << 22;
constexpr int64_t kBFloat16Multiple = 32;

template <typename T>
inline constexpr DType kDTypeOf = std::is_same_v<T, double>     ? DType::kFloat64
                                  : std::is_same_v<T, BFloat16> ? DType::kBFloat16
                                                                : DType::kFloat32;

template <typename T>
TT_CLONES void multiply_row(T* __restrict row, int64_t n, T by) {
  for (int64_t i = 0; i < n; ++i) row[i] *= by;
}
// to[i] = from[i] * by.
template <typename To, typename T>
TT_CLONES void convert_row(To* __restrict to, const T* __restrict from, int64_t n, T by) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i] * by);
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

// A vector of 64 bytes, in as many registers as the clone needs, and one at any address.
template <typename T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(64)));
  typedef T Memory __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
  static constexpr int64_t kCount = 64 / sizeof(T);
};

template <typename T>
[[gnu::always_inline]] inline typename Lanes<T>::Memory& lanes_at(T* p) {
  return *reinterpret_cast<typename Lanes<T>::Memory*>(p);
}
template <typename T>
[[gnu::always_inline]] inline const typename Lanes<T>::Memory& lanes_at(const T* p) {
  return *reinterpret_cast<const typename Lanes<T>::Memory*>(p);
}

// Folds n elements: step(total, i) adds elements [i, i + kCount) to a vector of totals, last(total, i) adds one element
// to a number, and join(total, other) adds a total, both vectors or numbers. Four vectors keep the vector units busy.
template <typename T, typename Step, typename Last, typename Join>
[[gnu::always_inline]] inline T fold(int64_t n, T start, Step step, Last last, Join join) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int64_t kCount = Lanes<T>::kCount;
  Vector totals[4] = {Vector{} + start, Vector{} + start, Vector{} + start, Vector{} + start};
  int64_t i = 0;
  for (; i + 4 * kCount <= n; i += 4 * kCount) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) step(totals[v], i + v * kCount);
  }
  for (; i + kCount <= n; i += kCount) step(totals[0], i);
  for (int v = 1; v < 4; ++v) join(totals[0], totals[v]);
  T lanes[kCount];
  lanes_at(lanes) = totals[0];
#pragma GCC unroll 4
  for (int64_t half = kCount / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int64_t lane = 0; lane < half; ++lane) join(lanes[lane], lanes[lane + half]);
  }
  for (; i < n; ++i) last(lanes[0], i);
  return lanes[0];
}
// row[i] = row[i] * scale, plus mask[i * step] if there is a mask. Returns the maximum; ignores NaN.
template <typename T>
TT_CLONES T scale_row(T* __restrict row, int64_t n, T scale, const T* mask, int64_t step) {
  if (mask) {
    for (int64_t i = 0; i < n; ++i) row[i] = row[i] * scale + mask[i * step];
    scale = 1;
  }
  const auto keep_larger = [](auto& most, const auto& x) { most = x > most ? x : most; };
  return fold(
      n, -std::numeric_limits<T>::infinity(),
      [&](auto& most, int64_t i) {
        const typename Lanes<T>::Vector scaled = lanes_at(row + i) * scale;
        lanes_at(row + i) = scaled;
        keep_larger(most, scaled);
      },
      [&](T& most, int64_t i) { keep_larger(most, row[i] *= scale); }, keep_larger);
}
template <typename T>
TT_CLONES T sum_of(const T* x, int64_t n) {
  return fold(
      n, T(0), [&](auto& sum, int64_t i) { sum += lanes_at(x + i); }, [&](T& sum, int64_t i) { sum += x[i]; },
      [](auto& sum, const auto& x) { sum += x; });
}
// The scalar product, in T.
template <typename T, typename In>
TT_CLONES T dot_of(const In* x, const In* y, int64_t n) {
  constexpr int kTotals = 256 / sizeof(T);
  T totals[kTotals] = {};
  const auto product = [&](int64_t i) { return static_cast<T>(x[i]) * static_cast<T>(y[i]); };
  int64_t i = 0;
  for (; i + kTotals <= n; i += kTotals) {
    for (int j = 0; j < kTotals; ++j) totals[j] += product(i + j);
  }
  for (int j = 0; i < n; ++i, ++j) totals[j] += product(i);
  T total = 0;
  for (const T each : totals) total += each;
  return total;
}

// A row-major operand of a product, whose rows are `step` elements apart; or its transpose.
template <typename In>
struct Operand {
  const In* data;
  int64_t step;
  bool transposed = false;
};

// c = a b, or c += a b if `add`, where c is m x n and contiguous. Uses the calling thread only.
template <typename In, typename T>
void product(int64_t m, int64_t n, int64_t k, Operand<In> a, Operand<In> b, T* c, bool add) {
  if constexpr (std::is_same_v<In, BFloat16>) {
    bfloat16_product({m, n, k, a.data, a.step, a.transposed, b.data, b.step, b.transposed, c, add});
  } else if (k == 0) {
    if (!add) std::fill_n(c, m * n, T(0));
  } else {  // the row-major c = a b is the column-major c^T = b^T a^T
    accumulate_product<T>(b.transposed ? 'T' : 'N', a.transposed ? 'T' : 'N', static_cast<int>(n), static_cast<int>(m),
                          static_cast<int>(k), 1, b.data, static_cast<int>(b.step), a.data, static_cast<int>(a.step),
                          add ? 1 : 0, c, static_cast<int>(n));
  }
}

// Converts a mask. It stays broadcast where it was: most masks are the same for all heads.
Tensor converted_mask(const Tensor& mask, DType dtype) {
  Geometry once{mask.sizes(), mask.strides(), mask.meta().offset};
  for (size_t d = 0; d < once.sizes.size(); ++d) {
    if (once.strides[d] == 0) once.sizes[d] = std::min<int64_t>(once.sizes[d], 1);
  }
  const Tensor result = contiguous_as(view_of(mask, once), dtype);
  Geometry whole{mask.sizes(), result.strides(), result.meta().offset};
  for (size_t d = 0; d < whole.sizes.size(); ++d) {
    if (once.strides[d] == 0) whole.strides[d] = 0;
  }
  return view_of(result, whole);
}

// The operands of one call: elements of type In, computed in T. They are contiguous except for the mask.
template <typename In, typename T>
struct Problem : AttentionShape {
  Tensor query, key, value, mask;
  T scale;

  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, bool is_causal, double factor)
      : AttentionShape(q, k, v, is_causal),
        query(contiguous_as(q, kDTypeOf<In>)),
        key(contiguous_as(k, kDTypeOf<In>)),
        value(contiguous_as(v, kDTypeOf<In>)),
        scale(static_cast<T>(factor)) {
    if (m) mask = m.dtype() == kDTypeOf<T> ? m : converted_mask(m, kDTypeOf<T>);
    check(std::max(depth, width) <= INT_MAX, "heads of ", std::max(depth, width), " elements are too large");
  }
  Operand<In> q(int64_t batch, int64_t row) const {
    return {query.template data_as<In>() + (batch * rows + row) * depth, depth};
  }
  Operand<In> k(int64_t batch, int64_t column) const {
    return {key.template data_as<In>() + (batch * columns + column) * depth, depth};
  }
  Operand<In> v(int64_t batch, int64_t column) const {
    return {value.template data_as<In>() + (batch * columns + column) * width, width};
  }
  // Of columns [j, j + n), the number that `row` attends to.
  int64_t visible(int64_t row, int64_t j, int64_t n) const {
    return causal ? std::clamp<int64_t>(row + 1 - j, 0, n) : n;
  }
  const T* mask_row(int64_t batch, int64_t row, int64_t column) const {
    if (!mask) return nullptr;
    return mask.template data_as<T>() + batch / heads * mask.stride(0) + batch % heads * mask.stride(1) +
           row * mask.stride(2) + column * mask.stride(3);
  }
  int64_t mask_step() const { return mask ? mask.stride(3) : 0; }
  // The multiplications of products of `m` rows with all columns, of `depths` elements in all.
  double work(int64_t m, int64_t depths) const {
    return static_cast<double>(m) * static_cast<double>(columns) * static_cast<double>(depths);
  }
  int64_t row_block() const { return std::min(rows, kRows); }
  int64_t column_block() const { return std::min(columns, kColumns); }
};

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
  // Processes a block's row of scores, whose maximum is `largest`: replaces them by unnormalised weights, and returns
  // the factor by which earlier results must be scaled.
  T add_scores(int64_t r, T* row, int64_t n, T largest) {
    T next = std::max(most[r], largest);
    if (next == -std::numeric_limits<T>::infinity()) {
      if (std::none_of(row, row + n, [](T x) { return std::isnan(x); })) {  // all scores so far are -inf: fully masked
        std::fill_n(row, n, T(0));
        return 1;
      }
      next = std::numeric_limits<T>::quiet_NaN();  // scale_row ignores NaN
    }
    const T correction = std::exp(most[r] - next);
    exp_row(row, n, next);
    sum[r] = sum[r] * correction + sum_of(row, n);
    most[r] = next;
    return correction;
  }
};

// Computes blocks of rows of the output. One thread's: it has buffers for a block.
template <typename In, typename T>
class Forward {
 public:
  explicit Forward(const Problem<In, T>& p)
      : p_(p),
        scores_(buffer<T>(p.row_block() * p.column_block())),
        sums_(buffer<T>(p.row_block() * p.width)),
        weights_(scores_.get(), p.row_block() * p.column_block()) {}

  // Rows [i, i + m) of a batch, where m is the rest of the rows or kRows.
  template <typename Out>
  void run(int64_t batch, int64_t i, Out* out, T* logsumexp) {
    const int64_t m = std::min(kRows, p_.rows - i), seen = p_.columns_before(i + m);
    Rows<T> rows(m);
    T* const sums = sums_.get();
    if (seen == 0) std::fill_n(sums, m * p_.width, T(0));
    for (int64_t j = 0; j < seen; j += kColumns) {
      const int64_t n = std::min(kColumns, seen - j);
      product(m, n, p_.depth, p_.q(batch, i), transpose(p_.k(batch, j)), scores_.get(), false);
      for (int64_t r = 0; r < m; ++r) {
        T* const row = scores_.get() + r * n;
        const int64_t visible = p_.visible(i + r, j, n);
        const T largest = scale_row(row, visible, p_.scale, p_.mask_row(batch, i + r, j), p_.mask_step());
        const T correction = rows.add_scores(r, row, visible, largest);
        std::fill(row + visible, row + n, T(0));
        if (correction != 1 && j > 0) multiply_row(sums + r * p_.width, p_.width, correction);
        weights_.convert(r * n, n);
      }
      product(m, p_.width, n, {weights_.data(), n}, p_.v(batch, j), sums, j > 0);
    }
    for (int64_t r = 0; r < m; ++r) {
      convert_row(out + r * p_.width, sums + r * p_.width, p_.width, rows.sum[r] != 0 ? 1 / rows.sum[r] : T(1));
      logsumexp[r] = rows.most[r] + std::log(rows.sum[r]);
    }
  }
  static Operand<In> transpose(Operand<In> x) { return {x.data, x.step, !x.transposed}; }

 private:
  const Problem<In, T>& p_;
  std::unique_ptr<T[]> scores_, sums_;
  Converted<In, T> weights_;
};

// Adds gradients of queries, keys and values, batch by batch. One thread's: it has buffers for a block.
template <typename In, typename T>
class Backward {
 public:
  explicit Backward(const Problem<In, T>& p)
      : p_(p),
        weights_(buffer<T>(p.row_block() * p.column_block())),
        grads_(buffer<T>(p.row_block() * p.column_block())),
        delta_(buffer<T>(p.rows)),
        low_weights_(weights_.get(), p.row_block() * p.column_block()),
        low_grads_(grads_.get(), p.row_block() * p.column_block()) {}

  void run(int64_t batch, const In* grad, const In* output, const T* logsumexp, T* dq, T* dk, T* dv) {
    for (int64_t r = 0; r < p_.rows; ++r) delta_[r] = dot_of<T>(grad + r * p_.width, output + r * p_.width, p_.width);
    for (int64_t i = 0; i < p_.rows; i += kRows) {
      const int64_t m = std::min(kRows, p_.rows - i), seen = p_.columns_before(i + m);
      const Operand<In> g{grad + i * p_.width, p_.width};
      for (int64_t j = 0; j < seen; j += kColumns) {
        const int64_t n = std::min(kColumns, seen - j);
        product(m, n, p_.depth, p_.q(batch, i), transpose(p_.k(batch, j)), weights_.get(), false);
        for (int64_t r = 0; r < m; ++r) compute_weights(batch, i + r, j, n, logsumexp[i + r], r * n);
        product(n, p_.width, m, {low_weights_.data(), n, true}, g, dv + j * p_.width, true);
        product(m, n, p_.width, g, transpose(p_.v(batch, j)), grads_.get(), false);
        for (int64_t r = 0; r < m; ++r) {
          score_grad_row(grads_.get() + r * n, weights_.get() + r * n, n, delta_[i + r], p_.scale);
          low_grads_.convert(r * n, n);
        }
        product(m, p_.depth, n, {low_grads_.data(), n}, p_.k(batch, j), dq + i * p_.depth, true);
        product(n, p_.depth, m, {low_grads_.data(), n, true}, p_.q(batch, i), dk + j * p_.depth, true);
      }
    }
  }

 private:
  static Operand<In> transpose(Operand<In> x) { return Forward<In, T>::transpose(x); }
  // Replaces the products of a row's query and keys [j, j + n), which begin at element `at`, by their weights.
  void compute_weights(int64_t batch, int64_t row, int64_t j, int64_t n, T logsumexp, int64_t at) {
    T* const weights = weights_.get() + at;
    const int64_t visible = logsumexp == -std::numeric_limits<T>::infinity() ? 0 : p_.visible(row, j, n);
    scale_row(weights, visible, p_.scale, p_.mask_row(batch, row, j), p_.mask_step());
    exp_row(weights, visible, logsumexp);
    std::fill(weights + visible, weights + n, T(0));
    low_weights_.convert(at, n);
  }

  const Problem<In, T>& p_;
  std::unique_ptr<T[]> weights_, grads_, delta_;
  Converted<In, T> low_weights_, low_grads_;
};

// Calls f.operator()<Out, In, T>() with the types of the result, of the operands of products, and of sums.
template <typename F>
void with_types(const AttentionShape& shape, DType dtype, F&& f) {
  const double work = static_cast<double>(shape.batches) * static_cast<double>(shape.rows) *
                      static_cast<double>(shape.columns) * static_cast<double>(shape.depth + shape.width);
  const bool low = work >= kMinBFloat16Work && shape.rows % kBFloat16Multiple == 0 &&
                   shape.columns % kBFloat16Multiple == 0 && has_bfloat16_products();
  if (dtype == DType::kFloat32) return f.template operator()<float, float, float>();
  if (dtype == DType::kFloat64) return f.template operator()<double, double, double>();
  if (dtype == DType::kFloat16) return f.template operator()<Half, float, float>();
  check(ErrorKind::kNotImplemented, dtype == DType::kBFloat16, "not implemented for ", name(dtype));
  if (low) return f.template operator()<BFloat16, BFloat16, float>();
  f.template operator()<BFloat16, float, float>();
}

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

}  // namespace

void attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                       double scale, bool /*allow_cudnn*/, Tensor& output, Tensor& logsumexp) {
  AccumulateBuffer sums(logsumexp, accumulate_type(query.dtype()));
  with_types({query, key, value, is_causal}, query.dtype(), [&]<typename Out, typename In, typename T>() {
    const Problem<In, T> p(query, key, value, mask, is_causal, scale);
    const int64_t blocks = (p.rows + kRows - 1) / kRows;
    Out* const out = output.data_as<Out>();
    T* const logs = sums.tensor().data_as<T>();
    parallel_products<T>(p.batches * blocks, p.work(p.row_block(), p.depth + p.width), [&](int64_t begin, int64_t end) {
      Forward<In, T> forward(p);
      for (int64_t b = begin; b < end; ++b) {
        const int64_t batch = b / blocks, i = b % blocks * kRows, row = batch * p.rows + i;
        forward.run(batch, i, out + row * p.width, logs + row);
      }
    });
  });
  sums.copy_to_output();
}

void attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale,
                        bool /*allow_cudnn*/, Tensor& query_grad, Tensor& key_grad, Tensor& value_grad) {
  AccumulateBuffer dq(query_grad), dk(key_grad), dv(value_grad);
  with_types({query, key, value, is_causal}, query.dtype(), [&]<typename Out, typename In, typename T>() {
    const Problem<In, T> p(query, key, value, mask, is_causal, scale);
    const Tensor g = contiguous_as(grad, kDTypeOf<In>), y = contiguous_as(output, kDTypeOf<In>),
                 logs = contiguous_as(logsumexp, kDTypeOf<T>);
    for (Tensor* t : {&dq.tensor(), &dk.tensor(), &dv.tensor()}) std::fill_n(t->data_as<T>(), t->numel(), T(0));
    parallel_products<T>(p.batches, p.work(p.rows, 3 * p.depth + 2 * p.width), [&](int64_t begin, int64_t end) {
      Backward<In, T> backward(p);
      for (int64_t b = begin; b < end; ++b) {
        backward.run(b, g.data_as<In>() + b * p.rows * p.width, y.data_as<In>() + b * p.rows * p.width,
                     logs.data_as<T>() + b * p.rows, dq.tensor().data_as<T>() + b * p.rows * p.depth,
                     dk.tensor().data_as<T>() + b * p.columns * p.depth,
                     dv.tensor().data_as<T>() + b * p.columns * p.width);
      }
    });
  });
  dq.copy_to_output();
  dk.copy_to_output();
  dv.copy_to_output();
}

}  // namespace tt::cpu
