#include "client/api/nested.h"

#include <cmath>
#include <string>
#include <string_view>

#include "client/api/creation.h"
#include "client/api/dispatch.h"
#include "client/api/errors.h"
#include "client/api/functions.h"
#include "engine/schema/op_ids.h"

namespace teletensor::nested {
namespace {

using internal::call;
using internal::call_tuple;
namespace op_id = tt::op_id;

tt::Arg arg(const Tensor& tensor) { return tt::Arg(tensor.handle().get()); }

// The engine's operators take offsets of int64.
Tensor long_offsets(const Jagged& input) {
  return input.offsets.dtype() == kLong ? input.offsets : input.offsets.to(kLong);
}

Tensor reduced(const Tensor& values, const Jagged& input, std::string_view reduce) {
  const Tensor offsets = long_offsets(input);
  return call(op_id::kJaggedReduce, {arg(values), arg(offsets), tt::Arg(), tt::Arg(reduce)});
}

// In float32 for numbers of 16 bits, of which a row of weights may have more than their digits can add.
Jagged softmax_of(const Jagged& input, bool log) {
  const bool is_narrow = input.values.dtype() == kHalf || input.values.dtype() == kBFloat16;
  const Tensor values = is_narrow ? input.values.to(kFloat) : input.values, offsets = long_offsets(input);
  const Tensor weights = call(op_id::kJaggedSoftmax, {arg(values), arg(offsets), tt::Arg(), tt::Arg(log)});
  return input.with(is_narrow ? weights.to(input.values.dtype()) : weights);
}

// As the engine's operator wants them: [heads, entries, elements].
Tensor by_heads(const Tensor& values) {
  if (values.dim() != 3) {
    throw RuntimeError("[nested::scaled_dot_product_attention] expected values [entries, heads, elements], got " +
                       std::to_string(values.dim()) + " dimensions");
  }
  return values.transpose(0, 1);
}

}  // namespace

int64_t Jagged::size() const {
  if (offsets.dim() == 1 && offsets.size(0) > 0) return offsets.size(0) - 1;
  throw RuntimeError("[nested::Jagged] expected a vector of offsets, of one element more than there are sequences");
}

Tensor Jagged::lengths() const { return offsets.slice(0, 1) - offsets.slice(0, 0, size()); }

Tensor Jagged::to_padded(int64_t length, double padding) const {
  const Tensor ends = long_offsets(*this);
  return call(op_id::kJaggedToPadded, {arg(values), arg(ends), tt::Arg(), tt::Arg(length), tt::Arg(padding)});
}

Tensor Jagged::to_padded() const { return to_padded(size() == 0 ? 0 : lengths().max().item<int64_t>()); }

std::vector<Tensor> Jagged::unbind() const {
  std::vector<Tensor> sequences;
  size();  // throws if the offsets are no vector
  const std::vector<int64_t> ends = offsets.to(kLong).data<int64_t>();
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i] < 0 || ends[i + 1] < ends[i] || ends[i + 1] > values.size(0)) {
      throw RuntimeError("[nested::unbind] expected offsets that do not decrease and are at most " +
                         std::to_string(values.size(0)) + ", got " + std::to_string(ends[i]) + " and " +
                         std::to_string(ends[i + 1]));
    }
    sequences.push_back(values.slice(0, ends[i], ends[i + 1]));
  }
  return sequences;
}

Tensor Jagged::sum() const {
  const bool is_integral = !values.is_floating_point() && !values.is_complex();
  return reduced(is_integral ? values.to(kLong) : values, *this, "sum");
}

Tensor Jagged::mean() const {
  const Tensor sums = sum();
  std::vector<int64_t> sizes(static_cast<size_t>(sums.dim()), 1);
  sizes[0] = size();
  return sums / lengths().reshape(sizes);
}

Tensor Jagged::amax() const { return reduced(values, *this, "amax"); }
Tensor Jagged::amin() const { return reduced(values, *this, "amin"); }
Jagged Jagged::softmax() const { return softmax_of(*this, false); }
Jagged Jagged::log_softmax() const { return softmax_of(*this, true); }

Tensor Jagged::expand(const Tensor& rows) const {
  const Tensor ends = long_offsets(*this);
  return call(op_id::kJaggedExpand, {arg(rows), arg(ends), tt::Arg(), tt::Arg(values.size(0))});
}

Jagged nested_tensor(const std::vector<Tensor>& sequences) {
  if (sequences.empty()) throw RuntimeError("[nested::nested_tensor] expected at least one tensor");
  std::vector<int64_t> ends = {0};
  for (const Tensor& sequence : sequences) {
    if (sequence.dim() == 0) throw RuntimeError("[nested::nested_tensor] expected tensors [length, ...], got a scalar");
    ends.push_back(ends.back() + sequence.size(0));
  }
  const int64_t count = static_cast<int64_t>(ends.size());
  return {cat(sequences), from_blob(ends.data(), {count}, kLong).to(sequences[0].device())};
}

Jagged from_padded(const Tensor& padded, const Tensor& lengths) {
  if (padded.dim() < 2 || lengths.dim() != 1 || lengths.size(0) != padded.size(0)) {
    throw RuntimeError(
        "[nested::from_padded] expected a tensor [sequences, longest, ...] and a vector of as many lengths");
  }
  int64_t total = 0;
  for (const int64_t length : lengths.to(kLong).data<int64_t>()) {
    if (length < 0 || length > padded.size(1)) {
      throw RuntimeError("[nested::from_padded] expected lengths from 0 to " + std::to_string(padded.size(1)) +
                         ", got " + std::to_string(length));
    }
    total += length;
  }
  const Tensor ends = lengths.to(kLong).to(padded.device()).cumsum(0);
  const Tensor offsets = cat({zeros({1}, dtype(kLong).device(padded.device())), ends});
  return {call(op_id::kPaddedToJagged, {arg(padded), arg(offsets), tt::Arg(), tt::Arg(total)}), offsets};
}

Jagged scaled_dot_product_attention(const Jagged& query, const Jagged& key, const Tensor& value, bool is_causal,
                                    std::optional<double> scale) {
  const Tensor q = by_heads(query.values), k = by_heads(key.values), v = by_heads(value);
  const Tensor query_ends = long_offsets(query), key_ends = long_offsets(key);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(q.size(2))));
  const auto [output, logsumexp] =
      call_tuple<2>(op_id::kJaggedAttentionForward, {arg(q), arg(k), arg(v), arg(query_ends), tt::Arg(), arg(key_ends),
                                                     tt::Arg(), tt::Arg(is_causal), tt::Arg(factor)});
  return query.with(output.transpose(0, 1));
}

}  // namespace teletensor::nested
