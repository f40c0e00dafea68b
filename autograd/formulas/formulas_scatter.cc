// Gradients of scatter operators with reductions (formulas_index.h).
#include "autograd/formulas/formulas_index.h"
#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {
namespace {

// Returns the leading part of `t` that has the sizes `sizes` of an index. A zero-dim tensor or index counts as one
// entry.
Tensor leading_slice(Tensor t, SizesView sizes) {
  if (sizes.empty() && t.dim() != 0) return ops::reshape(ops::narrow(t, 0, 0, 1), {});
  if (t.dim() == 0 && !sizes.empty()) t = ops::reshape(t, Sizes(sizes.size(), 1));
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (t.size(dim) != sizes[d]) t = ops::narrow(t, dim, 0, sizes[d]);
  }
  return t;
}

// Undoes leading_slice(): pads `t` with zeros to `sizes`.
Tensor pad_to(const Tensor& t, SizesView sizes) {
  if (t.sizes() == sizes) return t;
  if (t.sizes().size() != sizes.size()) return pad_to(ops::reshape(t, Sizes(sizes.size(), 1)), sizes);
  Sizes pad;
  for (size_t d = sizes.size(); d-- > 0;) pad.insert(pad.end(), {0, sizes[d] - t.sizes()[d]});
  return ops::pad(t, pad, int64_t{0});
}

Tensor product_src_grad(const Tensor& g, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                        const Tensor& result) {
  // Dividing by a factor gives the product of the other factors, except where the factor is the only zero.
  const Tensor zero = ops::eq(src, 0.0);
  const Tensor zeros = ops::scatter_add(ops::zeros_like(input), dim, index, ops::to_dtype(zero, input.dtype()));
  const Tensor only = ops::logical_and(zero, ops::eq(ops::gather(zeros, dim, index), 1.0));
  const Tensor others = ops::scatter_combine(input, dim, index, ops::masked_fill(src, only, 1.0), "prod");
  const Tensor divided =
      ops::true_divide(ops::gather(ops::mul(g, result), dim, index), ops::masked_fill(src, zero, 1.0));
  return ops::where(only, ops::gather(ops::mul(g, others), dim, index), divided);
}

}  // namespace

Tensors scatter_combine_grad(const Tensor& g, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                             std::string_view reduce, const Tensor& result) {
  if (index.numel() == 0) return {g, ops::zeros_like(src)};  // an empty index may have any number of dimensions
  const Tensor seen = leading_slice(src, index.sizes());
  if (reduce == "prod") {
    const Tensor factors = ops::scatter_combine(ops::ones_like(input), dim, index, seen, reduce);
    return {ops::mul(g, factors), pad_to(product_src_grad(g, input, dim, index, seen, result), src.sizes())};
  }
  const Tensor kept = ops::to_dtype(ops::eq(input, result), input.dtype());
  const Tensor came = ops::to_dtype(ops::eq(seen, ops::gather(result, dim, index)), input.dtype());
  const Tensor share = ops::true_divide(g, ops::scatter_add(kept, dim, index, came));
  return {ops::mul(share, kept), pad_to(ops::mul(ops::gather(share, dim, index), came), src.sizes())};
}

}  // namespace tt::autograd::formulas
