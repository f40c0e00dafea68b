// Attention over batches of matrices of the same sizes, computed by the loops of attention_blocks.h.
#include <algorithm>
#include <climits>
#include <optional>

#include "kernels/common/nn/attention_shape.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nn/attention_blocks.h"

namespace tt::cpu {
namespace {

using namespace attention_blocks;

// Below this number of multiplications, products of bfloat16 do not save the time to compile them: 0.5 ms per shape,
// two shapes per shape of blocks and five for gradients. The sizes of all sequences must be multiples of
// kBFloat16Multiple, so that sequences of many lengths have few shapes of blocks.
constexpr double kMinBFloat16Work = 1 << 22;
constexpr int64_t kBFloat16Multiple = 32;

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

// A tensor (batches, heads, rows, elements) whose rows are contiguous: a part of a cache is not copied.
Tensor with_contiguous_rows(const Tensor& t, DType dtype) {
  const bool has_rows =
      t.dtype() == dtype && t.dim() == 4 && t.stride(3) == 1 && t.stride(2) >= t.size(3) && t.stride(2) <= INT_MAX;
  return has_rows ? t : contiguous_as(t, dtype);
}

// The operands of one call: elements of type In, computed in T. Their rows are contiguous, and queries are.
template <typename In, typename T>
struct Problem : AttentionShape {
  Tensor query, key, value, mask;
  T scale;

  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, bool is_causal, double factor)
      : AttentionShape(q, k, v, is_causal),
        query(contiguous_as(q, kDTypeOf<In>)),
        key(with_contiguous_rows(k, kDTypeOf<In>)),
        value(with_contiguous_rows(v, kDTypeOf<In>)),
        scale(static_cast<T>(factor)) {
    if (m) mask = m.dtype() == kDTypeOf<T> || m.dtype() == DType::kBool ? m : converted_mask(m, kDTypeOf<T>);
    check(std::max(depth, width) <= INT_MAX, "heads of ", std::max(depth, width), " elements are too large");
    check_countable(columns, depth + width);
  }
  Operand<In> q(int64_t batch, int64_t row) const {
    return {query.template data_as<In>() + (batch * rows + row) * depth, depth};
  }
  Operand<In> k(int64_t batch, int64_t column) const { return row_of(key, batch, column); }
  Operand<In> v(int64_t batch, int64_t column) const { return row_of(value, batch, column); }
  Operand<In> row_of(const Tensor& t, int64_t batch, int64_t column) const {
    const int64_t at = batch / heads * t.stride(0) + batch % heads * t.stride(1) + column * t.stride(2);
    return {t.template data_as<In>() + at, t.stride(2)};
  }
  // Of columns [j, j + n), the number that `row` attends to.
  int64_t visible(int64_t row, int64_t j, int64_t n) const {
    return causal ? std::clamp<int64_t>(row + 1 - j, 0, n) : n;
  }
  MaskRow<T> mask_row(int64_t batch, int64_t row, int64_t column) const {
    if (!mask) return {};
    const int64_t at = batch / heads * mask.stride(0) + batch % heads * mask.stride(1) + row * mask.stride(2) +
                       column * mask.stride(3);
    if (mask.dtype() == DType::kBool) return {nullptr, mask.template data_as<bool>() + at, mask.stride(3)};
    return {mask.template data_as<T>() + at, nullptr, mask.stride(3)};
  }
  // The multiplications of products of `m` rows with all columns, of `depths` elements in all.
  double work(int64_t m, int64_t depths) const {
    return static_cast<double>(m) * static_cast<double>(columns) * static_cast<double>(depths);
  }
  int64_t row_block() const { return std::min(rows, kRows); }
  int64_t column_block() const { return std::min(columns, kColumns); }
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
      Forward<In, T, Problem<In, T>> forward(p);
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
      Backward<In, T, Problem<In, T>> backward(p);
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
