// Rules for the components of nested tensors with the jagged layout: values whose first dimension holds all sequences,
// offsets (one more than sequences) and perhaps lengths. The kernels check the offsets' values.
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const TensorMeta& meta(const Arg& a) { return *a.tensor; }

// Returns the number of sequences.
SymInt sequences(const Arg& offsets, const Arg& lengths) {
  const TensorMeta& o = meta(offsets);
  check(o.dim() == 1 && o.sizes[0] >= 1 && o.dtype == DType::kInt64,
        "expected offsets of dtype int64 with one dimension and at least one element, got ", describe(o));
  const SymInt count = o.sizes[0] - 1;
  if (lengths.is_none()) return count;
  const TensorMeta& l = meta(lengths);
  check(l.dim() == 1 && l.sizes[0] == count && l.dtype == DType::kInt64, "expected lengths of dtype int64 and size [",
        count, "], got ", describe(l));
  return count;
}

// The sizes of `t` with `first` in place of the first `dims` dimensions.
Sizes with_leading(const TensorMeta& t, int64_t dims, std::initializer_list<SymInt> first) {
  Sizes sizes(first);
  sizes.insert(sizes.end(), t.sizes.begin() + dims, t.sizes.end());
  return sizes;
}

void check_rows(const TensorMeta& t, int64_t dims, SymInt count, const char* what) {
  check(t.dim() >= dims && t.sizes[0] == count, "expected ", what, " of ", count, " sequences and at least ", dims,
        " dimensions, got sizes ", t.sizes);
}

}  // namespace

Sizes jagged_to_padded(const Arg& values, const Arg& offsets, const Arg& lengths, SymInt length) {
  check(meta(values).dim() >= 1, "expected values with at least one dimension");
  check(length >= 0, "expected a length of at least 0, got ", length);
  return with_leading(meta(values), 1, {sequences(offsets, lengths), length});
}

Sizes padded_to_jagged(const Arg& padded, const Arg& offsets, const Arg& lengths, SymInt total) {
  check_rows(meta(padded), 2, sequences(offsets, lengths), "a padded tensor");
  check(total >= 0, "expected a total of at least 0, got ", total);
  return with_leading(meta(padded), 2, {total});
}

Sizes jagged_expand(const Arg& input, const Arg& offsets, const Arg& lengths, SymInt total) {
  check_rows(meta(input), 1, sequences(offsets, lengths), "a tensor");
  check(total >= 0, "expected a total of at least 0, got ", total);
  return with_leading(meta(input), 1, {total});
}

Sizes jagged_reduce(const Arg& values, const Arg& offsets, const Arg& lengths, std::string_view reduce) {
  check(meta(values).dim() >= 1, "expected values with at least one dimension");
  check(reduce == "sum" || reduce == "amax" || reduce == "amin", "expected reduce to be sum, amax or amin, got ",
        message_part(reduce));
  return with_leading(meta(values), 1, {sequences(offsets, lengths)});
}

Sizes jagged_softmax(const Arg& values, const Arg& offsets, const Arg& lengths) {
  check(meta(values).dim() >= 1, "expected values with at least one dimension");
  sequences(offsets, lengths);
  return meta(values).sizes;
}

Sizes jagged_attention(const Arg& query, const Arg& key, const Arg& value, const Arg& query_offsets,
                       const Arg& query_lengths, const Arg& key_offsets, const Arg& key_lengths) {
  const TensorMeta &q = meta(query), &k = meta(key), &v = meta(value);
  check(q.dim() == 3 && k.dim() == 3 && v.dim() == 3,
        "expected query, key and value of sizes (heads, tokens, elements), got ", q.sizes, ", ", k.sizes, " and ",
        v.sizes);
  check(q.sizes[0] == k.sizes[0] && q.sizes[0] == v.sizes[0], "expected the same number of heads, got ", q.sizes[0],
        ", ", k.sizes[0], " and ", v.sizes[0]);
  check(q.sizes[2] == k.sizes[2], "query and key must have the same last dimension, got ", q.sizes, " and ", k.sizes);
  check(k.sizes[1] == v.sizes[1], "key and value must have the same tokens, got ", k.sizes, " and ", v.sizes);
  const SymInt queries = sequences(query_offsets, query_lengths), keys = sequences(key_offsets, key_lengths);
  check(queries == keys, "expected as many sequences of keys as of queries (", queries, "), got ", keys);
  return {q.sizes[0], q.sizes[1], v.sizes[2]};
}

Sizes jagged_attention_rows(const Arg& query) { return {meta(query).sizes[0], meta(query).sizes[1]}; }

Sizes jagged_attention_gradient(const Arg& grad, const Arg& query, const Arg& key, const Arg& value,
                                const Arg& query_offsets, const Arg& query_lengths, const Arg& key_offsets,
                                const Arg& key_lengths, const Arg& output, const Arg& logsumexp) {
  const Sizes result = jagged_attention(query, key, value, query_offsets, query_lengths, key_offsets, key_lengths);
  check(meta(grad).sizes == result && meta(output).sizes == result, "expected a gradient and an output of sizes ",
        result, ", got ", meta(grad).sizes, " and ", meta(output).sizes);
  check(meta(logsumexp).sizes == jagged_attention_rows(query), "expected logsumexp of sizes ",
        jagged_attention_rows(query), ", got ", meta(logsumexp).sizes);
  return meta(query).sizes;
}

}  // namespace tt::shape_rules
