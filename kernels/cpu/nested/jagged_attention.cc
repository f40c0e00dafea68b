// Attention of sequences of different lengths, without padding: each sequence and head is a batch of its own for the
// loops of attention_blocks.h. bfloat16 is computed in float32, because its products are compiled for each shape.
#include <algorithm>
#include <climits>
#include <cstring>

#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nested/sequences.h"
#include "kernels/cpu/nn/attention_blocks.h"

namespace tt::cpu {
namespace {

using namespace attention_blocks;

// A tensor (heads, tokens, elements) of T whose elements are contiguous, as an operand of products.
template <typename T>
class Tokens {
 public:
  explicit Tokens(const Tensor& t)
      : tensor_(t.dtype() == kDTypeOf<T> && t.stride(2) == 1 && t.stride(1) >= t.size(2) && t.stride(0) >= 0
                    ? t
                    : contiguous_as(t, kDTypeOf<T>)),
        head_(tensor_.stride(0)),
        step_(std::max<int64_t>(tensor_.stride(1), 1)) {
    check(step_ <= INT_MAX, "tokens ", step_, " elements apart are too far apart");
  }
  Operand<T> at(int64_t head, int64_t token) const {
    return {tensor_.template data_as<T>() + head * head_ + token * step_, step_};
  }

 private:
  Tensor tensor_;
  int64_t head_, step_;
};

template <typename T>
struct Operands {
  Tokens<T> query, key, value;
  Sequences rows, columns;
  int64_t heads, query_tokens, key_tokens, depth, width;
  bool causal;
  T scale;

  Operands(const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& queries, const Sequences& keys,
           bool is_causal, double factor)
      : query(q),
        key(k),
        value(v),
        rows(queries),
        columns(keys),
        heads(q.size(0)),
        query_tokens(q.size(1)),
        key_tokens(k.size(1)),
        depth(q.size(2)),
        width(v.size(2)),
        causal(is_causal),
        scale(static_cast<T>(factor)) {
    check(std::max(depth, width) <= INT_MAX, "heads of ", std::max(depth, width), " elements are too large");
    check_countable(key_tokens, depth + width);
  }
};

// The problem of one thread, which selects one sequence and head after another. A "batch" is the selected one.
template <typename T>
struct Problem {
  const Operands<T>& o;
  int64_t rows, columns, depth, width;
  T scale;
  bool causal;
  int64_t head = 0, first_row = 0, first_column = 0;

  explicit Problem(const Operands<T>& all)
      : o(all),
        rows(all.rows.longest()),
        columns(all.columns.longest()),
        depth(all.depth),
        width(all.width),
        scale(all.scale),
        causal(all.causal) {}
  void select(int64_t sequence, int64_t which) {
    head = which;
    first_row = o.rows.begin(sequence), rows = o.rows.length(sequence);
    first_column = o.columns.begin(sequence), columns = o.columns.length(sequence);
  }
  Operand<T> q(int64_t, int64_t row) const { return o.query.at(head, first_row + row); }
  Operand<T> k(int64_t, int64_t column) const { return o.key.at(head, first_column + column); }
  Operand<T> v(int64_t, int64_t column) const { return o.value.at(head, first_column + column); }
  int64_t columns_before(int64_t end) const { return causal ? std::min(end, columns) : columns; }
  int64_t visible(int64_t row, int64_t j, int64_t n) const {
    return causal ? std::clamp<int64_t>(row + 1 - j, 0, n) : n;
  }
  bool is_masked() const { return false; }
  MaskRow<T> mask_row(int64_t, int64_t, int64_t) const { return {}; }
  int64_t row_block() const { return std::min(o.rows.longest(), kRows); }
  int64_t column_block() const { return std::min(o.columns.longest(), kColumns); }
  // The elements before the selected rows or columns, of `elements` each, in a contiguous tensor of all tokens.
  int64_t row_at(int64_t elements) const { return (head * o.query_tokens + first_row) * elements; }
  int64_t column_at(int64_t elements) const { return (head * o.key_tokens + first_column) * elements; }
};

// Pieces of work: blocks of rows of a sequence, for one head. The pieces of a head follow each other, so that those of
// a sequence use its keys while they are in the cache.
class Pieces {
 public:
  // Cuts sequences every `step` rows; `depths` are the elements of an operand's row in all products.
  template <typename T>
  Pieces(const Operands<T>& o, int64_t step, int64_t depths, Device device) {
    for (int64_t b = 0; b < o.rows.count(); ++b) per_head_ += (o.rows.length(b) + step - 1) / step;
    count_ = per_head_ * o.heads;
    places_ = empty(Sizes{per_head_, 2}, DType::kInt64, device);
    int64_t* place = places_.data_as<int64_t>();
    double total = 0;
    for (int64_t b = 0; b < o.rows.count(); ++b) {
      for (int64_t row = 0; row < o.rows.length(b); row += step) *place++ = b, *place++ = row;
      total += static_cast<double>(o.rows.length(b)) * static_cast<double>(o.columns.length(b)) *
               static_cast<double>(depths);
    }
    work_ = per_head_ == 0 ? 1 : total / static_cast<double>(per_head_);
  }
  int64_t count() const { return count_; }
  double mean_work() const { return work_; }  // multiplications
  int64_t head(int64_t i) const { return i / per_head_; }
  int64_t sequence(int64_t i) const { return places_.data_as<int64_t>()[i % per_head_ * 2]; }
  int64_t row(int64_t i) const { return places_.data_as<int64_t>()[i % per_head_ * 2 + 1]; }

