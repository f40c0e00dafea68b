// Products of the blocks of attention_columns.h with the rows of keys, values and queries, for processors with AVX-512.
// Operands are read where they are: each element of one operand is multiplied with vectors of the other, so that only
// queries of scores need a transposed copy. A product of matrices would pack both operands, and compute the half of a
// causal block that is zero.
#pragma once

#include <cstdint>
#include <memory>

namespace tt::cpu::attention_blocks {

// A block of n rows, one per key, `step` elements apart: the number of queries, rounded up to a multiple of 16.
// Query r sees the first `seen` + r keys if the attention is causal, and all n otherwise. What the loops compute for
// columns beyond the queries is never read.
struct KeyRows {
  int64_t n, step, seen;
  bool causal;
};

// Rows of float32, `step` elements apart.
struct FloatRows {
  const float* data;
  int64_t step;
};

// Whether these products compute rows of `depth` and `width` elements on this machine.
bool has_column_products(int64_t depth, int64_t width);

// The transpose of at most `most` rows of at most `depth` elements, with zeros up to a multiple of 16 columns.
class TransposedRows {
 public:
  TransposedRows(int64_t most, int64_t depth);
  void assign(FloatRows rows, int64_t m, int64_t depth);
  const float* data() const { return data_.get(); }

 private:
  std::unique_ptr<float[]> data_;
};

// Rows that follow each other: copies of rows that are far apart, such as those of one of several heads, which share
// few sets of the cache, and which processors do not recognise as one sequence.
class AdjacentRows {
 public:
  AdjacentRows(int64_t most, int64_t width);
  // Returns `m` rows of `width` elements, a multiple of 16, or their copy, which is valid until the next call.
  FloatRows assign(FloatRows rows, int64_t m, int64_t width);

 private:
  std::unique_ptr<float[]> data_;
};

// Whether all elements of `m` rows of `width` elements, a multiple of 16, are finite.
bool are_finite(FloatRows rows, int64_t m, int64_t width);

// scores[c * block.step + q] = the scalar product of key c and query q, of `depth` elements, for the keys that some
// query of the vector sees. `queries` has rows of block.step elements.
void score_product(const KeyRows& block, int64_t depth, FloatRows keys, const float* queries, float* scores);

// sums[q * step + i] = the sum over keys c of weights[c * block.step + q] * values[c][i], added to the sums if `add`.
// If block.causal, keys that a query does not see may be left out: their weights must be zero, and all values finite.
void sum_over_keys(const KeyRows& block, int64_t queries, int64_t width, const float* weights, FloatRows values,
                   float* sums, int64_t step, bool add);

// sums[c * step + i] = the sum over queries q of weights[c * block.step + q] * values[q][i], in the same way.
void sum_over_queries(const KeyRows& block, int64_t queries, int64_t width, const float* weights, FloatRows values,
                      float* sums, int64_t step, bool add);

}  // namespace tt::cpu::attention_blocks
