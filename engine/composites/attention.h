// Functions called by the attention composites, in addition to operators.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// softmax(query key^T scale + mask) value. Rows that are masked completely give zeros. `mask` may be undefined. The
// full score matrix is stored only if the mask requires a gradient. `allow_cudnn`: GPUs may use cuDNN's attention.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                    bool is_causal, std::optional<double> scale, bool allow_cudnn);

// The same with a mask of the query's dtype that is added, or a bool mask that is true for scores that `excluded`, or
// -inf, replaces, except that rows whose scores are all -inf, by the mask or not, give NaN, and gradients with NaN.
Tensor attention_with_nan(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double scale,
                          std::optional<double> excluded);

}  // namespace tt::composites
