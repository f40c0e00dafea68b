// scaled_mm: products of 8-bit matrices, computed in float32.
#include <algorithm>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "kernels/common/linalg/product_chain.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

Tensor widened(const Tensor& t) {
  Tensor wide = empty(t.sizes(), DType::kFloat32, t.device());
  copy(t, wide);
  return wide;
}

constexpr int64_t kBlock = 128, kSmallBlock = 32;  // elements of the common dimension that share a scale
constexpr int64_t kGrain = 1 << 14;                // elements per task

// A matrix with a scale per row (or per 128 rows) and block of columns, or the transpose of such a matrix.
class BlockScales {
 public:
  // `lines` is the dimension of the scales that is not that of blocks, for `count` lines of the matrix.
  BlockScales(const Tensor& scales, int lines, int64_t count)
      : data_(scales.data_as<const float>()),
        line_stride_(scales.stride(lines)),
        block_stride_(scales.stride(1 - lines)),
        shared_(scales.size(lines) == count ? 1 : kBlock) {}
  float at(int64_t line, int64_t block) const { return data_[line / shared_ * line_stride_ + block * block_stride_]; }

 private:
  const float* data_;
  int64_t line_stride_, block_stride_, shared_;
};

// Columns (dim 1) or rows (dim 0) of a matrix from `start` on.
Tensor part_of(const Tensor& matrix, int dim, int64_t start, int64_t length) {
  Geometry geometry{matrix.sizes(), matrix.strides(), matrix->offset + start * matrix.stride(dim), true};
  geometry.sizes[dim] = length;
  return view_of(matrix, geometry);
}

// product = the sum over blocks of the common dimension of (a's block @ b's block) * scale_a * scale_b, in float32.
void multiply_blocks(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b, Tensor& product) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1), blocks = scale_a.size(1);
  const int64_t block = blocks == k / kBlock + (k % kBlock != 0) ? kBlock : kSmallBlock;
  const BlockScales rows(scale_a, 0, m), columns(scale_b, 1, n);
  Tensor term = empty(product.sizes(), DType::kFloat32, product.device());
  float* const sums = product.data_as<float>();
  std::fill_n(sums, product.numel(), 0.0F);
  for (int64_t i = 0; i < blocks && !cancel_requested(); ++i) {
    const int64_t start = i * block, length = std::min(block, k - start);
    matmul(part_of(a, 1, start, length), part_of(b, 0, start, length), term);
    const float* const terms = term.data_as<const float>();
    parallel_for(m, std::max<int64_t>(kGrain / std::max<int64_t>(n, 1), 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float factor = rows.at(row, i);
        for (int64_t column = 0; column < n; ++column)
          sums[row * n + column] += terms[row * n + column] * (factor * columns.at(column, i));
      }
    });
  }
}

// Whether the scales are those of blocks, not one per matrix, or one per row and column.
bool are_of_blocks(const Tensor& scale_a, const Tensor& scale_b, const Tensor& out) {
  if (scale_a.numel() == 1 && scale_b.numel() == 1) return false;
  const bool lines = scale_a.size(0) == out.size(0) && scale_b.size(1) == out.size(1);
  return !lines || scale_a.size(1) != 1;
}

}  // namespace

void scaled_mm(const Tensor& input, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
               const Tensor& bias, const Tensor& scale_result, std::optional<DType>, bool, Tensor& out) {
  if (out.numel() == 0) return;  // the common dimension may be of any size then
  Tensor product = empty(out.sizes(), DType::kFloat32, out.device());
  const Tensor last_scale = is_float8(out.dtype()) ? scale_result : Tensor();
  if (are_of_blocks(scale_a, scale_b, out)) {
    multiply_blocks(widened(input), widened(mat2), scale_a, scale_b, product);
    return finish_block_scaled_mm(&run_chain, product, bias, last_scale, out);
  }
  matmul(widened(input), widened(mat2), product);
  finish_scaled_mm(&run_chain, product, scale_a, scale_b, bias, last_scale, out);
}

}  // namespace tt::cpu
