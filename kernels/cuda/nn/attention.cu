// Attention, computed one block of scores at a time. A block contains the scores of a range of queries for all keys
// visible to them, so products are large and the full score matrix is never stored (after Rabe and Staats,
// "Self-attention does not need O(n^2) memory", 2021). cuBLASLt computes the products. Scores of 16-bit floats, and
// sums over blocks, are float32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/session/context.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/common/nn/attention_shape.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/nn/library_attention.h"
#include "kernels/cuda/runtime/blas.h"

namespace tt::cuda {
namespace {

constexpr int64_t kRows = 256;                   // maximum rows per block; enough to fill the tensor cores
constexpr int64_t kMinRows = 16;                 // minimum rows per block, for any number of columns
constexpr int64_t kElements = int64_t{1} << 24;  // maximum scores per block, unless kMinRows requires more

// A block of scores: rows [row, row + rows) and columns [0, columns), in batches [batch, batch + batches).
struct Block {
  int64_t batch, batches, row, rows, columns;
  int64_t scores() const { return batches * rows * columns; }
};

// The operands of one call, contiguous except the mask.
struct Problem : AttentionShape {
  Tensor query, key, value, mask;
  double scale;

  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, bool is_causal, double factor)
      : AttentionShape(q, k, v, is_causal),
        query(contiguous(q)),
        key(contiguous(k)),
        value(contiguous(v)),
        mask(m),
        scale(factor) {}

  DType dtype() const { return query.dtype(); }
  int64_t block_rows() const {
    return std::min(rows, std::clamp<int64_t>(kElements / std::max<int64_t>(columns, 1), kMinRows, kRows));
  }
  int64_t block_batches() const {
    return std::clamp<int64_t>(kElements / std::max<int64_t>(block_rows() * columns, 1), 1,
                               std::max<int64_t>(batches, 1));
  }
  // Returns a tensor large enough for the scores of any block.
  Tensor block_of(DType dtype) const {
    return empty(Sizes{block_batches() * block_rows() * columns}, dtype, query.device());
  }
  template <typename F>
  void for_each_block(F f) const {
    for (int64_t b = 0; b < batches; b += block_batches()) {
      for (int64_t i = 0; i < rows; i += block_rows()) {
        const int64_t m = std::min(block_rows(), rows - i);
        f(Block{b, std::min(block_batches(), batches - b), i, m, columns_before(i + m)});
      }
    }
  }
};

// The matrices of a contiguous tensor, one per batch, row-major unless `is_transposed`. `offset` is the position of the
// first matrix. All three numbers are in elements.
struct BatchedMatrix {
  const Tensor& tensor;
  int64_t offset, row_stride, batch_stride;
  bool is_transposed = false;

