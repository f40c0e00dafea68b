// What the composites of attention call beside operators.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// softmax(query key^T scale + mask) value; rows that look at nothing give zeros. `mask` may be undefined. Only where
// the mask wants a gradient do all scores exist at once.
Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
              std::optional<double> scale);

}  // namespace tt::composites
