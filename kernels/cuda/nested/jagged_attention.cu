// Attention of sequences of different lengths, without padding. A group of threads computes for a block of tokens of a
// head, which may contain tokens of several sequences, one sequence after the other. The softmax is corrected after
// each block of keys (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), so that scores are
// never stored. The gradients of queries, and those of keys and values, are separate launches that both recompute the
// scores: no group adds to another group's results, and results do not vary from run to run.
#include <climits>
#include <limits>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/shared_groups.h"
#include "kernels/cuda/nested/attention_tile.h"
#include "kernels/cuda/nested/sequences.h"

namespace tt::cuda {
namespace {

constexpr int kThreads = 128;

template <typename T>
struct Operands {
  using C = AccumulateType<T>;
  HeadRows<T> query, key, value;
  SequenceTable rows, columns;
  bool causal;
  C scale;
};

// Tokens [begin, end) of a tile. They belong to `sequence`, or to none if it is -1.
struct Segment {
  int64_t sequence, begin, end;

  TT_FUNCTION int count() const { return static_cast<int>(end - begin); }
};

// Returns the tokens from `token` on that belong to the same sequence, or to none, and are before `end`.
TT_DEVICE inline Segment segment_at(const SequenceTable& s, int64_t token, int64_t end) {
  const int64_t b = s.last_before(token);
  const bool inside = s.contains(b, token);
  const int64_t next = inside ? s.begins[b] + s.lengths[b] : s.next_begin(b);
  return {inside ? b : -1, token, next < end ? next : end};
}

// Results of a tile, (heads, tokens, elements): sums are in shared memory and written at the end, or, if they are too
// long for it, in `wide`, of the type to compute in.
template <typename T>
struct Results {
  using C = AccumulateType<T>;
  using Tile = AttentionTile<T>;
  T* out;
  C* wide;
  int64_t tokens, elements;

  TT_DEVICE C* sums(C* kept, int64_t head, int64_t token) const {
    return wide ? wide + (head * tokens + token) * elements : kept;
  }
  TT_FUNCTION int64_t step() const { return wide ? elements : Tile::kKept; }

  // Writes factors[r] * sums of row r; zeros if `sums` is null. Without `factors`, they are 1.
  TT_DEVICE void write(const typename Tile::Owned& owned, int64_t head, const Segment& at, const C* sums,
                       const C* factors) const {
    const int64_t from = (head * tokens + at.begin) * elements;
    owned.for_each(at.count(), elements, [&](int r, int64_t c) {
      const C total = sums ? sums[r * step() + c] * (factors ? factors[r] : C(1)) : C(0);
      if (wide) {
        wide[from + r * elements + c] = total;
      } else {
        out[from + r * elements + c] = convert<T>(total);
      }
    });
  }
};

// Calls body(group, head, segment) for the segments of the group's tile.
template <typename Body>
TT_DEVICE void for_each_segment(const Group& group, const SequenceTable& s, int tokens, Body body) {
  const int64_t tiles = (s.total + tokens - 1) / tokens, head = group.index() / tiles;
  const int64_t begin = group.index() % tiles * tokens, end = begin + tokens < s.total ? begin + tokens : s.total;
  for (int64_t token = begin; token < end;) {
    const Segment at = segment_at(s, token, end);
    body(head, at);
    token = at.end;
  }
}

template <typename C>
TT_DEVICE C larger_score(C a, C b) {
  return b > a || b != b ? b : a;  // NaN counts as the largest
}

template <typename T>
struct Forward {
  using C = AccumulateType<T>;
  using Tile = AttentionTile<T>;
  struct Memory {
    typename Tile::Memory staged;
    C scores[Tile::kOwn][Tile::kPadded], kept[Tile::kOwn * Tile::kKept];
    C most[Tile::kOwn], sum[Tile::kOwn], factors[Tile::kOwn];
  };
  Operands<T> o;
  Results<T> results;
  C* logsumexp;

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    Memory& m = *reinterpret_cast<Memory*>(memory);
    const typename Tile::Owned owned(group, o.value.elements);
    for_each_segment(group, o.rows, Tile::kOwn, [&](int64_t head, const Segment& at) {
      if (at.sequence < 0) {
        results.write(owned, head, at, nullptr, nullptr);
        for (int r = group.rank(); r < at.count(); r += group.size()) logsumexp[head * o.rows.total + at.begin + r] = 0;
      } else {
        attend(group, m, owned, head, at);
      }
    });
  }

