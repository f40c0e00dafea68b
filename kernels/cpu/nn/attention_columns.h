// The loops of attention over blocks of scores in float32 whose columns are queries, without masks: a vector has the
// scores of 16 queries with a key, so that neither maxima and sums over keys nor the causal limit need operations
// across a vector.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/nn/attention_products.h"
#include "kernels/cpu/nn/attention_rows.h"

namespace tt::cpu::attention_blocks {

// The keys that every query of a vector sees, and those that some query sees.
struct SeenKeys {
  int64_t by_every, by_some;

  [[gnu::always_inline]] SeenKeys(const KeyRows& block, int64_t first_query) : by_every(block.n), by_some(block.n) {
    if (!block.causal) return;
    by_every = std::clamp<int64_t>(block.seen + first_query, 0, block.n);
    by_some = std::clamp<int64_t>(block.seen + first_query + Lanes<float>::kCount - 1, 0, block.n);
  }
};

using Floats = Lanes<float>::Vector;
typedef int32_t Integers __attribute__((vector_size(64)));

// x where the query sees the key, `other` elsewhere.
[[gnu::always_inline]] inline Floats where_seen(const KeyRows& block, int64_t first_query, int64_t key, Floats x,
                                                float other) {
  constexpr Integers kLane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return kLane > static_cast<int32_t>(key - block.seen - first_query) ? x : Floats{} + other;
}

// Replaces products of keys and queries by unnormalised weights: the exponentials of scores less the largest score of
// the query, also in earlier blocks. `most` and `sums` have the results of earlier blocks, and receive those of this
// one; `corrections` receives the factors by which earlier weights must be multiplied. Queries whose scores are all
// -inf have weights and sums of 0.
TT_CLONES static void weigh_columns(const KeyRows& block, int64_t queries, float scale, float* __restrict scores,
                                    float* __restrict most, float* __restrict sums, float* __restrict corrections) {
  const auto keep_larger = [](Floats& largest, const Floats& x) { largest = x > largest ? x : largest; };
  for (int64_t q = 0; q < queries; q += Lanes<float>::kCount) {
    const SeenKeys seen(block, q);
    float* const column = scores + q;
    const Floats before = lanes_at(most + q);
    Floats largest = before, second = before;
    int64_t c = 0;
    // The products are stored: an instruction that multiplies and subtracts would not round them, so that the largest
    // score less itself would be the rounding error, which is large for large scores.
    for (; c + 2 <= seen.by_every; c += 2) {
      auto &x = lanes_at(column + c * block.step), &y = lanes_at(column + (c + 1) * block.step);
      const Floats one = x * scale, other = y * scale;
      x = one;
      y = other;
      keep_larger(largest, one);
      keep_larger(second, other);
    }
    for (; c < seen.by_some; ++c) {
      auto& x = lanes_at(column + c * block.step);
      const Floats score = x * scale;
      x = score;
      keep_larger(second, c < seen.by_every ? score : where_seen(block, q, c, score, -kInfinity<float>));
    }
    keep_larger(largest, second);
    const Floats shift = largest == -kInfinity<float> ? Floats{} : largest;
    Floats sum = {}, other = {};
    c = 0;
    for (; c + 2 <= seen.by_every; c += 2) {
      auto &x = lanes_at(column + c * block.step), &y = lanes_at(column + (c + 1) * block.step);
      x = exponentials(x - shift);
      y = exponentials(y - shift);
      sum += x;
      other += y;
    }
    for (; c < seen.by_some; ++c) {
      auto& x = lanes_at(column + c * block.step);
      const Floats weight = exponentials(x - shift);
      x = c < seen.by_every ? weight : where_seen(block, q, c, weight, 0);
      sum += x;
    }
    for (; c < block.n; ++c) lanes_at(column + c * block.step) = Floats{};
    const Floats correction = exponentials(before - shift);
    lanes_at(most + q) = largest;
    lanes_at(sums + q) = lanes_at(sums + q) * correction + (sum + other);
    lanes_at(corrections + q) = correction;
  }
}

// Replaces products of keys and queries by weights, the exponentials of scores less the query's `logs`, and products of
// values and the queries' gradients by the gradients of the scores. The logs are not so large that their rounding, or
// that of the scores, would change the weights.
TT_CLONES static void score_grad_columns(const KeyRows& block, int64_t queries, float scale,
                                         const float* __restrict logs, const float* __restrict delta,
                                         float* __restrict weights, float* __restrict grads) {
  for (int64_t q = 0; q < queries; q += Lanes<float>::kCount) {
    const SeenKeys seen(block, q);
    const Floats log = lanes_at(logs + q), each = lanes_at(delta + q);
    const Floats shift = log == -kInfinity<float> ? Floats{} + kInfinity<float> : log;
    const auto compute = [&](int64_t c, auto limit) __attribute__((always_inline)) {
      auto &w = lanes_at(weights + c * block.step + q), &g = lanes_at(grads + c * block.step + q);
      const Floats weight = exponentials(w * scale - shift);
      w = limit(weight);
      g = limit(weight * (g - each) * scale);
    };
    int64_t c = 0;
    for (; c < seen.by_every; ++c) compute(c, [](const Floats& x) { return x; });
    for (; c < seen.by_some; ++c) compute(c, [&](const Floats& x) { return where_seen(block, q, c, x, 0); });
    for (; c < block.n; ++c) {
      lanes_at(weights + c * block.step + q) = Floats{};
      lanes_at(grads + c * block.step + q) = Floats{};
    }
  }
}

}  // namespace tt::cpu::attention_blocks