  Matrix matrix() const {
    const char* data =
        static_cast<const char*>(tensor.data()) + offset * static_cast<int64_t>(item_size(tensor.dtype()));
    return is_transposed ? Matrix{data, 1, row_stride} : Matrix{data, row_stride, 1};
  }
};
// The block's rows of a tensor with one row per query.
BatchedMatrix rows_of(const Tensor& t, const Block& at) {
  const int64_t n = t.size(3), batch_stride = t.size(2) * n;
  return {t, at.batch * batch_stride + at.row * n, n, batch_stride};
}
// The rows for the block's columns of a tensor with one row per key.
BatchedMatrix to_column_major(const Tensor& t, const Block& at) {
  const int64_t n = t.size(3), batch_stride = t.size(2) * n;
  return {t, at.batch * batch_stride, n, batch_stride};
}
BatchedMatrix scores_of(const Tensor& t, const Block& at) { return {t, 0, at.columns, at.rows * at.columns}; }
BatchedMatrix transposed(BatchedMatrix x) {
  x.is_transposed = !x.is_transposed;
  return x;
}

// Computes c (m x n) = a b, or adds a b to c, for each of the block's batches.
void multiply(const Block& at, int64_t m, int64_t n, int64_t k, const BatchedMatrix& a, const BatchedMatrix& b,
              const BatchedMatrix& c, bool accumulate = false) {
  if (n == 0) return;
  if (k == 0) {  // queries and keys without elements: all scores are 0
    return queue_of(c.tensor).fill(c.tensor.data(), 0, at.scores() * item_size(c.tensor.dtype()));
  }
  BlasProduct product{a.tensor.dtype(),
                      m,
                      n,
                      k,
                      *leading(a.matrix(), m, k),
                      *leading(b.matrix(), k, n),
                      const_cast<void*>(c.matrix().data)};
  product.batch = at.batches;
  product.a_step = a.batch_stride;
  product.b_step = b.batch_stride;
  product.c_step = c.batch_stride;
  product.wide = c.tensor.dtype() != a.tensor.dtype();
  product.accumulate = accumulate;
  product.tf32 = Context::current().allow_tf32;
  blas().multiply(queue_of(c.tensor), product);
}

struct Larger {
  template <typename C>
  TT_FUNCTION C operator()(C a, C b) const {
    return b > a || b != b ? b : a;  // NaN counts as the largest, so a row with NaN differs from a fully masked one
  }
};

// Computes a block's scores from the products of queries and keys: scales them, adds the mask and, if `causal`,
// excludes future keys.
template <typename T>
struct Scores {
  using C = AccumulateType<T>;
  Block at;
  const C* products;
  const T* mask;
  int64_t heads, steps[4];
  bool causal;
  C scale;
  C weight_if_empty = 0;  // the weights of rows whose scores are all -inf

  Scores(const Problem& p, const Block& block, const Tensor& scores)
      : at(block),
        products(scores.data_as<C>()),
        mask(p.mask ? p.mask.data_as<T>() : nullptr),
        heads(p.heads),
        steps{},
        causal(p.causal),
        scale(static_cast<C>(p.scale)) {
    for (int d = 0; d < 4 && mask; ++d) steps[d] = p.mask.stride(d);
  }
  TT_FUNCTION int64_t batch(int64_t row) const { return at.batch + row / at.rows; }
  TT_FUNCTION int64_t query(int64_t row) const { return at.row + row % at.rows; }
  // `row` is an index among the rows of all batches of the block.
  TT_FUNCTION C operator()(int64_t row, int64_t column) const {
    if (causal && column > query(row)) return -std::numeric_limits<C>::infinity();
    const C score = products[row * at.columns + column] * scale;
    if (!mask) return score;
    return score + convert<C>(mask[batch(row) / heads * steps[0] + batch(row) % heads * steps[1] +
                                   query(row) * steps[2] + column * steps[3]]);
  }
};

// Stores the softmax of a row of scores in `weights`, and returns the logarithm of the row's sum of exponentials.
// `weights` may be the same memory as the scores.
template <typename T>
TT_DEVICE AccumulateType<T> store_softmax(Group& group, const Scores<T>& score, int64_t row, T* weights) {
  using C = AccumulateType<T>;
  const int64_t n = score.at.columns;
  C most = -std::numeric_limits<C>::infinity(), sum = 0;
  for (int64_t j = group.rank(); j < n; j += group.size()) most = Larger()(most, score(row, j));
  most = group.reduce(most, Larger());
  const bool blind = most == -std::numeric_limits<C>::infinity();
  for (int64_t j = group.rank(); j < n && !blind; j += group.size()) sum += math::exp(score(row, j) - most);
  sum = group.reduce(sum, Add());
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    weights[row * n + j] = convert<T>(blind ? score.weight_if_empty : math::exp(score(row, j) - most) / sum);
  }
  return most + math::log(sum) + (blind ? score.weight_if_empty : C(0));
}

// Stores the softmax of all rows in `weights`, and the logarithms of their sums of exponentials in `logsumexp`.
template <typename T>
void softmax_rows(const Queue& queue, const Scores<T>& score, T* weights, int64_t rows, AccumulateType<T>* logsumexp) {
  for_each_group(queue, score.at.batches * score.at.rows, score.at.columns, [=] TT_DEVICE(Group & group) {
    const int64_t row = group.index();
    const AccumulateType<T> log_sum = store_softmax(group, score, row, weights);
    if (group.rank() == 0) logsumexp[score.batch(row) * rows + score.query(row)] = log_sum;
  });
}

