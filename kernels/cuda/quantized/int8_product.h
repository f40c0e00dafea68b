// Int8Product: sums of products of 8-bit integers, whose 32-bit sums wrap around, by tiles of the result.
//
// The result of row i and column j of a group is the sum over p of (a[i][p] - zero_point) * (b[j][p] - points[j]).
// Unsigned elements of `a` are multiplied as signed ones, as is 128 less of their zero point. The rows are a type A
// with
//   word(g, i, p)   the signed elements p to p + 3 of row i for group g of columns, 0 beyond the row's end
//   shift           128 if the elements are unsigned, else 0
// and the results are passed to a type Store: store(i, column, sum), where columns are counted over all groups.
#pragma once

#include "kernels/cuda/launch/shared_groups.h"
#include "kernels/cuda/quantized/dot4.h"
#include "kernels/cuda/quantized/operands.h"

namespace tt::cuda {

// Contiguous rows of `depth` elements. Captured by value.
struct Int8Rows {
  const uint8_t* data;
  int64_t depth;
  int32_t shift;  // 128: the elements are uint8

  TT_DEVICE uint32_t word(int64_t, int64_t row, int64_t p) const {
    const uint32_t word = load_word(data + row * depth + p, depth - p);
    if (shift == 0) return word;
    const int64_t n = depth - p;
    return word ^ (n >= 4 ? 0x80808080u : n <= 0 ? 0u : 0x80808080u >> (8 * (4 - n)));
  }
};

inline constexpr uint32_t kOnes = 0x01010101u;  // four elements, with which dot4() adds four others

template <typename A, typename Store>
struct Int8Product {
  static constexpr int kTile = 64;  // rows and columns of a tile
  static constexpr int kWords = 8;  // of four elements, that are staged at a time
  static constexpr int kBlock = 4;  // rows and columns of a thread's part of a tile
  static constexpr int kParts = kTile / kBlock;
  struct Memory {
    uint32_t a[kTile][kWords + 1], b[kTile][kWords + 1];  // an odd distance: rows are in different memory banks
  };

  A a;
  Int8Rows b;                      // rows of all groups
  PerColumn<int32_t> zero_points;  // of the rows of `a`
  PerColumn<int32_t> points;       // of the columns of all groups
  int64_t m, n, k, groups;         // n: columns of a group
  Store store;

  TT_FUNCTION static int64_t tiles(int64_t size) { return (size + kTile - 1) / kTile; }

  // Stores a result from sums of products, and the sums of the elements of its row and of its column.
  TT_DEVICE void finish(int64_t row, int64_t column, uint32_t sum, uint32_t a_sum, uint32_t b_sum) const {
    const auto zero_point = static_cast<uint32_t>(zero_points.at(row) - a.shift);
    const auto point = static_cast<uint32_t>(points.at(column));
    const uint32_t centered = a_sum - static_cast<uint32_t>(k) * zero_point;
    store(row, column, static_cast<int32_t>(sum - zero_point * b_sum - point * centered));
  }

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    Memory& staged = *reinterpret_cast<Memory*>(memory);
    const int64_t columns = tiles(n), index = group.index();
    const int64_t row = index / columns % tiles(m) * kTile, column = index % columns * kTile;
    const int64_t of = index / columns / tiles(m);
    for (int first = 0; first < kParts * kParts; first += group.size()) {  // once, in groups of kParts^2 threads
      compute_part(group, staged, first + group.rank(), of, row, column);
    }
  }

