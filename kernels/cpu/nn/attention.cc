// Attention over batches of matrices of the same sizes, computed by the loops of attention_blocks.h.
#include <algorithm>
#include <climits>
#include <limits>
#include <optional>

#include "engine/schema/layout.h"
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

// Row r of batch b of a tensor (batches, heads, rows, elements) whose rows are contiguous.
template <typename In>
Operand<In> row_of(const Tensor& t, int64_t b, int64_t r) {
  const int64_t heads = t.size(1);
  return {t.data_as<In>() + b / heads * t.stride(0) + b % heads * t.stride(1) + r * t.stride(2), t.stride(2)};
}

// A gradient to add to, in the accumulate_type(): `out` itself if its rows are contiguous, else a new tensor that
// copy_to_output() converts into `out`, which must outlive this object.
class GradientBuffer {
 public:
  explicit GradientBuffer(const Tensor& out) : out_(out) {
    const DType dtype = accumulate_type(out.dtype());
    const bool is_usable = out.dtype() == dtype && is_dense(out.sizes(), out.strides()) && out.stride(3) == 1 &&
                           out.stride(2) >= out.size(3) && out.stride(2) <= INT_MAX;
    buffer_ = is_usable ? out : empty(out.sizes(), dtype, out.device());
  }
  template <typename T>
  void zero() const {
    std::fill_n(buffer_.data_as<T>(), buffer_.numel(), T(0));
  }
  template <typename T>
  Result<T> batch(int64_t b) const {
    const int64_t heads = buffer_.size(1);
    const int64_t at = b / heads * buffer_.stride(0) + b % heads * buffer_.stride(1);
    return {buffer_.data_as<T>() + at, buffer_.stride(2)};
  }
  void copy_to_output() const {
    if (!buffer_.same(out_)) copy(buffer_, out_);
  }

 private:
  const Tensor& out_;
  Tensor buffer_;
};

// The operands of one call: elements of type In, computed in T. Their rows are contiguous.
template <typename In, typename T>
struct Problem : AttentionShape {
  Tensor query, key, value, mask;
  T scale, replacement;
  void (*round)(T* row, int64_t n) = nullptr;

  Problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, bool is_causal, double factor,
          std::optional<double> excluded)
      : AttentionShape(q, k, v, is_causal),
        query(with_contiguous_rows(q, kDTypeOf<In>)),
        key(with_contiguous_rows(k, kDTypeOf<In>)),
        value(with_contiguous_rows(v, kDTypeOf<In>)),
        scale(static_cast<T>(factor)),
        replacement(static_cast<T>(excluded.value_or(-HUGE_VAL))) {
    if (m) mask = m.dtype() == kDTypeOf<T> || m.dtype() == DType::kBool ? m : converted_mask(m, kDTypeOf<T>);
    check(!excluded || (m && m.dtype() == DType::kBool), "expected a bool mask for excluded");
    check(std::max(depth, width) <= INT_MAX, "heads of ", std::max(depth, width), " elements are too large");
    check_countable(columns, depth + width);
  }
  Operand<In> q(int64_t batch, int64_t row) const { return row_of<In>(query, batch, row); }
  Operand<In> k(int64_t batch, int64_t column) const { return row_of<In>(key, batch, column); }
  Operand<In> v(int64_t batch, int64_t column) const { return row_of<In>(value, batch, column); }
  // Of columns [j, j + n), the number that `row` attends to.
  int64_t visible(int64_t row, int64_t j, int64_t n) const {
    return causal ? std::clamp<int64_t>(row + 1 - j, 0, n) : n;
  }
  bool is_masked() const { return static_cast<bool>(mask); }
  MaskRow<T> mask_row(int64_t batch, int64_t row, int64_t column) const {
    if (!mask) return {};
    const int64_t at = batch / heads * mask.stride(0) + batch % heads * mask.stride(1) + row * mask.stride(2) +
                       column * mask.stride(3);
    if (mask.dtype() == DType::kBool) return {nullptr, mask.template data_as<bool>() + at, mask.stride(3), replacement};
    return {mask.template data_as<T>() + at, nullptr, mask.stride(3), replacement, round};
  }
  // Rounds sums of scores and the mask to Out.
  template <typename Out>
  void round_sums() {
    check(mask && mask.dtype() != DType::kBool, "expected a mask that is added for rounds");
    round = &round_row<Out, T>;
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

// Replaces the results of rows whose scores are all -inf by NaN.
template <typename Out, typename T>
void fill_empty_rows(int64_t rows, int64_t width, Out* out, T* logsumexp) {
  for (int64_t r = 0; r < rows; ++r) {
    if (logsumexp[r] != -std::numeric_limits<T>::infinity()) continue;
    logsumexp[r] = std::numeric_limits<T>::quiet_NaN();
    std::fill_n(out + r * width, width, static_cast<Out>(logsumexp[r]));
  }
}

}  // namespace

void attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                       double scale, bool /*allow_cudnn*/, std::optional<double> excluded, bool rounds,
                       bool empty_rows_are_nan, Tensor& output, Tensor& logsumexp) {
  AccumulateBuffer sums(logsumexp, accumulate_type(query.dtype()));
  with_types({query, key, value, is_causal}, query.dtype(), [&]<typename Out, typename In, typename T>() {
    Problem<In, T> p(query, key, value, mask, is_causal, scale, excluded);
    if (rounds) p.template round_sums<Out>();
    const int64_t blocks = (p.rows + kRows - 1) / kRows;
    Out* const out = output.data_as<Out>();
    T* const logs = sums.tensor().data_as<T>();
    parallel_products<T>(p.batches * blocks, p.work(p.row_block(), p.depth + p.width), [&](int64_t begin, int64_t end) {
      Forward<In, T, Problem<In, T>> forward(p);
      for (int64_t b = begin; b < end; ++b) {
        const int64_t batch = b / blocks, i = b % blocks * kRows, row = batch * p.rows + i;
        forward.run(batch, i, out + row * p.width, logs + row);
        if (empty_rows_are_nan && p.columns > 0) {
          fill_empty_rows(std::min(kRows, p.rows - i), p.width, out + row * p.width, logs + row);
        }
      }
    });
  });
  sums.copy_to_output();
}

void attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal, double scale,
                        bool /*allow_cudnn*/, std::optional<double> excluded, bool rounds, Tensor& query_grad,
                        Tensor& key_grad, Tensor& value_grad) {
  const GradientBuffer dq(query_grad), dk(key_grad), dv(value_grad);
  with_types({query, key, value, is_causal}, query.dtype(), [&]<typename Out, typename In, typename T>() {
    Problem<In, T> p(query, key, value, mask, is_causal, scale, excluded);
    if (rounds) p.template round_sums<Out>();
    const Tensor g = with_contiguous_rows(grad, kDTypeOf<In>), y = with_contiguous_rows(output, kDTypeOf<In>),
                 logs = contiguous_as(logsumexp, kDTypeOf<T>);
    const bool adds = !Backward<In, T, Problem<In, T>>::is_one_block(p);
    for (const GradientBuffer* each : {&dq, &dk, &dv}) {
      if (adds) each->zero<T>();
    }
    parallel_products<T>(p.batches, p.work(p.rows, 3 * p.depth + 2 * p.width), [&](int64_t begin, int64_t end) {
      Backward<In, T, Problem<In, T>> backward(p);
      for (int64_t b = begin; b < end; ++b) {
        backward.run(b, row_of<In>(g, b, 0), row_of<In>(y, b, 0), logs.data_as<T>() + b * p.rows, dq.batch<T>(b),
                     dk.batch<T>(b), dv.batch<T>(b), adds);
      }
    });
  });
  dq.copy_to_output();
  dk.copy_to_output();
  dv.copy_to_output();
}

}  // namespace tt::cpu
