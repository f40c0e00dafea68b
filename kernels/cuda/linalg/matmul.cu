// matmul, linear and addmm_activation: batches of matrix products. cuBLASLt computes floating-point and complex
// products; our own kernel computes integer products.
#include <algorithm>

#include "engine/session/context.h"
#include "kernels/common/iteration/dims.h"
#include "kernels/common/linalg/matmul_operand.h"
#include "kernels/common/linalg/product_chain.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/linalg/bias.h"
#include "kernels/cuda/pointwise/chain.h"
#include "kernels/cuda/runtime/blas.h"

namespace tt::cuda {
namespace {

constexpr int64_t kMaxCalls = 16;  // maximum library calls per batch; beyond it, copying for a single call is faster

// Returns an operand's strides over the batch dimensions `batch`: 0 where the operand is broadcast.
Sizes broadcast_batch_strides(const MatmulOperand& factor, SizesView batch) {
  return broadcast_strides(factor.batch, factor.batch_strides, batch);
}

// ---- Floating point ---------------------------------------------------------------------------

// Whether the library supports the operand's layout, with its batch folded into the rows if `folded`.
bool fits(const Tensor& t, bool left, bool folded) {
  MatmulOperand factor(t, left);
  return (!folded || factor.fold()) && leading(factor.matrix, factor.rows, factor.columns).has_value();
}

// Returns a tensor whose broadcast batch has a single stride: `t` itself if it has this layout, else a copy.
Tensor with_single_batch_stride(const Tensor& t, bool left, SizesView batch) {
  const MatmulOperand factor(t, left);
  const Sizes strides = broadcast_batch_strides(factor, batch);
  if (t.dim() == 1 || merged_dims<1>(batch, {strides}).size() <= 1) return t;
  Geometry geometry{{batch.begin(), batch.end()}, strides, t->offset, true};
  for (int64_t d : {int64_t{-2}, int64_t{-1}}) {
    geometry.sizes.push_back(t.size(d));
    geometry.strides.push_back(t.stride(d));
  }
  const Tensor view = view_of(t, geometry);
  Tensor copied = empty(view.sizes(), t.dtype(), t.device());
  copy(view, copied);
  return copied;
}

using BatchDims = absl::InlinedVector<Dim<3>, 6>;

BatchDims batch_dims(const Tensor& a, const Tensor& b, SizesView batch) {
  const MatmulOperand left(a, true), right(b, false);
  const Sizes left_strides = broadcast_batch_strides(left, batch),
              right_strides = broadcast_batch_strides(right, batch);
  Sizes result_strides = contiguous_strides(batch);
  for (int64_t& stride : result_strides) stride *= left.rows * right.columns;
  return merged_dims<3>(batch, {left_strides, right_strides, result_strides});
}

BatchDims::const_iterator widest(const BatchDims& dims) {
  return std::max_element(dims.begin(), dims.end(), [](const auto& x, const auto& y) { return x.size < y.size; });
}

// Returns the number of library calls for a batch.
int64_t calls(const BatchDims& dims) {
  int64_t n = 1;
  for (auto dim = dims.begin(); dim != dims.end(); ++dim) n *= dim == widest(dims) ? 1 : dim->size;
  return n;
}

// Returns the product `first` with the addresses of a, b and c advanced by the given numbers of elements.
BlasProduct at(const BlasProduct& first, const std::array<int64_t, 3>& offsets) {
  const int64_t item = static_cast<int64_t>(item_size(first.dtype));
  BlasProduct there = first;
  there.a.data = static_cast<const char*>(first.a.data) + offsets[0] * item;
  there.b.data = static_cast<const char*>(first.b.data) + offsets[1] * item;
  there.c = static_cast<char*>(first.c) + offsets[2] * item;
  return there;
}

// Passes the largest batch dimension to the library and loops over the other dimensions.
void multiply_batch(const Queue& queue, BlasProduct product, BatchDims dims) {
  const int64_t n = calls(dims);
  if (!dims.empty()) {
    const auto inner = widest(dims);
    product.batch = inner->size;
    product.a_step = inner->strides[0];
    product.b_step = inner->strides[1];
    product.c_step = inner->strides[2];
    dims.erase(inner);
  }
  for (int64_t i = 0; i < n; ++i) {
    std::array<int64_t, 3> offsets{};
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d].size) {
      for (size_t k = 0; k < 3; ++k) offsets[k] += rest % dims[d].size * dims[d].strides[k];
    }
    blas().multiply(queue, at(product, offsets));
  }
}

// Some fields of BlasProduct: the operations that the library applies to the product.
struct Epilogue {
  const void* bias = nullptr;
  Activation activation = Activation::kNone;
  double alpha = 1;
};

