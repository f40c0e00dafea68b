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

Tensor reduced(const Jagged& input, std::string_view reduce) {
  return call(op_id::kJaggedReduce, {arg(input.values), arg(input.offsets), tt::Arg(), tt::Arg(reduce)});
}

Jagged softmax_of(const Jagged& input, bool log) {
  return input.with(call(op_id::kJaggedSoftmax, {arg(input.values), arg(input.offsets), tt::Arg(), tt::Arg(log)}));
}

// As the engine's operator wants them: [heads, entries, elements].
Tensor by_heads(const Jagged& input) {
  if (input.values.dim() != 3) {
    throw RuntimeError("[nested::scaled_dot_product_attention] expected values [entries, heads, elements], got " +
                       std::to_string(input.values.dim()) + " dimensions");
  }
  return input.values.transpose(0, 1);
}

}  // namespace

int64_t Jagged::size() const {
  if (offsets.dim() == 1 && offsets.size(0) > 0) return offsets.size(0) - 1;
  throw RuntimeError("[nested::Jagged] expected a vector of offsets, of one element more than there are sequences");
}

Tensor Jagged::lengths() const { return offsets.slice(0, 1) - offsets.slice(0, 0, size()); }

Tensor Jagged::to_padded(int64_t length, double padding) const {
  return call(op_id::kJaggedToPadded, {arg(values), arg(offsets), tt::Arg(), tt::Arg(length), tt::Arg(padding)});
}

Tensor Jagged::to_padded() const { return to_padded(size() == 0 ? 0 : lengths().max().item<int64_t>()); }

std::vector<Tensor> Jagged::unbind() const {
  std::vector<Tensor> sequences;
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

Tensor Jagged::sum() const { return reduced(*this, "sum"); }

Tensor Jagged::mean() const {
  std::vector<int64_t> sizes(static_cast<size_t>(values.dim()), 1);
  sizes[0] = size();
  return sum() / lengths().reshape(sizes);
}

Tensor Jagged::amax() const { return reduced(*this, "amax"); }
Tensor Jagged::amin() const { return reduced(*this, "amin"); }
Jagged Jagged::softmax() const { return softmax_of(*this, false); }
Jagged Jagged::log_softmax() const { return softmax_of(*this, true); }

Tensor Jagged::expand(const Tensor& rows) const {
  return call(op_id::kJaggedExpand, {arg(rows), arg(offsets), tt::Arg(), tt::Arg(values.size(0))});
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
  const Tensor ends = lengths.to(kLong).cumsum(0);
  const Tensor offsets = cat({zeros({1}, dtype(kLong).device(ends.device())), ends});
  const int64_t total = lengths.size(0) == 0 ? 0 : ends[-1].item<int64_t>();
  return {call(op_id::kPaddedToJagged, {arg(padded), arg(offsets), tt::Arg(), tt::Arg(total)}), offsets};
}

Jagged scaled_dot_product_attention(const Jagged& query, const Jagged& key, const Jagged& value, bool is_causal,
                                    std::optional<double> scale) {
  const Tensor q = by_heads(query), k = by_heads(key), v = by_heads(value);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(q.size(2))));
  const auto [output, logsumexp] =
      call_tuple<2>(op_id::kJaggedAttentionForward, {arg(q), arg(k), arg(v), arg(query.offsets), tt::Arg(),
                                                     arg(key.offsets), tt::Arg(), tt::Arg(is_causal), tt::Arg(factor)});
  return query.with(output.transpose(0, 1));
}

}  // namespace teletensor::nested
