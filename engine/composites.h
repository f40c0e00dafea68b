// What `composite` declarations may call beside operators, and how composites are registered.
//
// A composite runs before autograd sees the call: it differentiates because the operators that
// it calls do. The functions here are for what the expressions' language does not say.
#pragma once

#include "engine/dispatcher.h"
#include "engine/expression.h"

namespace tt {

// Generated: every composite operator.
void register_composites(Dispatcher& dispatcher);

// For the generated functions: gives the call its results.
inline void finish_composite(Call& call, Tensor result) { call.outputs.assign(1, std::move(result)); }
inline void finish_composite(Call& call, Tensors results) { call.outputs = std::move(results); }

namespace composites {

// [0, 1, ..., n - 1].
Sizes range(int64_t n);
// The dimensions of an n-dimensional tensor but those listed; negative ones count from the end.
Sizes dims_except(int64_t n, SizesView dims);
// `list` with entry `index` (negative from the end) replaced, left out, or with one put before it.
Sizes with_entry(SizesView list, int64_t index, int64_t value);
Sizes without_entry(SizesView list, int64_t index);
Sizes insert_entry(SizesView list, int64_t index, int64_t value);
int64_t product(SizesView list);

}  // namespace composites
}  // namespace tt
