// matmul, linear, fused_linear and addmm_activation: batches of matrix products.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/linalg/matmul_operand.h"
#include "kernels/common/linalg/product_chain.h"
#include "kernels/cpu/blas/onednn.h"
#include "kernels/cpu/blas/product.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kLargeMatrix = 32 * 32;

// The offset of each matrix of the batch, broadcast to `sizes`.
std::vector<int64_t> offsets(const MatmulOperand& factor, SizesView sizes) {
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

// Whether the distance between the batch's matrices is constant, as oneDNN requires. Also true if a stride is 0
// (repeated matrices), because copying the repetitions would be expensive.
bool is_even(const Tensor& t) {
  bool even = true;
  for (int64_t d = 0; d + 2 < t.dim(); ++d) {
    if (t.size(d) == 1) continue;
    if (t.stride(d) == 0) return true;
    if (d + 3 < t.dim()) even &= t.stride(d) == t.size(d + 1) * t.stride(d + 1);
  }
  return even;
}

// Copies a batch of larger matrices (such as transposed attention heads) if the distance between them is not constant.
// The copy takes a fraction of the time that oneDNN saves. Returns other tensors unchanged.
Tensor even(const Tensor& t) {
  const bool large = t.dim() > 3 && t.size(-1) * t.size(-2) >= kLargeMatrix && onednn_supports(t.dtype());
  return large && !is_even(t) ? contiguous(t) : t;
}

// out = a x b with PyTorch's rules for vectors and batches; `bias` is added along out's last dimension.
void multiply(const Tensor& input, const Tensor& other, const void* bias, const Tensor* weights, Tensor& out) {
  const Tensor a = even(input), b = even(other);
  MatmulOperand left(a, true), right(b, false);
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

// multiply() for complex matrices, as four products of real and imaginary parts. Adds no bias.
void multiply_complex(const Tensor& input, const Tensor& other, Tensor& out) {
  const Tensor a[] = {contiguous(part(input, 0)), contiguous(part(input, 1))};
  const Tensor b[] = {contiguous(part(other, 0)), contiguous(part(other, 1))};
  Tensor products[2][2];
  for (int i : {0, 1}) {
    for (int j : {0, 1}) {
      products[i][j] = empty(out.sizes(), to_real(out.dtype()), out.device());
      multiply(a[i], b[j], nullptr, nullptr, products[i][j]);
    }
  }
  with_element(to_real(out.dtype()), [&]<typename R>(std::type_identity<R>) {
    const auto at = [&](int i, int j) { return products[i][j].template data_as<R>(); };
    const R *rr = at(0, 0), *ri = at(0, 1), *ir = at(1, 0), *ii = at(1, 1);
    R* to = parts(out).data_as<R>();
    parallel_for(out.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[2 * i] = static_cast<R>(rr[i] - ii[i]);
        to[2 * i + 1] = static_cast<R>(ri[i] + ir[i]);
      }
    });
  });
}

// An activation of fused_linear: that of the product's kernel, and the operator. oneDNN's ReLU makes 0 of NaN: the
// operator computes it in place.
struct LinearActivation {
  std::string_view name;
  ProductEpilogue::Activation epilogue;
  uint16_t op;
};

// Null for none.
const LinearActivation* find_activation(std::string_view name) {
  using Activation = ProductEpilogue::Activation;
  static constexpr LinearActivation kActivations[] = {
      {"relu", Activation::kNone, op_id::kRelu},          {"gelu", Activation::kGelu, op_id::kGeluErf},
      {"silu", Activation::kSilu, op_id::kSilu},          {"gelu_tanh", Activation::kGeluTanh, op_id::kGeluTanh},
      {"sigmoid", Activation::kSigmoid, op_id::kSigmoid}, {"tanh", Activation::kTanh, op_id::kTanh},
  };
  const auto* const found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const LinearActivation& each) { return each.name == name; });
  return found == std::end(kActivations) ? nullptr : found;
}

// Computes the activation in place; null for none.
void apply_activation(const LinearActivation* active, Tensor& out) {
  if (!active) return;
  ProductChain chain(out);
  chain.apply(active->op);
  run_chain(chain.steps(), out);
}

// out += number. `number` has one element.
void add_number(const Tensor& number, Tensor& out) {
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T added = *number.data_as<T>();
    for (int64_t i = 0; i < out.numel(); ++i) out.data_as<T>()[i] = static_cast<T>(out.data_as<T>()[i] + added);
  });
}

// out += row, broadcast.
void add_row(const Tensor& row, Tensor& out) {
  const Arg args[] = {Arg(out.get()), Arg(row.get()), Arg(int64_t{1})};
  const ChainStep step{find_op(op_id::kAdd), args, out.dtype()};
  run_chain({&step, 1}, out);
}

}  // namespace

void matmul(const Tensor& input, const Tensor& other, Tensor& out) {
  if (is_complex(out.dtype())) return multiply_complex(input, other, out);
  multiply(input, other, nullptr, &other, out);
}

void addmm_activation(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha,
                      bool use_gelu, Tensor& out) {
  matmul(mat1, mat2, out);
  finish_addmm_activation(&run_chain, input, beta, alpha, use_gelu, out);
}

void linear(const Tensor& input, const Tensor& weight, const Tensor& bias, Tensor& out) {
  check_linear_bias(weight, bias);
  if (is_complex(out.dtype())) {
    multiply_complex(input, transposed(weight), out);
    if (bias) add_row(bias, out);
    return;
  }
  const bool one = bias && bias.numel() == 1;
  const Tensor b = one ? Tensor() : contiguous(bias);
  multiply(input, transposed(weight), b ? b.data() : nullptr, weight.dim() == 2 ? &weight : nullptr, out);
  if (one) add_number(bias, out);
}

void fused_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& added,
                  std::string_view activation, Tensor& out) {
  check(ErrorKind::kNotImplemented, is_floating(out.dtype()), "[fused_linear] not implemented for ", name(out.dtype()));
  check_linear_bias(weight, bias);
  if (out.numel() == 0) return;
  const Tensor summand = contiguous(added), b = contiguous(bias);
  const LinearActivation* const active = find_activation(activation);
  if (input.dim() >= 2 && !(bias && bias.numel() == 1) && input.numel() != 0) {
    const Tensor columns = transposed(weight);
    MatmulOperand left(input, true), right(columns, false);
    if (left.fold()) {
      const Gemm g{out.dtype(), left.rows, right.columns, left.columns, left.matrix, right.matrix, out.data()};
      if (product_of_few_rows(g, b ? b.data() : nullptr, summand ? summand.data() : nullptr, weight)) {
        return apply_activation(active, out);
      }
      const ProductEpilogue epilogue{summand ? summand.data() : nullptr,
                                     active ? active->epilogue : ProductEpilogue::Activation::kNone};
      if (product_with(g, b ? b.data() : nullptr, &weight, epilogue)) {
        return apply_activation(epilogue.activation == ProductEpilogue::Activation::kNone ? active : nullptr, out);
      }
    }
  }
  linear(input, weight, bias, out);
  ProductChain chain(out);
  if (summand) chain.add(summand, int64_t{1});
  if (active) chain.apply(active->op);
  if (!chain.steps().empty()) run_chain(chain.steps(), out);
}

}  // namespace tt::cpu