void multiply_floats(const Tensor& input, const Tensor& other, const Epilogue& epilogue, const Tensor& out) {
  const bool folded = other.dim() <= 2;
  Tensor a = fits(input, true, folded) ? input : contiguous(input);
  Tensor b = fits(other, false, false) ? other : contiguous(other);
  BatchDims dims;
  if (!folded) {
    const SizesView batch = batch_of_product(a, b, out);
    dims = batch_dims(a, b, batch);
    if (calls(dims) > kMaxCalls) {
      a = with_single_batch_stride(a, true, batch);
      b = with_single_batch_stride(b, false, batch);
      dims = batch_dims(a, b, batch);
    }
  }
  MatmulOperand left(a, true), right(b, false);
  if (folded) left.fold();
  BlasProduct product{out.dtype(),
                      left.rows,
                      right.columns,
                      left.columns,
                      *leading(left.matrix, left.rows, left.columns),
                      *leading(right.matrix, right.rows, right.columns),
                      out.data()};
  product.bias = epilogue.bias;
  product.activation = epilogue.activation;
  product.alpha = epilogue.alpha;
  product.tf32 = Context::current().allow_tf32;
  multiply_batch(queue_of(out), product, dims);
}

// ---- Integers ---------------------------------------------------------------------------------

// Computes in int64; the result wraps around correctly when stored in a narrower type.
void multiply_integers(const Tensor& a, const Tensor& b, const Tensor& out) {
  const MatmulOperand left(a, true), right(b, false);
  const SizesView batch = batch_of_product(a, b, out);
  const Sizes left_strides = broadcast_batch_strides(left, batch),
              right_strides = broadcast_batch_strides(right, batch);
  const Layout<2> layout(batch, {left_strides, right_strides});
  const Access x(const_cast<void*>(left.matrix.data), a.dtype()), y(const_cast<void*>(right.matrix.data), b.dtype());
  const Access to(out);
  const int64_t m = left.rows, n = right.columns, k = left.columns;
  const int64_t x_row = left.matrix.row_stride, x_column = left.matrix.column_stride;
  const int64_t y_row = right.matrix.row_stride, y_column = right.matrix.column_stride;
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t row = i / n % m, column = i % n;
    const Offsets<2> entry = layout.offsets(i / (m * n));
    int64_t sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      sum += x.load<int64_t>(entry.at[0] + row * x_row + j * x_column) *
             y.load<int64_t>(entry.at[1] + j * y_row + column * y_column);
    }
    to.store(i, sum);
  });
}

// ---- All types --------------------------------------------------------------------------------

// Whether the library can add the bias as part of the product.
bool adds_bias(const Tensor& bias, const Tensor& out) {
  const bool each = bias && bias.numel() == out.size(-1) && is_floating(out.dtype()) && bias.dtype() == out.dtype();
  return each && out.dtype() != DType::kFloat64 && reinterpret_cast<uintptr_t>(bias.data()) % 16 == 0;
}

void multiply(const Tensor& input, const Tensor& other, const Tensor& bias, Tensor& out) {
  if (out.numel() == 0) return;
  const bool fused = bias && out.dim() > 0 && input.size(-1) > 0 && adds_bias(bias, out);
  if (input.size(-1) == 0) {
    fill_zeros(queue_of(out), out);
  } else if (has_gradients(out.dtype())) {
    multiply_floats(input, other, {fused ? bias.data() : nullptr}, out);
  } else {
    multiply_integers(input, other, out);
  }
  if (!fused) add_bias(bias, 1, out);
}

}  // namespace

void matmul(const Tensor& input, const Tensor& other, Tensor& out) { multiply(input, other, Tensor(), out); }

// One library call if `input` has one element per column that the library can add. Otherwise the remaining steps are
// separate kernels.
void addmm_activation(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha,
                      bool use_gelu, Tensor& out) {
  const bool one_each = input.dim() == 1 && beta.to_complex() == 1.0 && out.numel() > 0 && mat1.size(1) > 0;
  const Tensor bias = one_each ? contiguous(input) : Tensor();
  if (one_each && adds_bias(bias, out)) {
    const Activation activation = use_gelu ? Activation::kGelu : Activation::kRelu;
    return multiply_floats(mat1, mat2, {bias.data(), activation, alpha.to_double()}, out);
  }
  matmul(mat1, mat2, out);
  finish_addmm_activation(&run_chain, input, beta, alpha, use_gelu, out);
}

void linear(const Tensor& input, const Tensor& weight, const Tensor& bias, Tensor& out) {
  check_linear_bias(weight, bias);
  multiply(input, transposed(weight), contiguous(bias), out);
}

}  // namespace tt::cuda