 private:
  TT_DEVICE void attend(Group& group, Memory& m, const typename Tile::Owned& owned, int64_t head,
                        const Segment& at) const {
    const int count = at.count();
    const int64_t first = at.begin - o.rows.begins[at.sequence], length = o.columns.lengths[at.sequence];
    const int64_t seen = o.causal && first + count < length ? first + count : length;
    C* const sums = results.sums(m.kept, head, at.begin);
    for (int r = group.rank(); r < Tile::kOwn; r += group.size()) {
      m.most[r] = -std::numeric_limits<C>::infinity();
      m.sum[r] = 0;
    }
    owned.for_each(count, o.value.elements, [&](int r, int64_t c) { sums[r * results.step() + c] = 0; });
    for (int64_t j = 0; j < seen; j += Tile::kOthers) {
      const int n = static_cast<int>(seen - j < Tile::kOthers ? seen - j : Tile::kOthers);
      const int64_t column = o.columns.begins[at.sequence] + j;
      Tile::multiply(group, m.staged, o.query, o.query.at(head, at.begin), count, o.key, o.key.at(head, column), n,
                     m.scores);
      const auto visible = [&](int r) {
        const int64_t limit = o.causal ? first + r + 1 - j : n;
        return static_cast<int>(limit < n ? limit : n);
      };
      weigh(group, m, visible, count);
      Tile::add(owned, m.scores, count, o.value, o.value.at(head, column), n, m.factors, sums, results.step());
    }
    group.sync();  // all threads have read the sums of a block before they are overwritten, and `factors`
    for (int r = group.rank(); r < count; r += group.size()) {
      m.factors[r] = m.sum[r] != 0 ? 1 / m.sum[r] : C(1);
      logsumexp[head * o.rows.total + at.begin + r] = m.most[r] + math::log(m.sum[r]);
    }
    group.sync();
    results.write(owned, head, at, sums, m.factors);
    group.sync();  // the next segment overwrites `factors`
  }

  // Replaces the products by the exponentials of the scores, and sets the factors for earlier sums.
  template <typename Visible>
  TT_DEVICE void weigh(Group& group, Memory& m, Visible visible, int count) const {
    constexpr C kNone = -std::numeric_limits<C>::infinity();
    for (int r = group.rank(); r < count; r += group.size()) {
      C next = m.most[r];
      for (int j = 0; j < visible(r); ++j) next = larger_score(next, m.scores[r][j] * o.scale);
      m.factors[r] = next == kNone ? C(1) : math::exp(m.most[r] - next);
      m.most[r] = next;
    }
    group.sync();
    for (int i = group.rank(); i < Tile::kOwn * Tile::kOthers; i += group.size()) {
      const int r = i / Tile::kOthers, j = i % Tile::kOthers;
      const bool hidden = r >= count || j >= visible(r) || m.most[r] == kNone;
      m.scores[r][j] = hidden ? C(0) : math::exp(m.scores[r][j] * o.scale - m.most[r]);
    }
    group.sync();
    for (int r = group.rank(); r < count; r += group.size()) {
      C sum = 0;
      for (int j = 0; j < visible(r); ++j) sum += m.scores[r][j];
      m.sum[r] = m.sum[r] * m.factors[r] + sum;
    }
  }
};

// What the gradients need beside the operands: for each head and query, the logsumexp of the scores, and the sum of
// output * grad, which is the row sum in softmax's gradient.
template <typename T>
struct Saved {
  using C = AccumulateType<T>;
  HeadRows<T> grad;
  const C *logsumexp, *delta;
};

// The weight of a score, and the gradient of the product of query and key, from this product and that of the gradient
// and the value. Both are 0 if the key is hidden from the query.
template <typename C>
struct Weight {
  C weight, grad;

