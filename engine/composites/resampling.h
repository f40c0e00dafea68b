// Functions called by the composites of resampling, patches and volumes, in addition to operators.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// Supports every mode of PyTorch's interpolate except antialiasing; `scales` is empty or has one factor per dimension.
Tensor resample(const Tensor& input, SizesView size, std::string_view mode, bool align_corners,
                absl::Span<const double> scales);

Tensor unfold_patches(const Tensor& input, SizesView kernel, SizesView dilation, SizesView padding, SizesView stride);
Tensor fold_patches(const Tensor& input, SizesView size, SizesView kernel, SizesView dilation, SizesView padding,
                    SizesView stride);

// max_pool2d, which needs the positions of the maxima for gradients only.
Tensor largest_of_windows(const Tensor& input, SizesView kernel, std::optional<SizesView> stride, SizesView padding,
                          SizesView dilation, bool ceil_mode);
// Pooling over three dimensions pools over the last two, then over the first.
Tensor separable_max_pool3d(const Tensor& input, SizesView kernel, SizesView stride, SizesView padding,
                            SizesView dilation, bool ceil_mode);
Tensor separable_avg_pool3d(const Tensor& input, SizesView kernel, SizesView stride, SizesView padding, bool ceil_mode,
                            bool count_include_pad, std::optional<int64_t> divisor_override);
Tensor separable_adaptive_avg_pool3d(const Tensor& input, SizesView size);

Tensor nth_difference(const Tensor& input, int64_t n, int64_t dim);

}  // namespace tt::composites
