// bfloat16_product: products of bfloat16 with sums and results in float32, for kernels that divide their work among
// threads themselves.
#pragma once

#include <cstdint>

#include "engine/schema/half.h"

namespace tt::cpu {

// c = a b, or c += a b if `add`. c is m x n, row-major and contiguous. a is m x k; its rows are `a_step` elements
// apart, or its columns if `a_transposed`. b is k x n, likewise.
struct BFloat16Product {
  int64_t m, n, k;
  const BFloat16* a;
  int64_t a_step;
  bool a_transposed;
  const BFloat16* b;
  int64_t b_step;
  bool b_transposed;
  float* c;
  bool add;
};

// Whether the CPU has instructions for it (AVX512_BF16 or AMX).
bool has_bfloat16_products();
// Requires has_bfloat16_products(), and a PoolLease of one thread. The first product of a shape takes about 0.5 ms
// more, and up to 3 ms if its sizes are odd.
void bfloat16_product(const BFloat16Product& p);

}  // namespace tt::cpu