// Whether a logarithm is too large to determine the weights of a row: where a mask of large numbers excludes all keys,
// for example, the logarithm of the sum is less than the rounding of the largest score.
template <typename C>
TT_DEVICE bool is_inaccurate(C log_sum) {
  constexpr C kAccuracy = C(4e-6);
  return math::isfinite(log_sum) && math::abs(log_sum) * std::numeric_limits<C>::epsilon() > kAccuracy;
}

// Recomputes the weights of softmax_rows(), from the saved logarithms where they are accurate.
template <typename T>
void recompute_softmax(const Queue& queue, const Scores<T>& score, T* weights, int64_t rows,
                       const AccumulateType<T>* logsumexp) {
  using C = AccumulateType<T>;
  const int64_t n = score.at.columns;
  for_each_group(queue, score.at.batches * score.at.rows, n, [=] TT_DEVICE(Group & group) {
    const int64_t row = group.index();
    const C log_sum = logsumexp[score.batch(row) * rows + score.query(row)];
    if (is_inaccurate(log_sum)) {
      store_softmax(group, score, row, weights);
      return;
    }
    const bool blind = log_sum == -std::numeric_limits<C>::infinity();
    for (int64_t j = group.rank(); j < n; j += group.size()) {
      weights[row * n + j] = convert<T>(blind ? C(0) : math::exp(score(row, j) - log_sum));
    }
  });
}

// Computes the gradients of the unscaled scores from the gradients of the weights. The row sum in softmax's gradient
// equals the sum of output * grad. `score_grads` may be the same memory as `weight_grads`.
template <typename T>
void differentiate(const Queue& queue, const Problem& p, const Block& at, const T* weights,
                   const AccumulateType<T>* weight_grads, const T* grad, const T* output, T* score_grads) {
  using C = AccumulateType<T>;
  const int64_t n = at.columns, width = p.width, rows = p.rows;
  const C scale = static_cast<C>(p.scale);
  for_each_group(queue, at.batches * at.rows, n, [=] TT_DEVICE(Group & group) {
    const int64_t row = group.index();
    const int64_t from = ((at.batch + row / at.rows) * rows + at.row + row % at.rows) * width;
    C delta = 0;
    for (int64_t j = group.rank(); j < width; j += group.size()) {
      delta += convert<C>(grad[from + j]) * convert<C>(output[from + j]);
    }
    delta = group.reduce(delta, Add());
    for (int64_t j = row * n + group.rank(); j < (row + 1) * n; j += group.size()) {
      score_grads[j] = convert<T>(convert<C>(weights[j]) * (weight_grads[j] - delta) * scale);
    }
  });
}

template <typename T>
void forward(const Problem& p, Tensor& output, Tensor& logsumexp, bool empty_rows_are_nan) {
  const Queue queue = queue_of(output);
  const Tensor scores = p.block_of(accumulate_type(p.dtype()));
  const Tensor weights = scores.dtype() == p.dtype() ? scores : p.block_of(p.dtype());
  p.for_each_block([&](const Block& at) {
    multiply(at, at.rows, at.columns, p.depth, rows_of(p.query, at), transposed(to_column_major(p.key, at)),
             scores_of(scores, at));
    Scores<T> score(p, at, scores);
    if (empty_rows_are_nan) score.weight_if_empty = std::numeric_limits<AccumulateType<T>>::quiet_NaN();
    softmax_rows(queue, score, weights.data_as<T>(), p.rows, logsumexp.data_as<AccumulateType<T>>());
    multiply(at, at.rows, p.width, at.columns, scores_of(weights, at), to_column_major(p.value, at),
             rows_of(output, at));
  });
}