  TT_DEVICE Weight(C product, C grad_product, C scale, C logsumexp, C delta, bool hidden) {
    const bool blind = hidden || logsumexp == -std::numeric_limits<C>::infinity();
    weight = blind ? C(0) : math::exp(product * scale - logsumexp);
    grad = blind ? C(0) : weight * (grad_product - delta) * scale;
  }
};

template <typename T>
struct QueryGradient {
  using C = AccumulateType<T>;
  using Tile = AttentionTile<T>;
  struct Memory {
    typename Tile::Memory staged;
    C products[Tile::kOwn][Tile::kPadded], grads[Tile::kOwn][Tile::kPadded], kept[Tile::kOwn * Tile::kKept];
  };
  Operands<T> o;
  Saved<T> saved;
  Results<T> results;

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    Memory& m = *reinterpret_cast<Memory*>(memory);
    const typename Tile::Owned owned(group, o.query.elements);
    for_each_segment(group, o.rows, Tile::kOwn, [&](int64_t head, const Segment& at) {
      C* const sums = at.sequence < 0 ? nullptr : results.sums(m.kept, head, at.begin);
      if (sums) differentiate(group, m, owned, head, at, sums);
      results.write(owned, head, at, sums, nullptr);
    });
  }

 private:
  TT_DEVICE void differentiate(Group& group, Memory& m, const typename Tile::Owned& owned, int64_t head,
                               const Segment& at, C* sums) const {
    const int count = at.count();
    const int64_t first = at.begin - o.rows.begins[at.sequence], length = o.columns.lengths[at.sequence];
    const int64_t seen = o.causal && first + count < length ? first + count : length;
    const int64_t row = head * o.rows.total + at.begin;
    owned.for_each(count, o.query.elements, [&](int r, int64_t c) { sums[r * results.step() + c] = 0; });
    for (int64_t j = 0; j < seen; j += Tile::kOthers) {
      const int n = static_cast<int>(seen - j < Tile::kOthers ? seen - j : Tile::kOthers);
      const int64_t column = o.columns.begins[at.sequence] + j;
      Tile::multiply(group, m.staged, o.query, o.query.at(head, at.begin), count, o.key, o.key.at(head, column), n,
                     m.products);
      Tile::multiply(group, m.staged, saved.grad, saved.grad.at(head, at.begin), count, o.value,
                     o.value.at(head, column), n, m.grads);
      for (int i = group.rank(); i < Tile::kOwn * Tile::kOthers; i += group.size()) {
        const int r = i / Tile::kOthers, c = i % Tile::kOthers;
        C& product = m.products[r][c];
        const bool inside = r < count && c < n;
        const bool hidden = !inside || (o.causal && j + c > first + r);
        product = Weight<C>(product, m.grads[r][c], o.scale, inside ? saved.logsumexp[row + r] : C(0),
                            inside ? saved.delta[row + r] : C(0), hidden)
                      .grad;
      }
      group.sync();
      Tile::add(owned, m.products, count, o.key, o.key.at(head, column), n, nullptr, sums, results.step());
    }
  }
};

template <typename T>
struct KeyGradient {
  using C = AccumulateType<T>;
  using Tile = AttentionTile<T>;
  struct Memory {
    typename Tile::Memory staged;
    C products[Tile::kOwn][Tile::kPadded], grads[Tile::kOwn][Tile::kPadded];
    C key_sums[Tile::kOwn * Tile::kKept], value_sums[Tile::kOwn * Tile::kKept];
  };
  Operands<T> o;
  Saved<T> saved;
  Results<T> keys, values;

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    Memory& m = *reinterpret_cast<Memory*>(memory);
    const typename Tile::Owned key_owned(group, o.key.elements), value_owned(group, o.value.elements);
    for_each_segment(group, o.columns, Tile::kOwn, [&](int64_t head, const Segment& at) {
      const bool inside = at.sequence >= 0;
      C* const key_sums = inside ? keys.sums(m.key_sums, head, at.begin) : nullptr;
      C* const value_sums = inside ? values.sums(m.value_sums, head, at.begin) : nullptr;
      if (inside) differentiate(group, m, key_owned, value_owned, head, at, key_sums, value_sums);
      keys.write(key_owned, head, at, key_sums, nullptr);
      values.write(value_owned, head, at, value_sums, nullptr);
    });
  }

 private:
  TT_DEVICE void differentiate(Group& group, Memory& m, const typename Tile::Owned& key_owned,
                               const typename Tile::Owned& value_owned, int64_t head, const Segment& at, C* key_sums,
                               C* value_sums) const {
    const int count = at.count();
    const int64_t first = at.begin - o.columns.begins[at.sequence], length = o.rows.lengths[at.sequence];
    key_owned.for_each(count, o.key.elements, [&](int r, int64_t c) { key_sums[r * keys.step() + c] = 0; });
    value_owned.for_each(count, o.value.elements, [&](int r, int64_t c) { value_sums[r * values.step() + c] = 0; });
    for (int64_t i = o.causal ? first : 0; i < length; i += Tile::kOthers) {  // earlier queries do not see the keys
      const int n = static_cast<int>(length - i < Tile::kOthers ? length - i : Tile::kOthers);
      const int64_t token = o.rows.begins[at.sequence] + i, row = head * o.rows.total + token;
      Tile::multiply(group, m.staged, o.key, o.key.at(head, at.begin), count, o.query, o.query.at(head, token), n,
                     m.products);
      Tile::multiply(group, m.staged, o.value, o.value.at(head, at.begin), count, saved.grad,
                     saved.grad.at(head, token), n, m.grads);
      for (int item = group.rank(); item < Tile::kOwn * Tile::kOthers; item += group.size()) {
        const int key = item / Tile::kOthers, query = item % Tile::kOthers;
        const bool inside = key < count && query < n;
        const bool hidden = !inside || (o.causal && first + key > i + query);
        const Weight<C> w(m.products[key][query], m.grads[key][query], o.scale,
                          inside ? saved.logsumexp[row + query] : C(0), inside ? saved.delta[row + query] : C(0),
                          hidden);
        m.products[key][query] = w.grad;
        m.grads[key][query] = w.weight;
      }
      group.sync();
      Tile::add(key_owned, m.products, count, o.query, o.query.at(head, token), n, nullptr, key_sums, keys.step());
      Tile::add(value_owned, m.grads, count, saved.grad, saved.grad.at(head, token), n, nullptr, value_sums,
                values.step());
    }
  }
};

