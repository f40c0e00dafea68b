// Rules for recurrent layers and attention.
#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const TensorMeta& meta(const Arg& a) { return *a.tensor; }

// Returns the first state. `hx` is a list of two states or a single state.
const TensorMeta& first_state(const Arg& hx) {
  if (hx.kind == Arg::Kind::kTensor) return *hx.tensor;
  check(hx.size == 2, "expected a hidden state and a cell state, got ", hx.size, " states");
  return *hx.list()[0];
}

SymInt packed_sequences(const TensorMeta& input, SizesView batch_sizes) {
  SymInt total = 0;
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    check(batch_sizes[i] > 0 && batch_sizes[i] <= batch_sizes[i > 0 ? i - 1 : 0],
          "batch_sizes must be positive and non-increasing, got ", batch_sizes);
    total = checked_add(total, batch_sizes[i]);
  }
  check(input.dim() == 2 && input.sizes[0] == total, "a packed input must have sum(batch_sizes) rows, ", total,
        ", got ", input.sizes);
  return batch_sizes[0];
}

}  // namespace

Sizes recurrent(const Arg& input, const Arg& hx, const Arg& params, SizesView batch_sizes, int64_t num_layers,
                bool bidirectional, bool batch_first, SymInt gates) {
  const TensorMeta &x = meta(input), &h = first_state(hx);
  const int64_t directions = bidirectional ? 2 : 1;
  check(num_layers > 0 && num_layers <= (1 << 16), "num_layers must be greater than zero, got ", num_layers);
  check(static_cast<int64_t>(params.size) >= 2 * num_layers * directions && params.list()[0]->dim() == 2,
        "too few weights for ", num_layers, " layers, got ", params.size);
  const bool packed = !batch_sizes.empty();
  check(x.dim() == (packed ? 2 : 3), "RNN: Expected input to be ", packed ? 2 : 3, "D, got ", x.dim(), "D instead");
  const Sizes& w_ih = params.list()[0]->sizes;
  check(x.sizes.back() == w_ih[1], "input.size(-1) must be equal to input_size. Expected ", w_ih[1], ", got ",
        x.sizes.back());
  const SymInt batch = packed ? packed_sequences(x, batch_sizes) : x.sizes[batch_first ? 0 : 1];
  check(h.dim() == 3, "Expected hx to be 3D, got ", h.dim(), "D");
  const auto check_state = [&](const TensorMeta& state, SymInt width) {
    const Sizes expected{num_layers * directions, batch, width};
    check(state.sizes == expected, "Expected hidden size ", expected, ", got ", state.sizes);
  };
  check_state(h, h.sizes[2]);
  if (hx.kind == Arg::Kind::kTensors) check_state(*hx.list()[1], w_ih[0] / gates);
  Sizes result = x.sizes;
  result.back() = checked_mul(directions, h.sizes[2]);
  return result;
}

Sizes recurrent_state(const Arg& hx, int64_t which) {
  first_state(hx);
  return hx.list()[static_cast<size_t>(which)]->sizes;
}

Sizes recurrent_cell(const Arg& input, const Arg& hx, const Arg& w_ih, const Arg& w_hh, SymInt gates) {
  const TensorMeta &x = meta(input), &h = first_state(hx), &in = meta(w_ih), &kept = meta(w_hh);
  check(in.dim() == 2 && kept.dim() == 2, "weights must be matrices, got ", in.sizes, " and ", kept.sizes);
  check(x.dim() >= 1 && x.sizes.back() == in.sizes[1], "input has inconsistent input_size: got ",
        x.dim() >= 1 ? x.sizes.back() : SymInt(0), " expected ", in.sizes[1]);
  check(h.dim() == x.dim() && h.sizes.back() == kept.sizes[1], "hidden has inconsistent hidden_size: got ", h.sizes,
        ", expected ", kept.sizes[1]);
  check(in.sizes[0] == kept.sizes[0] && in.sizes[0] == checked_mul(gates, kept.sizes[1]), "weights must have ", gates,
        " * hidden_size rows, got ", in.sizes[0], " and ", kept.sizes[0]);
  for (int64_t d = 0; d + 1 < x.dim(); ++d) {
    check(x.sizes[static_cast<size_t>(d)] == h.sizes[static_cast<size_t>(d)], "Input batch size ", x.sizes,
          " doesn't match hidden batch size ", h.sizes);
  }
  if (hx.kind == Arg::Kind::kTensors) {
    check(hx.list()[1]->sizes == h.sizes, "the states must have the same sizes, got ", h.sizes, " and ",
          hx.list()[1]->sizes);
  }
  return h.sizes;
}

Sizes attention(const Arg& query, const Arg& key, const Arg& value, const Arg& mask) {
  const Sizes &q = meta(query).sizes, &k = meta(key).sizes, &v = meta(value).sizes;
  check(q.size() >= 2 && k.size() >= 2 && v.size() >= 2,
        "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got query "
        "dim: ",
        q.size(), ", key dim: ", k.size(), " and value dim: ", v.size(), " instead.");
  const auto end = [](const Sizes& s, size_t i) { return s[s.size() - i]; };
  check(end(q, 1) == end(k, 1), "query and key must have the same last dimension, got ", q, " and ", k);
  check(end(k, 2) == end(v, 2), "key and value must have the same sequence length, got ", k, " and ", v);
  Sizes result = broadcast_sizes(SizesView(q).first(q.size() - 2), SizesView(k).first(k.size() - 2));
  result = broadcast_sizes(result, SizesView(v).first(v.size() - 2));
  Sizes scores = result;
  scores.push_back(end(q, 2));
  scores.push_back(end(k, 2));
  check(mask.is_none() || broadcast_sizes(scores, meta(mask).sizes) == scores, "attn_mask of sizes ",
        mask.is_none() ? SizesView() : SizesView(meta(mask).sizes), " does not broadcast to the scores' ", scores);
  result.push_back(end(q, 2));
  result.push_back(end(v, 1));
  return result;
}

Sizes attention_rows(const Arg& query, const Arg& key, const Arg& value, const Arg& mask) {
  attention(query, key, value, mask);
  const Sizes& q = meta(query).sizes;
  const auto batches = [](const Sizes& s) { return s.size() == 4 ? SizesView(s).first(2) : SizesView(); };
  check(q.size() == 4 && batches(meta(key).sizes) == batches(q) && batches(meta(value).sizes) == batches(q),
        "expected query, key and value with two equal batch dimensions, got ", q, ", ", meta(key).sizes, " and ",
        meta(value).sizes);
  if (!mask.is_none()) {
    const Sizes scores{q[0], q[1], q[2], meta(key).sizes[2]};
    // On the CPU, a bool mask is true for scores that -inf replaces.
    const DeviceType device = meta(query).device.type;
    const bool has_dtype =
        meta(mask).dtype == meta(query).dtype ||
        (meta(mask).dtype == DType::kBool && (device == DeviceType::kCPU || device == DeviceType::kMeta));
    check(meta(mask).sizes == scores && has_dtype, "the mask must have the scores' sizes ", scores,
          " and the query's dtype, got ", describe(meta(mask)));
  }
  return {q[0], q[1], q[2]};
}

Sizes attention_gradient(const Arg& grad, const Arg& query, const Arg& key, const Arg& value, const Arg& mask,
                         const Arg& output, const Arg& logsumexp) {
  const Sizes rows = attention_rows(query, key, value, mask), result = attention(query, key, value, mask);
  gradient_of(grad, result);
  gradient_of(output, result);
  gradient_of(logsumexp, rows);
  return meta(query).sizes;
}

}  // namespace tt::shape_rules
