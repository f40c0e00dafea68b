// Shapes and argument checks of batch, group, layer and RMS normalisation.
#pragma once

#include "absl/types/span.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/operands.h"

namespace tt {

// Shape of layer and RMS normalisation: the normalised dimensions, which are the last ones, form rows of n elements.
struct NormRows {
  int64_t rows, n = 1;

  NormRows(const Tensor& t, absl::Span<const int64_t> normalized_shape) {
    for (int64_t size : normalized_shape) n *= size;
    rows = n == 0 ? 0 : t.numel() / n;
  }
};

// Shape of group normalisation: N x C x space, with the channels of each sample divided into groups.
struct NormGroups {
  int64_t samples, groups, channels, space = 1;  // channels of one group

  // Throws Error (RuntimeError) unless `num_groups` divides the channels.
  NormGroups(const Tensor& t, int64_t num_groups) : samples(t.size(0)), groups(num_groups) {
    check(num_groups > 0 && t.size(1) % num_groups == 0, "expected channels divisible by num_groups=", num_groups,
          ", got ", to_string(t.sizes()));
    channels = t.size(1) / num_groups;
    for (int64_t d = 2; d < t.dim(); ++d) space *= t.size(d);
  }
};

// Batch normalisation: throws Error (RuntimeError) unless each defined operand has one element per channel of `input`.
inline void check_batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                             const Tensor& weight, const Tensor& bias) {
  for (const Tensor* t : {&running_mean, &running_var, &weight, &bias}) check_per_channel(*t, input.size(1));
}
inline void check_batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                      const Tensor& rstd) {
  check(grad.sizes() == input.sizes(), "expected a gradient of sizes ", to_string(input.sizes()), ", got ",
        to_string(grad.sizes()));
  for (const Tensor* t : {&weight, &mean, &rstd}) check_per_channel(*t, input.size(1));
}

}  // namespace tt