template <typename F>
void launch_tiles(const Queue& queue, const SequenceTable& s, int64_t heads, F f) {
  const int64_t tiles = (s.total + F::Tile::kOwn - 1) / F::Tile::kOwn;
  for_each_shared_group<sizeof(typename F::Memory), kThreads>(queue, heads * tiles, kThreads * 4, f);
}

// Returns the tensor itself if its elements are adjacent, else a contiguous copy.
Tensor with_adjacent_elements(const Tensor& t) { return t.stride(2) == 1 || t.size(2) <= 1 ? t : contiguous(t); }

template <typename T>
HeadRows<T> rows_of(const Tensor& t) {
  return {t.data_as<T>(), t.stride(0), t.stride(1), t.size(2)};
}

// The operands of a call, and the tensors that own them.
struct AttentionCall {
  Sequences rows, columns;
  Tensor query, key, value;
  int64_t heads, depth, width;

  AttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& query_offsets,
                const Tensor& query_lengths, const Tensor& key_offsets, const Tensor& key_lengths)
      : rows(query_offsets, query_lengths, q.size(1)),
        columns(key_offsets, key_lengths, k.size(1)),
        query(with_adjacent_elements(q)),
        key(with_adjacent_elements(k)),
        value(with_adjacent_elements(v)),
        heads(q.size(0)),
        depth(q.size(2)),
        width(v.size(2)) {
    check(std::max(depth, width) <= INT_MAX, "heads of ", std::max(depth, width), " elements are too large");
    check(depth + width > 0 || k.size(1) <= INT_MAX, "expected at most ", INT_MAX, " keys without elements, got ",
          k.size(1));
  }
  template <typename T>
  Operands<T> operands(bool causal, double scale) const {
    return {rows_of<T>(query),
            rows_of<T>(key),
            rows_of<T>(value),
            rows.table(),
            columns.table(),
            causal,
            static_cast<AccumulateType<T>>(scale)};
  }
};

// A result of the kernels, in the type to compute in if it is too long for shared memory.
class ResultBuffer {
 public:
  explicit ResultBuffer(const Tensor& out)
      : is_wide_(out.size(2) * static_cast<int64_t>(item_size(accumulate_type(out.dtype()))) > 512),
        buffer_(out, is_wide_ ? accumulate_type(out.dtype()) : out.dtype()) {}
  template <typename T>
  Results<T> results() const {
    const Tensor& t = buffer_.tensor();
    using C = AccumulateType<T>;
    return {is_wide_ ? nullptr : t.data_as<T>(), is_wide_ ? t.data_as<C>() : nullptr, t.size(1), t.size(2)};
  }
  void copy_to_output() const { buffer_.copy_to_output(); }

 private:
  bool is_wide_;
  AccumulateBuffer buffer_;
};

