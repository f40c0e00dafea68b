// nested: sequences of several lengths without padding, as their components.
//
// A Jagged owns nothing but references to two ordinary tensors of the engine, so that it is used by threads, recorded
// for backward and sent as they are: gradients are those of the values. What treats entries one by one needs no
// function here: linear layers, norms over the last dimension and pointwise operators take `values` as it is. The
// engine checks the offsets before it reads an entry, and reading a result of invalid ones throws RuntimeError. The
// functions compute on the device of the values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor::nested {

/// Sequences, one after another: sequence i has the entries values[offsets[i]] to values[offsets[i + 1]].
struct Jagged {
  Tensor values;   // [entries, ...]
  Tensor offsets;  // [sequences + 1], int64 or int32; from 0 to the number of entries, and never less than before

  /// The number of sequences.
  int64_t size() const;
  /// The numbers of entries, [sequences].
  Tensor lengths() const;
  /// The same sequences with other entries, [entries, ...].
  Jagged with(Tensor entries) const { return {std::move(entries), offsets}; }

  /// A tensor [sequences, length, ...] of the sequences, each followed by `padding`. Longer ones are cut off.
  Tensor to_padded(int64_t length, double padding = 0) const;
  /// The same with the length of the longest one, for which it waits.
  Tensor to_padded() const;
  /// Views of the sequences. Waits for the offsets.
  std::vector<Tensor> unbind() const;

  /// A row for each sequence, [sequences, ...]; sums of integers are int64. Of a sequence without entries, the sum is
  /// 0, the mean is NaN, and the extrema are the least and the largest number of the dtype.
  Tensor sum() const;
  Tensor mean() const;
  Tensor amax() const;
  Tensor amin() const;
  /// The softmax, or its logarithm, over the entries of each sequence.
  Jagged softmax() const;
  Jagged log_softmax() const;
  /// Rows for sequences, [sequences, ...], as rows for entries: that of its sequence for each of them.
  Tensor expand(const Tensor& rows) const;
};

/// The tensors [length, ...] one after another, with the gradient's path to them. Requires at least one.
Jagged nested_tensor(const std::vector<Tensor>& sequences);
/// The first lengths[i] entries of each row of `padded`, [sequences, longest, ...]. Waits for the lengths.
Jagged from_padded(const Tensor& padded, const Tensor& lengths);

/// Attention of each sequence of queries to the sequence of keys, and of `value`, with the same index, by itself. The
/// values of `query` and `key` and `value` are [entries, heads, elements]. `scale` is 1 / sqrt(elements) if absent.
/// Source: Vaswani et al., "Attention is all you need", 2017.
Jagged scaled_dot_product_attention(const Jagged& query, const Jagged& key, const Tensor& value, bool is_causal = false,
                                    std::optional<double> scale = std::nullopt);

}  // namespace teletensor::nested
