// scaled_mm: products of 8-bit matrices, computed in float32.
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

}  // namespace

void scaled_mm(const Tensor& input, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
               const Tensor& bias, const Tensor& scale_result, std::optional<DType>, bool, Tensor& out) {
  Tensor product = empty(out.sizes(), DType::kFloat32, out.device());
  matmul(widened(input), widened(mat2), product);
  finish_scaled_mm(&run_chain, product, scale_a, scale_b, bias, is_float8(out.dtype()) ? scale_result : Tensor(), out);
}

}  // namespace tt::cpu