// The logsumexp of scores of queries and keys without elements, whose number memory does not bound.
template <typename C>
void count_keys(const Queue& queue, SequenceTable rows, SequenceTable columns, int64_t heads, bool causal, C scale,
                C* logsumexp) {
  for_each(queue, heads * rows.total, [=] TT_DEVICE(int64_t i) {
    const int64_t token = i % rows.total, b = rows.last_before(token);
    if (!rows.contains(b, token)) {
      logsumexp[i] = 0;
      return;
    }
    const int64_t row = token - rows.begins[b];
    const int64_t seen = causal && row + 1 < columns.lengths[b] ? row + 1 : columns.lengths[b];
    logsumexp[i] = 0 * scale + math::log(static_cast<C>(seen));
  });
}

template <typename T>
void row_products(const Queue& queue, const Tensor& a, const Tensor& b, const Tensor& out) {
  using C = AccumulateType<T>;
  const T *x = a.data_as<T>(), *y = b.data_as<T>();
  C* const to = out.data_as<C>();
  const int64_t width = a.size(2);
  for_each_group(queue, out.numel(), width, [=] TT_DEVICE(Group & group) {
    const int64_t from = group.index() * width;
    C sum = 0;
    for (int64_t i = group.rank(); i < width; i += group.size())
      sum += convert<C>(x[from + i]) * convert<C>(y[from + i]);
    sum = group.reduce(sum, Add());
    if (group.rank() == 0) to[group.index()] = sum;
  });
}

template <typename T>
void differentiate(const AttentionCall& call, const Tensor& grad, const Tensor& output, const Tensor& logsumexp,
                   bool causal, double scale, const ResultBuffer& dq, const ResultBuffer& dk, const ResultBuffer& dv) {
  const Queue queue = queue_of(grad);
  const Tensor delta = empty(logsumexp.sizes(), logsumexp.dtype(), grad.device());
  row_products<T>(queue, grad, output, delta);
  using C = AccumulateType<T>;
  const Operands<T> operands = call.operands<T>(causal, scale);
  const Saved<T> saved{rows_of<T>(grad), logsumexp.data_as<C>(), delta.data_as<C>()};
  launch_tiles(queue, operands.rows, call.heads, QueryGradient<T>{operands, saved, dq.results<T>()});
  launch_tiles(queue, operands.columns, call.heads, KeyGradient<T>{operands, saved, dk.results<T>(), dv.results<T>()});
}

}  // namespace

void jagged_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& query_offsets,
                              const Tensor& query_lengths, const Tensor& key_offsets, const Tensor& key_lengths,
                              bool is_causal, double scale, Tensor& output, Tensor& logsumexp) {
  const AttentionCall call(query, key, value, query_offsets, query_lengths, key_offsets, key_lengths);
  if (logsumexp.numel() == 0) return;
  const Queue queue = queue_of(logsumexp);
  const AccumulateBuffer sums(logsumexp, accumulate_type(query.dtype()));
  const ResultBuffer results(output);
  with_floating(query.dtype(), [&]<typename T>(std::type_identity<T>) {
    using C = AccumulateType<T>;
    const Operands<T> operands = call.operands<T>(is_causal, scale);
    if (call.depth + call.width == 0) {
      return count_keys<C>(queue, operands.rows, operands.columns, call.heads, is_causal, operands.scale,
                           sums.data<C>());
    }
    launch_tiles(queue, operands.rows, call.heads, Forward<T>{operands, results.results<T>(), sums.data<C>()});
  });
  results.copy_to_output();
  sums.copy_to_output();
}

void jagged_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& query_offsets, const Tensor& query_lengths, const Tensor& key_offsets,
                               const Tensor& key_lengths, const Tensor& output, const Tensor& logsumexp, bool is_causal,
                               double scale, Tensor& query_grad, Tensor& key_grad, Tensor& value_grad) {
  const AttentionCall call(query, key, value, query_offsets, query_lengths, key_offsets, key_lengths);
  if (call.depth + call.width == 0 || call.heads == 0) return;  // no gradient has an element
  const ResultBuffer dq(query_grad), dk(key_grad), dv(value_grad);
  with_floating(query.dtype(), [&]<typename T>(std::type_identity<T>) {
    differentiate<T>(call, contiguous_as(grad, query.dtype()), contiguous_as(output, query.dtype()),
                     contiguous_as(logsumexp, accumulate_type(query.dtype())), is_causal, scale, dq, dk, dv);
  });
  dq.copy_to_output();
  dk.copy_to_output();
  dv.copy_to_output();
}

}  // namespace tt::cuda