 private:
  Tensor places_;  // (pieces of a head, 2): a sequence and a row
  int64_t per_head_ = 0, count_ = 0;
  double work_ = 1;
};

// Calls f.operator()<Out, T>() with the types of the result and of the computation.
template <typename F>
void with_types(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f.template operator()<float, float>();
  if (dtype == DType::kFloat64) return f.template operator()<double, double>();
  if (dtype == DType::kFloat16) return f.template operator()<Half, float>();
  check(ErrorKind::kNotImplemented, dtype == DType::kBFloat16, "not implemented for ", name(dtype));
  f.template operator()<BFloat16, float>();
}

void zero(const Tensor& t) { std::memset(t.data_as<char>(), 0, static_cast<size_t>(t.numel()) * item_size(t.dtype())); }

}  // namespace

void jagged_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& query_offsets,
                              const Tensor& query_lengths, const Tensor& key_offsets, const Tensor& key_lengths,
                              bool is_causal, double scale, Tensor& output, Tensor& logsumexp) {
  const Sequences rows(query_offsets, query_lengths, query.size(1)), columns(key_offsets, key_lengths, key.size(1));
  AccumulateBuffer sums(logsumexp, accumulate_type(query.dtype()));
  with_types(query.dtype(), [&]<typename Out, typename T>() {
    const Operands<T> o(query, key, value, rows, columns, is_causal, scale);
    if (rows.tokens() != o.query_tokens) {  // tokens outside of all sequences
      zero(output);
      zero(sums.tensor());
    }
    const Pieces pieces(o, kRows, o.depth + o.width, query.device());
    parallel_products<T>(pieces.count(), pieces.mean_work(), [&](int64_t begin, int64_t end) {
      Problem<T> p(o);
      Forward<T, T, Problem<T>> forward(p);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = pieces.row(i);
        p.select(pieces.sequence(i), pieces.head(i));
        forward.run(0, row, output.data_as<Out>() + p.row_at(o.width) + row * o.width,
                    sums.tensor().data_as<T>() + p.row_at(1) + row);
      }
    });
  });
  sums.copy_to_output();
}

void jagged_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& query_offsets, const Tensor& query_lengths, const Tensor& key_offsets,
                               const Tensor& key_lengths, const Tensor& output, const Tensor& logsumexp, bool is_causal,
                               double scale, Tensor& query_grad, Tensor& key_grad, Tensor& value_grad) {
  const Sequences rows(query_offsets, query_lengths, query.size(1)), columns(key_offsets, key_lengths, key.size(1));
  AccumulateBuffer dq(query_grad), dk(key_grad), dv(value_grad);
  with_types(query.dtype(), [&]<typename Out, typename T>() {
    const Operands<T> o(query, key, value, rows, columns, is_causal, scale);
    const Tensor g = contiguous_as(grad, kDTypeOf<T>), y = contiguous_as(output, kDTypeOf<T>),
                 logs = contiguous_as(logsumexp, kDTypeOf<T>);
    for (Tensor* t : {&dq.tensor(), &dk.tensor(), &dv.tensor()}) zero(*t);
    const int64_t whole = std::max<int64_t>(rows.longest(), 1);  // the rows of a sequence add to the same key_grad
    const Pieces pieces(o, whole, 3 * o.depth + 2 * o.width, query.device());
    parallel_products<T>(pieces.count(), pieces.mean_work(), [&](int64_t begin, int64_t end) {
      Problem<T> p(o);
      Backward<T, T, Problem<T>> backward(p);
      for (int64_t i = begin; i < end; ++i) {
        p.select(pieces.sequence(i), pieces.head(i));
        backward.run(0, {g.data_as<T>() + p.row_at(o.width), o.width}, {y.data_as<T>() + p.row_at(o.width), o.width},
                     logs.data_as<T>() + p.row_at(1), {dq.tensor().data_as<T>() + p.row_at(o.depth), o.depth},
                     {dk.tensor().data_as<T>() + p.column_at(o.depth), o.depth},
                     {dv.tensor().data_as<T>() + p.column_at(o.width), o.width});
      }
    });
  });
  dq.copy_to_output();
  dk.copy_to_output();
  dv.copy_to_output();
}

}  // namespace tt::cpu