 private:
  TT_DEVICE void compute_part(Group& group, Memory& staged, int part, int64_t of, int64_t row, int64_t column) const {
    const int i = part / kParts, j = part % kParts;  // rows i + kParts * r and columns j + kParts * c
    const bool active = part < kParts * kParts;
    uint32_t sums[kBlock][kBlock] = {}, a_sums[kBlock] = {}, b_sums[kBlock] = {};
    for (int64_t p = 0; p < k; p += 4 * kWords) {
      group.sync();  // all threads have read the staged words
      for (int s = group.rank(); s < kTile * kWords; s += group.size()) {
        const int r = s / kWords, w = s % kWords;
        staged.a[r][w] = row + r < m ? a.word(of, row + r, p + 4 * w) : 0;
        staged.b[r][w] = column + r < n ? b.word(of, of * n + column + r, p + 4 * w) : 0;
      }
      group.sync();
      if (!active) continue;
      TT_UNROLL for (int w = 0; w < kWords; ++w) {
        uint32_t x[kBlock], y[kBlock];
        TT_UNROLL for (int r = 0; r < kBlock; ++r) x[r] = staged.a[i + kParts * r][w];
        TT_UNROLL for (int c = 0; c < kBlock; ++c) y[c] = staged.b[j + kParts * c][w];
        TT_UNROLL for (int r = 0; r < kBlock; ++r) {
          a_sums[r] = dot4(x[r], kOnes, a_sums[r]);
          b_sums[r] = dot4(y[r], kOnes, b_sums[r]);
          TT_UNROLL for (int c = 0; c < kBlock; ++c) sums[r][c] = dot4(x[r], y[c], sums[r][c]);
        }
      }
    }
    if (!active) return;
    TT_UNROLL for (int r = 0; r < kBlock; ++r) {
      TT_UNROLL for (int c = 0; c < kBlock; ++c) {
        const int64_t at = row + i + kParts * r, to = column + j + kParts * c;
        if (at < m && to < n) finish(at, of * n + to, sums[r][c], a_sums[r], b_sums[c]);
      }
    }
  }
};

// With few rows, tiles would be mostly empty: one group per column, whose threads share its elements.
inline constexpr int kFewInt8Rows = 4;

struct FewSums {
  uint32_t at[kFewInt8Rows];
};
struct AddFewSums {
  TT_FUNCTION FewSums operator()(FewSums a, const FewSums& b) const {
    for (int i = 0; i < kFewInt8Rows; ++i) a.at[i] += b.at[i];
    return a;
  }
};

template <typename A, typename Store>
void multiply_few_rows(const Queue& queue, const Int8Product<A, Store>& product) {
  for_each_group(queue, product.n * product.groups, product.k / 4, [=] TT_DEVICE(Group & group) {
    const int64_t column = group.index(), of = column / product.n;
    FewSums sums{}, a_sums{};
    uint32_t b_sum = 0;
    for (int64_t p = 4 * group.rank(); p < product.k; p += 4 * group.size()) {
      const uint32_t y = product.b.word(of, column, p);
      b_sum = dot4(y, kOnes, b_sum);
      TT_UNROLL for (int i = 0; i < kFewInt8Rows; ++i) {
        if (i >= product.m) continue;
        const uint32_t x = product.a.word(of, i, p);
        sums.at[i] = dot4(x, y, sums.at[i]);
        a_sums.at[i] = dot4(x, kOnes, a_sums.at[i]);
      }
    }
    sums = group.reduce(sums, AddFewSums());
    a_sums = group.reduce(a_sums, AddFewSums());
    b_sum = group.reduce(b_sum, Add());
    if (group.rank() != 0) return;
    TT_UNROLL for (int i = 0; i < kFewInt8Rows; ++i) {
      if (i < product.m) product.finish(i, column, sums.at[i], a_sums.at[i], b_sum);
    }
  });
}

template <typename A, typename Store>
void multiply_int8(const Queue& queue, const Int8Product<A, Store>& product) {
  using Product = Int8Product<A, Store>;
  if (product.m <= kFewInt8Rows) return multiply_few_rows(queue, product);
  constexpr int kThreads = Product::kParts * Product::kParts;
  const int64_t tiles = Product::tiles(product.m) * Product::tiles(product.n) * product.groups;
  for_each_shared_group<sizeof(typename Product::Memory), kThreads>(queue, tiles, kThreads * 16, product);
}

}  // namespace tt::cuda
