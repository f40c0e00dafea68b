// The sizes of an attention's operands: queries (batch, heads, rows, depth), keys (batch, heads, columns, depth) and
// values (batch, heads, columns, width).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt {

struct AttentionShape {
  int64_t heads, batches, rows, columns, depth, width;  // a batch is one head of one sample
  bool causal;

  AttentionShape(const Tensor& query, const Tensor& key, const Tensor& value, bool causal)
      : heads(query.size(1)),
        batches(query.size(0) * query.size(1)),
        rows(query.size(2)),
        columns(key.size(2)),
        depth(query.size(3)),
        width(value.size(3)),
        causal(causal) {}
  // The number of columns that the rows before `end` attend to.
  int64_t columns_before(int64_t end) const { return causal ? std::min(end, columns) : columns; }
};

}  // namespace tt
