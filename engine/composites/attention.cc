#include "engine/composites/attention.h"

#include <cmath>

#include "engine/dispatch/ops.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::composites {
namespace {

// Returns the causal mask: true where the key is after the query.
Tensor causal_mask(int64_t rows, int64_t columns, Device device) {
  const Tensor every = ops::ones(Sizes{rows, columns}, DType::kBool, device);
  return ops::logical_not(ops::tril(every, 0));
}

Tensor with_scores(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                   double scale) {
  Tensor scores = ops::matmul(ops::mul(query, scale), ops::transpose(key, -2, -1));
  if (is_causal) {
    scores = ops::masked_fill(scores, causal_mask(query.size(-2), key.size(-2), query.device()), -HUGE_VAL);
  }
  if (mask) {
    scores = mask.dtype() == DType::kBool ? ops::masked_fill(scores, ops::logical_not(mask), -HUGE_VAL)
                                          : ops::add(scores, mask);
  }
  // Rows that the mask excludes have weights of 0. Their softmax would be NaN, and so would its derivatives.
  const Tensor excluded = mask ? ops::all(ops::eq(scores, -HUGE_VAL), Sizes{-1}, true) : Tensor();
  if (mask) scores = ops::masked_fill(scores, excluded, 0.0);
  Tensor weights = ops::softmax(scores, -1, std::nullopt);
  if (mask) weights = ops::masked_fill(weights, excluded, 0.0);
  return ops::matmul(weights, value);
}

// Expands the batch dimensions of `t` to `batch_shape` and reshapes them to the two dimensions of `batches`. The second
// dimension is separate because masks usually broadcast over it.
Tensor as_batches(const Tensor& t, const Sizes& batch_shape, const Sizes& batches) {
  Sizes expanded = batch_shape, flat = batches;
  for (int64_t d : {t.size(-2), t.size(-1)}) {
    expanded.push_back(d);
    flat.push_back(d);
  }
  return ops::reshape(ops::expand(t, expanded), flat);
}

Tensor added_mask(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::kBool) return mask.dtype() == dtype ? mask : ops::to_dtype(mask, dtype);
  return ops::masked_fill(ops::zeros(mask.sizes(), dtype, mask.device()), ops::logical_not(mask), -HUGE_VAL);
}

// Attention with a mask that is added, or a bool mask that is true for scores that `excluded` replaces.
Tensor in_blocks(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                 double factor, bool allow_cudnn, std::optional<double> excluded = {}, bool rounds = false,
                 bool empty_rows_are_nan = false) {
  const Sizes result = shape_rules::attention(Arg(query.get()), Arg(key.get()), Arg(value.get()), Arg(mask.get()));
  const Sizes batch_shape(result.begin(), result.end() - 2);
  Sizes batches{1, 1};
  for (size_t d = 0; d < batch_shape.size(); ++d) batches[d + 1 == batch_shape.size() ? 1 : 0] *= batch_shape[d];
  Tensor bias;
  if (mask) {
    Sizes scores = batch_shape;
    scores.insert(scores.end(), {query.size(-2), key.size(-2)});
    bias = as_batches(ops::expand(mask, scores), batch_shape, batches);
  }
  const Tensors outputs =
      ops::attention_forward(as_batches(query, batch_shape, batches), as_batches(key, batch_shape, batches),
                             as_batches(value, batch_shape, batches), bias, is_causal, factor, allow_cudnn, excluded,
                             rounds, empty_rows_are_nan);
  return ops::reshape(outputs[0], result);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                    bool is_causal, std::optional<double> scale, bool allow_cudnn) {
  check(!(mask && is_causal), "Explicit attn_mask should not be set when is_causal=True");
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  if (mask && mask.meta().requires_grad) return with_scores(query, key, value, mask, is_causal, factor);
  return in_blocks(query, key, value, mask ? added_mask(mask, query.dtype()) : Tensor(), is_causal, factor,
                   allow_cudnn);
}

Tensor attention_with_nan(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double scale,
                          std::optional<double> excluded) {
  const bool is_cpu = query.device().type == DeviceType::kCPU || query.device().type == DeviceType::kMeta;
  const bool selects = mask && mask.dtype() == DType::kBool;
  check(selects || !excluded, "expected a bool mask for excluded");
  if (mask && (mask.meta().requires_grad || (selects && excluded && !is_cpu))) {
    const Tensor scores = ops::matmul(ops::mul(query, scale), ops::transpose(key, -2, -1));
    const Tensor changed =
        selects ? ops::masked_fill(scores, mask, excluded.value_or(-HUGE_VAL)) : ops::add(scores, mask);
    return ops::matmul(ops::softmax(changed, -1, std::nullopt), value);
  }
  // The kernels of other devices add masks. Scores that are NaN stay NaN there.
  const Tensor given = selects && !is_cpu ? added_mask(ops::logical_not(mask), query.dtype()) : mask;
  // Single calls round sums with a mask: of large numbers, to equal ones.
  const bool rounds = is_cpu && mask && !selects && item_size(query.dtype()) == 2;
  return in_blocks(query, key, value, given, /*is_causal=*/false, scale, /*allow_cudnn=*/false, excluded, rounds,
                   /*empty_rows_are_nan=*/true);
}

}  // namespace tt::composites
