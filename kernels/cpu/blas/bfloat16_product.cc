#include "kernels/cpu/blas/bfloat16_product.h"

#include <algorithm>

#include "kernels/cpu/blas/onednn.h"

namespace tt::cpu {
namespace {

Sizes strides(int64_t step, bool transposed) { return transposed ? Sizes{1, step} : Sizes{step, 1}; }

PreparedPrimitive prepare(const BFloat16Product& p) {
  const dnnl::memory::desc a = strided_desc({p.m, p.k}, strides(p.a_step, p.a_transposed), DType::kBFloat16);
  const dnnl::memory::desc b = strided_desc({p.k, p.n}, strides(p.b_step, p.b_transposed), DType::kBFloat16);
  const dnnl::memory::desc c = strided_desc({p.m, p.n}, {p.n, 1}, DType::kFloat32);
  dnnl::primitive_attr attributes;  // not a copy of onednn_attributes(), which would be another handle of them
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.add) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(a, b, c), attributes, onednn_engine());
  return {dnnl::matmul(pd),
          {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}, {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}},
          pd.scratchpad_desc().get_size()};
}

}  // namespace

bool has_bfloat16_products() {
  static const bool has = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
  }();
  return has;
}

void bfloat16_product(const BFloat16Product& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    if (!p.add) std::fill_n(p.c, p.m * p.n, 0.0f);
    return;
  }
  PrimitiveKey key(PrimitiveKey::Kind::kBFloat16Product, 1);
  key.add(p.m).add(p.n).add(p.k).add(p.a_step).add(p.a_transposed).add(p.b_step).add(p.b_transposed).add(p.add);
  PrimitiveUse use(key, kProductBytes, [&] { return prepare(p); });
  use.set(DNNL_ARG_SRC, p.a);
  use.set(DNNL_ARG_WEIGHTS, p.b);
  use.set(DNNL_ARG_DST, p.c);
  use.run();
}

}  // namespace tt::cpu
