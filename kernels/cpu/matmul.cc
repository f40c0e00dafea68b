// matmul and linear: batches of matrix products.
#include <algorithm>
#include <vector>

#include "engine/rules/error.h"
#include "kernels/common/element.h"
#include "kernels/common/factor.h"
#include "kernels/cpu/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/product.h"

namespace tt::cpu {
namespace {

constexpr int64_t kLargeMatrix = 32 * 32;

// Where each entry of the broadcast batch starts.
std::vector<int64_t> offsets(const Factor& factor, SizesView sizes) {
  std::vector<int64_t> starts{0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t missing = sizes.size() - factor.batch.size();
    const bool once = i < missing || factor.batch[i - missing] == 1;
    const int64_t stride = once ? 0 : factor.batch_strides[i - missing];
    std::vector<int64_t> finer;
    finer.reserve(starts.size() * static_cast<size_t>(sizes[i]));
    for (int64_t start : starts) {
      for (int64_t j = 0; j < sizes[i]; ++j) finer.push_back(start + j * stride);
    }
    starts = std::move(finer);
  }
  return starts;
}

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
  Factor left(a, true), right(b, false);
  Gemm g{out.dtype(), left.rows, right.columns, left.columns, left.matrix, right.matrix, out.data()};
  if (right.batch.empty() && left.fold()) {
    g.m = left.rows;
    g.a = left.matrix;
    return product(g, bias, weights);
  }
  const SizesView batch = batch_of_product(a, b, out);
  const std::vector<int64_t> starts_a = offsets(left, batch), starts_b = offsets(right, batch);
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
  check_linear_bias(weight, bias);
  const bool one = bias && bias.numel() == 1;
  const Tensor b = one ? Tensor() : contiguous(bias);
  multiply(input, turned(weight), b ? b.data() : nullptr, &weight, out);
  if (one) add_number(bias, out);
}

}  // namespace tt::cpu