template <typename T>
void backward(const Problem& p, const Tensor& grad, const Tensor& output, const Tensor& logsumexp, Tensor& dq,
              const Tensor& dk, const Tensor& dv) {
  const Queue queue = queue_of(grad);
  const Tensor scores = p.block_of(accumulate_type(p.dtype())), weight_grads = p.block_of(accumulate_type(p.dtype()));
  const bool wide = scores.dtype() == p.dtype();
  const Tensor weights = wide ? scores : p.block_of(p.dtype());
  const Tensor score_grads = wide ? weight_grads : p.block_of(p.dtype());
  p.for_each_block([&](const Block& at) {
    const BatchedMatrix q = rows_of(p.query, at), k = to_column_major(p.key, at), g = rows_of(grad, at);
    multiply(at, at.rows, at.columns, p.depth, q, transposed(k), scores_of(scores, at));
    recompute_softmax(queue, Scores<T>(p, at, scores), weights.data_as<T>(), p.rows,
                      logsumexp.data_as<AccumulateType<T>>());
    multiply(at, at.columns, p.width, at.rows, transposed(scores_of(weights, at)), g, to_column_major(dv, at), true);
    multiply(at, at.rows, at.columns, p.width, g, transposed(to_column_major(p.value, at)),
             scores_of(weight_grads, at));
    differentiate(queue, p, at, weights.data_as<T>(), weight_grads.data_as<AccumulateType<T>>(), grad.data_as<T>(),
                  output.data_as<T>(), score_grads.data_as<T>());
    multiply(at, at.rows, p.depth, at.columns, scores_of(score_grads, at), k, rows_of(dq, at));
    multiply(at, at.columns, p.depth, at.rows, transposed(scores_of(score_grads, at)), q, to_column_major(dk, at),
             true);
  });
}

// Only the CPU's kernels select scores, and round sums with masks.
void check_added(const Tensor& mask, std::optional<double> excluded, bool rounds) {
  check(ErrorKind::kNotImplemented, !mask || mask.dtype() != DType::kBool,
        "expected a mask that is added on a GPU, got a bool mask");
  check(ErrorKind::kNotImplemented, !excluded && !rounds, "expected neither excluded nor rounds on a GPU");
}

}  // namespace

void attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                       double scale, bool allow_cudnn, std::optional<double> excluded, bool rounds,
                       bool empty_rows_are_nan, Tensor& output, Tensor& logsumexp) {
  check_added(mask, excluded, rounds);
  if (logsumexp.numel() == 0) return;
  if (allow_cudnn && !empty_rows_are_nan &&
      attend_by_library(query, key, value, mask, is_causal, scale, output, logsumexp)) {
    return;
  }
  const Problem p(query, key, value, mask, is_causal, scale);
  if (p.columns == 0) {
    fill_zeros(queue_of(output), output);
    return fill_with(logsumexp, Scalar(-std::numeric_limits<double>::infinity()));
  }
  with_floating(p.dtype(),
                [&]<typename T>(std::type_identity<T>) { forward<T>(p, output, logsumexp, empty_rows_are_nan); });
}

void attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale,
                        bool allow_cudnn, std::optional<double> excluded, bool rounds, Tensor& query_grad,
                        Tensor& key_grad, Tensor& value_grad) {
  check_added(mask, excluded, rounds);
  if (allow_cudnn && differentiate_by_library(grad, query, key, value, mask, output, logsumexp, is_causal, scale,
                                              query_grad, key_grad, value_grad)) {
    return;
  }
  const Problem p(query, key, value, mask, is_causal, scale);
  const AccumulateBuffer dk(key_grad), dv(value_grad);
  for (const AccumulateBuffer* sums : {&dk, &dv}) fill_zeros(queue_of(sums->tensor()), sums->tensor());
  if (p.columns == 0) {
    fill_zeros(queue_of(query_grad), query_grad);
  } else if (logsumexp.numel() > 0) {
    with_floating(p.dtype(), [&]<typename T>(std::type_identity<T>) {
      backward<T>(p, contiguous(grad), contiguous(output), contiguous(logsumexp), query_grad, dk.tensor(), dv.tensor());
    });
  }
  dk.copy_to_output();
  dv.copy_to_output();
}

}  // namespace tt::cuda
