// MatmulOperand: one operand of a matrix product in its tensor's layout; checks and shapes shared by all backends.
#pragma once

#include <optional>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// A matrix in memory; strides in elements.
struct Matrix {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
};

// Returns `x` in the form that BLAS libraries require: one stride is 1, and the other is at least the row (or column)
// length. The stride of a dimension of size 1 is unused and is adjusted to fit. Returns nullopt for other layouts.
inline std::optional<Matrix> leading(const Matrix& x, int64_t rows, int64_t columns) {
  const int64_t row = rows == 1 ? columns * x.column_stride : x.row_stride;
  const int64_t column = columns == 1 ? 1 : x.column_stride;
  if (column == 1 && row >= columns) return Matrix{x.data, row, 1};
  const int64_t step = columns == 1 ? rows : x.column_stride;
  if (x.row_stride == 1 && step >= rows) return Matrix{x.data, 1, step};
  return std::nullopt;
}

// A batch of matrices: the last two dimensions of a tensor, and the batch dimensions before them. The tensor must
// outlive the MatmulOperand.
struct MatmulOperand {
  int64_t rows, columns;
  Matrix matrix;
  SizesView batch, batch_strides;

  // A vector is a row on the left and a column on the right.
  MatmulOperand(const Tensor& t, bool left) {
    if (t.dim() == 1) {
      rows = left ? 1 : t.size(0);
      columns = left ? t.size(0) : 1;
      matrix = left ? Matrix{t.data(), t.size(0) * t.stride(0), t.stride(0)} : Matrix{t.data(), t.stride(0), 1};
      return;
    }
    rows = t.size(-2);
    columns = t.size(-1);
    matrix = {t.data(), t.stride(-2), t.stride(-1)};
    batch = SizesView(t.sizes()).first(t.dim() - 2);
    batch_strides = SizesView(t.strides()).first(t.dim() - 2);
  }

  // Merges the batch into the rows if the layout permits, so that one large product replaces many. Returns whether the
  // batch was merged.
  bool fold() {
    int64_t step = matrix.row_stride * rows, folded = rows;
    for (size_t i = batch.size(); i-- > 0;) {
      if (batch[i] != 1 && batch_strides[i] != step && folded != 1) return false;
      if (folded == 1 && batch[i] != 1) matrix.row_stride = batch_strides[i];
      folded *= batch[i];
      step = matrix.row_stride * folded;
    }
    rows = folded;
    batch = batch_strides = {};
    return true;
  }
};

// The batch dimensions of the product of `a` and `b`: the dimensions of `out` before its matrix dimensions. `out` has
// two matrix dimensions, less one per vector operand.
inline SizesView batch_of_product(const Tensor& a, const Tensor& b, const Tensor& out) {
  const size_t vectors = (a.dim() == 1) + (b.dim() == 1);
  return SizesView(out.sizes()).first(out.sizes().size() - (2 - vectors));
}

// Returns linear's weight (features x inputs), transposed to be the right operand of a product. A vector is returned
// unchanged.
inline Tensor transposed(const Tensor& weight) {
  if (weight.dim() == 1) return weight;
  const Geometry columns{{weight.size(1), weight.size(0)}, {weight.stride(1), weight.stride(0)}, weight->offset, true};
  return view_of(weight, columns);
}

// The bias of linear must have one element per feature, or a single element.
inline void check_linear_bias(const Tensor& weight, const Tensor& bias) {
  const int64_t features = weight.dim() == 1 ? 1 : weight.size(0);
  check(!bias || bias.numel() == 1 || bias.numel() == features, "expected a bias for each of ", features,
        " features, got ", bias ? to_string(bias.sizes()) : "none");
}

}  // namespace tt
