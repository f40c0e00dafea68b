// Complex tensors as the real ones that their parts are, for what adds up in each part alone.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "engine/tensor.h"

namespace tt::cpu {

// All parts, in a further dimension of 2; or the real (0) or the imaginary ones (1). Views. Require a complex tensor.
Tensor parts(const Tensor& t);
Tensor part(const Tensor& t, int which);
// Of a complex tensor, in the real dtype.
Tensor magnitudes(const Tensor& t);
// The dimensions of `t` that are meant, none being all, as those of parts(t).
Sizes dims_of_parts(const Tensor& t, const std::optional<absl::Span<const int64_t>>& dims);

// Elements of uint64 as int64, ordered alike: the highest bit is turned, in a copy. Others are themselves.
Tensor ordered_bits(const Tensor& t);
// And back, in place.
void restore_bits(Tensor& t);

}  // namespace tt::cpu
