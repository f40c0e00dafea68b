// matmul and linear: batches of matrix products.
#include <algorithm>
#include <vector>

#include "engine/rules/error.h"
#include "kernels/cpu/contiguous.h"
#include "kernels/common/element.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/product.h"

namespace tt::cpu {
namespace {

constexpr int64_t kLargeMatrix = 32 * 32;

// One side of a product: the matrices, and the batch dimensions before them.
struct Side {
  int64_t rows, columns;
  Matrix matrix;
  SizesView batch, batch_strides;

  // A vector is a row on the left and a column on the right.
  Side(const Tensor& t, bool left) {
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

  // Takes the batch into the rows, where it lies so: one large product instead of many.
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

  // Where each entry of the broadcast batch starts.
  std::vector<int64_t> offsets(SizesView sizes) const {
    std::vector<int64_t> starts{0};
    for (size_t i = 0; i < sizes.size(); ++i) {
      const size_t missing = sizes.size() - batch.size();
      const int64_t stride = i < missing || batch[i - missing] == 1 ? 0 : batch_strides[i - missing];
      std::vector<int64_t> finer;
      finer.reserve(starts.size() * static_cast<size_t>(sizes[i]));
      for (int64_t start : starts) {
        for (int64_t j = 0; j < sizes[i]; ++j) finer.push_back(start + j * stride);
      }
      starts = std::move(finer);
    }
    return starts;
  }
};

// Whether the batch's entries are one distance apart, as oneDNN wants them. Repeated ones (stride 0) pass for it:
// copies of them would be many.
bool is_even(const Tensor& t) {
  bool even = true;
  for (int64_t d = 0; d + 2 < t.dim(); ++d) {
    if (t.size(d) == 1) continue;
    if (t.stride(d) == 0) return true;
    if (d + 3 < t.dim()) even &= t.stride(d) == t.size(d + 1) * t.stride(d + 1);
  }
  return even;
}

// A batch of larger matrices (heads of an attention, transposed) is copied to lie evenly: that takes a fraction of what
// oneDNN saves on it.
Tensor even(const Tensor& t) {
  const bool large = t.dim() > 3 && t.size(-1) * t.size(-2) >= kLargeMatrix && onednn_computes(t.dtype());
  return large && !is_even(t) ? contiguous(t) : t;
}

// out = a x b with PyTorch's rules for vectors and batches; `bias` is added along out's last dimension.
void multiply(const Tensor& input, const Tensor& other, const void* bias, const Tensor* weights, Tensor& out) {
  const Tensor a = even(input), b = even(other);
  Side left(a, true), right(b, false);
  Gemm g{out.dtype(), left.rows, right.columns, left.columns, left.matrix, right.matrix, out.data()};
  if (right.batch.empty() && left.fold()) {
    g.m = left.rows;
    g.a = left.matrix;
    return product(g, bias, weights);
  }
  const size_t vectors = (a.dim() == 1) + (b.dim() == 1);  // dimensions that the result does not have
  const SizesView batch = SizesView(out.sizes()).first(out.sizes().size() - (2 - vectors));
  const std::vector<int64_t> starts_a = left.offsets(batch), starts_b = right.offsets(batch);
  g.batch = static_cast<int64_t>(starts_a.size());
  g.a_offsets = starts_a.data();
  g.b_offsets = starts_b.data();
  product(g, bias);
}

// out += number, a tensor of one element.
void add_number(const Tensor& number, Tensor& out) {
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T added = *number.data_as<T>();
    for (int64_t i = 0; i < out.numel(); ++i) out.data_as<T>()[i] = static_cast<T>(out.data_as<T>()[i] + added);
  });
}

}  // namespace

void matmul(const Tensor& input, const Tensor& other, Tensor& out) { multiply(input, other, nullptr, &other, out); }

void linear(const Tensor& input, const Tensor& weight, const Tensor& bias, Tensor& out) {
  const int64_t features = weight.dim() == 1 ? 1 : weight.size(0);  // without a dimension of its own if one
  const bool one = bias && bias.numel() == 1;
  check(!bias || one || bias.numel() == features, "expected a bias for each of ", features, " features, got ",
        bias ? to_string(bias.sizes()) : "none");
  const Tensor b = one ? Tensor() : contiguous(bias);
  if (weight.dim() == 1) {
    multiply(input, weight, nullptr, nullptr, out);
  } else {
    const Geometry turned{{weight.size(1), features}, {weight.stride(1), weight.stride(0)}, weight->offset, true};
    multiply(input, view_of(weight, turned), b ? b.data() : nullptr, &weight, out);
  }
  if (one) add_number(bias, out);
}

}  // namespace tt::cpu
