// scaled_mm: products of 8-bit matrices by cuBLASLt.
#include "kernels/common/linalg/matmul_operand.h"
#include "kernels/common/linalg/product_chain.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pointwise/chain.h"
#include "kernels/cuda/runtime/blas.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {
namespace {

constexpr int64_t kBytes = 16;  // required alignment of addresses and strides

bool is_aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()) % kBytes == 0; }

// Returns a contiguous copy in new memory.
Tensor packed(const Tensor& t) {
  const Tensor rows = empty(t.sizes(), t.dtype(), t.device());
  copy(t, rows);
  return rows;
}

// Returns `t` if the library supports it as a row-major matrix, else a copy.
Tensor in_rows(const Tensor& t) {
  const bool is_supported =
      t.stride(1) == 1 && (t.size(0) == 1 || t.stride(0) >= t.size(1)) && t.stride(0) % kBytes == 0;
  return is_supported && is_aligned(t) ? t : packed(t);
}

// Whether the library can store the product in `out`, which must be aligned. It cannot compute e5m2 from two e4m3fn
// matrices.
bool is_supported_output(const Tensor& input, const Tensor& mat2, const Tensor& out) {
  const bool wider = input.dtype() == DType::kFloat8E5m2 || mat2.dtype() == DType::kFloat8E5m2;
  return is_aligned(out) && (out.dtype() != DType::kFloat8E5m2 || wider);
}

const float* number(const Tensor& scale) { return scale ? scale.data_as<const float>() : nullptr; }

// Stores the scaled product in `out`. `bias` must be contiguous and aligned, or undefined.
void multiply(const Tensor& input, const Tensor& mat2, const Tensor& bias, Float8Params terms, const Tensor& out) {
  const Tensor a = in_rows(input), b = transposed(in_rows(transposed(mat2)));
  const int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  BlasProduct product{a.dtype(), m, n, k, {a.data(), m == 1 ? k : a.stride(0), 1}, {b.data(), 1, b.stride(1)},
                      out.data()};
  terms.other = b.dtype();
  terms.result = out.dtype();
  if (bias) {
    terms.bias = bias.dtype();
    product.bias = bias.data();
  }
  product.float8 = terms;
  blas().multiply(queue_of(out), product);
}

}  // namespace

void scaled_mm(const Tensor& input, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
               const Tensor& bias, const Tensor& scale_result, std::optional<DType>, bool use_fast_accum, Tensor& out) {
  check(compute_capability(out.device().index) >= 89,
        "_scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9");
  if (out.numel() == 0) return;
  const Tensor last_scale = is_float8(out.dtype()) ? scale_result : Tensor();
  const Tensor added = contiguous(bias);
  const bool per_tensor = scale_a.numel() == 1 && scale_b.numel() == 1;
  if (per_tensor && input.size(1) > 0 && is_supported_output(input, mat2, out) && (!added || is_aligned(added))) {
    return multiply(input, mat2, added,
                    {.a_scale = number(scale_a),
                     .b_scale = number(scale_b),
                     .result_scale = number(last_scale),
                     .fast_sums = use_fast_accum},
                    out);
  }
  const Tensor product = empty(out.sizes(), DType::kFloat32, out.device());
  if (input.size(1) == 0)
    fill_with(product, 0.0);
  else
    multiply(input, mat2, Tensor(), {.fast_sums = use_fast_accum}, product);
  finish_scaled_mm(&run_chain, product, scale_a, scale_b, added, last_scale, out);
}

}  // namespace tt::cuda
