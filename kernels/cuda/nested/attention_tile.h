// AttentionTile: products of blocks of tokens in a group's shared memory, for attention of sequences.
//
// A group computes for kOwn tokens of its own (queries, or keys in their gradient), with blocks of kOthers others: a
// matrix of the scalar products of both (multiply), and sums of the others' elements weighted by such a matrix (add).
// All threads of the group must call each function. A matrix may be read by other threads only after a sync();
// multiply() ends with one.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch/floating.h"

namespace tt::cuda {

// An operand (heads, tokens, elements) whose elements are adjacent. Captured by value.
template <typename T>
struct HeadRows {
  const T* data;
  int64_t head_stride, stride, elements;

  TT_FUNCTION const T* at(int64_t head, int64_t token) const { return data + head * head_stride + token * stride; }
};

template <typename T>
struct AttentionTile {
  using C = AccumulateType<T>;
  static constexpr int kOwn = 16, kOthers = 32;
  static constexpr int kDepth = 32;            // elements that are staged at a time
  static constexpr int kBlock = 4;             // own tokens that a thread computes with an element that it has loaded
  static constexpr int kPadded = kOthers + 1;  // so that the rows' elements are in different memory banks
  // Elements of a result per token that fit into shared memory. Longer results are summed in global memory.
  static constexpr int kKept = 512 / sizeof(C);
  static_assert(kDepth == kOthers && kOwn % kBlock == 0);

  using Matrix = C (*)[kPadded];
  struct Memory {
    C own[kOwn][kPadded], other[kOthers][kPadded];  // staged operands
  };

  // products[r][j] = the scalar product of own row r and other row j, for all of the matrix: 0 beyond `m` and `n` rows.
  TT_DEVICE static void multiply(Group& group, Memory& memory, const HeadRows<T>& own, const T* a, int m,
                                 const HeadRows<T>& other, const T* b, int n, Matrix products) {
    const int rank = group.rank(), size = group.size();
    for (int64_t d = 0; d == 0 || d < own.elements; d += kDepth) {
      const int depth = static_cast<int>(own.elements - d < kDepth ? own.elements - d : kDepth);
      group.sync();  // the staged operands, and the matrix of an earlier call, have been read
      stage(rank, size, memory.own, kOwn, a + d, own.stride, m, depth);
      stage(rank, size, memory.other, kOthers, b + d, other.stride, n, depth);
      group.sync();
      for (int item = rank; item < kOwn / kBlock * kOthers; item += size) {
        const int j = item % kOthers, first = item / kOthers * kBlock;
        C sums[kBlock] = {};
        for (int e = 0; e < depth; ++e) {
          const C y = memory.other[j][e];
          TT_UNROLL for (int r = 0; r < kBlock; ++r) sums[r] += memory.own[first + r][e] * y;
        }
        TT_UNROLL for (int r = 0; r < kBlock; ++r) {
          products[first + r][j] = d == 0 ? sums[r] : products[first + r][j] + sums[r];
        }
      }
    }
    group.sync();
  }

  // Elements of results [m][width], of which each is accessed by one thread.
  struct Owned {
    int column, columns, first, step;

    TT_DEVICE Owned(const Group& group, int64_t width)
        : columns(static_cast<int>(width < group.size() ? (width < 1 ? 1 : width) : group.size())) {
      const int lanes = group.size() / columns;
      column = group.rank() % columns;
      first = group.rank() / columns < lanes ? group.rank() / columns * kBlock : kOwn;
      step = lanes * kBlock;
    }
    // Calls f(row, column) for the elements of this thread.
    template <typename F>
    TT_DEVICE void for_each(int m, int64_t width, F f) const {
      for (int from = first; from < m; from += step) {
        for (int64_t c = column; c < width; c += columns) {
          for (int r = from; r < m && r < from + kBlock; ++r) f(r, c);
        }
      }
    }
  };

  // to[r][c] = to[r][c] * factors[r] + the sum over j < n of weights[r][j] * element c of other row j, where the rows
  // of `to` are `to_step` apart. Without `factors`, they are 1.
  TT_DEVICE static void add(const Owned& owned, Matrix weights, int m, const HeadRows<T>& other, const T* b, int n,
                            const C* factors, C* to, int64_t to_step) {
    for (int from = owned.first; from < m; from += owned.step) {
      for (int64_t c = owned.column; c < other.elements; c += owned.columns) {
        C sums[kBlock] = {};
        for (int j = 0; j < n; ++j) {
          const C y = convert<C>(b[j * other.stride + c]);
          TT_UNROLL for (int r = 0; r < kBlock; ++r) sums[r] += weights[from + r][j] * y;
        }
        TT_UNROLL for (int r = 0; r < kBlock; ++r) {
          if (from + r >= m) continue;
          C& total = to[(from + r) * to_step + c];
          total = total * (factors ? factors[from + r] : C(1)) + sums[r];
        }
      }
    }
  }

 private:
  TT_DEVICE static void stage(int rank, int size, C (*to)[kPadded], int rows, const T* from, int64_t stride, int m,
                              int depth) {
    for (int i = rank; i < rows * kDepth; i += size) {
      const int r = i / kDepth, e = i % kDepth;
      to[r][e] = r < m && e < depth ? convert<C>(from[r * stride + e]) : C(0);
    }
  }
};

}  // namespace tt::cuda
