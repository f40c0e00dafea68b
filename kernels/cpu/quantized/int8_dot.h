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
};

// A block of the sums over p of a[i][p] * b[j][p], and of the sums over p of b[j][p].
struct Int8Block {
  int64_t row, rows;        // i
  int64_t column, columns;  // j
  const int32_t* sums;      // of (i, j): sums[(i - row) * step + j - column]
  int64_t step;
  const int32_t* weights;  // of j: weights[j - column]
};

// Computes all dot products on the thread pool and calls `store` with each block, from several threads. The sums do
// not depend on the number of threads.
void int8_product(const Int8Product& p, absl::FunctionRef<void(const Int8Block&)> store);

}  // namespace tt::cpu
