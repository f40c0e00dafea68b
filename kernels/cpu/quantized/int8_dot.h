// Dot products of rows of 8-bit integers, with sums of 32 bits that wrap around.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace tt::cpu {

// a[i][p] is a[i * a_step + p], unsigned; b[j][p] is b[j * b_step + p], signed. All rows have k elements.
struct Int8Product {
  int64_t m, n, k;
  const uint8_t* a;
  int64_t a_step;
  const int8_t* b;
  int64_t b_step;
  const int8_t* packed = nullptr;  // b as pack_weights() has packed it; null: it is packed if that saves time
};

// A block of the sums over p of a[i][p] * b[j][p], and of the sums over p of b[j][p].
struct Int8Block {
  int64_t row, rows;        // i
  int64_t column, columns;  // j
  const int32_t* sums;      // of (i, j): sums[(i - row) * step + j - column]
  int64_t step;
  const int32_t* weights;  // of j: weights[j - column]
};

// Whether a product with packed weights is faster than one without: it depends on the processor and m, n and k.
bool uses_packed(int64_t m, int64_t n, int64_t k);
// Bytes that pack_weights() writes for n rows of k elements.
int64_t packed_weights_bytes(int64_t n, int64_t k);
// Packs n rows of b, with their sums. Requires uses_packed() for some m.
void pack_weights(int64_t n, int64_t k, const int8_t* b, int64_t b_step, int8_t* to);

// Computes all dot products on the thread pool and calls `store` with each block, from several threads. The sums do
// not depend on the number of threads.
void int8_product(const Int8Product& p, absl::FunctionRef<void(const Int8Block&)> store);

}  // namespace tt::cpu
