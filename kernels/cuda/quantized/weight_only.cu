// Products of floating-point rows with weights of 8 or 4 bits, which are converted while they are read. Sums are
// float32. With few rows, one group of threads computes a column of the result; with many, a tile of it.
#include <bit>

#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/shared_groups.h"
#include "kernels/cuda/quantized/operands.h"

namespace tt::cuda {
namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kPackedWeights = 32;  // of 4 bits in 16 bytes: byte i has those of i and 16 + i

// Types of weights, of which a thread loads kPerWord with a word:
//   word(j, w)             word w of row j
//   column(w, e)           the column of weight e of word w; of int8, it may exceed the row. A block of kPackedWeights
//                          columns consists of whole words
//   factors(j, w)          what value() needs to convert the word
//   value(word, e, f)      the weight, to be multiplied by factor(j)
struct Int8Weights {
  static constexpr int kPerWord = 4;
  struct Factors {};
  const uint8_t* data;
  int64_t k;
  PerColumn<float> scales;

  TT_FUNCTION int64_t words() const { return (k + 3) / 4; }
  TT_DEVICE uint32_t word(int64_t j, int64_t w) const { return load_word(data + j * k + 4 * w, k - 4 * w); }
  TT_DEVICE static int64_t column(int64_t w, int e) { return 4 * w + e; }
  TT_DEVICE Factors factors(int64_t, int64_t) const { return {}; }
  TT_DEVICE static float value(uint32_t word, int e, Factors) {
    return static_cast<float>(static_cast<int8_t>(word >> (8 * e)));
  }
  TT_DEVICE float factor(int64_t j) const { return scales.at(j); }
};

struct Int4Weights {
  static constexpr int kPerWord = 8;
  struct Factors {
    float scale, zero;
  };
  const uint8_t* data;
  int64_t k, n;
  int group_shift;      // a group has 2^group_shift columns, and at least a block
  const float* scales;  // (groups, n, 2): scales and zeros

  TT_FUNCTION int64_t words() const { return k / kPerWord; }
  TT_DEVICE uint32_t word(int64_t j, int64_t w) const { return load_word(data + j * k / 2 + 4 * w, 4); }
  TT_DEVICE static int64_t column(int64_t w, int e) {
    return w / 4 * kPackedWeights + w % 4 * 4 + e % 4 + e / 4 * (kPackedWeights / 2);
  }
  TT_DEVICE Factors factors(int64_t j, int64_t w) const {
    const float* const of_group = scales + ((w * kPerWord >> group_shift) * n + j) * 2;
    return {of_group[0], of_group[1]};
  }
  TT_DEVICE static float value(uint32_t word, int e, Factors f) {
    const int q = static_cast<int>(word >> (8 * (e % 4) + 4 * (e / 4)) & 15);
    return static_cast<float>(q - 8) * f.scale + f.zero;
  }
  TT_DEVICE float factor(int64_t) const { return 1; }
};

// out[i][j] = the sum over p of x[i][p] * weight p of row j, times weights.factor(j), for m <= kFewRows rows.
template <typename Weights>
void multiply_few_rows(const Queue& queue, int64_t m, int64_t n, int64_t k, const float* x, Weights weights,
                       float* out) {
  for_each_group(queue, n, weights.words(), [=] TT_DEVICE(Group & group) {
    const int64_t j = group.index();
    float sums[kFewRows] = {};
    for (int64_t w = group.rank(); w < weights.words(); w += group.size()) {
      const uint32_t word = weights.word(j, w);
      const auto factors = weights.factors(j, w);
      TT_UNROLL for (int e = 0; e < Weights::kPerWord; ++e) {
        const int64_t p = weights.column(w, e);
        if (p >= k) continue;
        const float weight = weights.value(word, e, factors);
        TT_UNROLL for (int i = 0; i < kFewRows; ++i) {
          if (i < m) sums[i] += x[i * k + p] * weight;
        }
      }
    }
    TT_UNROLL for (int i = 0; i < kFewRows; ++i) {
      if (i >= m) continue;
      const float sum = group.reduce(sums[i], Add());
      if (group.rank() == 0) out[i * n + j] = sum * weights.factor(j);
    }
  });
}

// A tile of the same result, for any number of rows.
template <typename Weights>
struct TileProduct {
  static constexpr int kTile = 64;               // rows and columns of a tile
  static constexpr int kDepth = kPackedWeights;  // elements that are staged at a time
  static constexpr int kWords = kDepth / Weights::kPerWord;
  static constexpr int kBlock = 4;  // rows and columns of a thread's part of a tile
  static constexpr int kParts = kTile / kBlock;
  struct Memory {
    float x[kTile][kDepth + 1], w[kTile][kDepth + 1];
  };

  int64_t m, n, k;
  const float* x;
  Weights weights;
  float* out;

  TT_FUNCTION static int64_t tiles(int64_t size) { return (size + kTile - 1) / kTile; }

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    Memory& staged = *reinterpret_cast<Memory*>(memory);
    const int64_t row = group.index() / tiles(n) * kTile, column = group.index() % tiles(n) * kTile;
    for (int first = 0; first < kParts * kParts; first += group.size()) {  // once, in groups of kParts^2 threads
      compute_part(group, staged, first + group.rank(), row, column);
    }
  }

 private:
  TT_DEVICE void compute_part(Group& group, Memory& staged, int part, int64_t row, int64_t column) const {
    const int i = part / kParts, j = part % kParts;  // rows i + kParts * r and columns j + kParts * c
    const bool active = part < kParts * kParts;
    float sums[kBlock][kBlock] = {};
    for (int64_t p = 0; p < k; p += kDepth) {
      group.sync();  // all threads have read the staged elements
      for (int s = group.rank(); s < kTile * kDepth; s += group.size()) {
        const int r = s / kDepth, e = s % kDepth;
        staged.x[r][e] = row + r < m && p + e < k ? x[(row + r) * k + p + e] : 0.0f;
      }
      for (int s = group.rank(); s < kTile * kWords; s += group.size()) {
        const int r = s / kWords;
        const int64_t w = p / Weights::kPerWord + s % kWords, row_of_weight = column + r < n ? column + r : 0;
        const bool inside = column + r < n && w < weights.words();
        const uint32_t word = inside ? weights.word(row_of_weight, w) : 0;
        const auto factors = weights.factors(row_of_weight, inside ? w : 0);
        TT_UNROLL for (int e = 0; e < Weights::kPerWord; ++e) {
          staged.w[r][weights.column(w, e) - p] = weights.value(word, e, factors);
        }
      }
      group.sync();
      if (!active) continue;
      const int depth = static_cast<int>(k - p < kDepth ? k - p : kDepth);
      for (int e = 0; e < depth; ++e) {
        float a[kBlock], b[kBlock];
        TT_UNROLL for (int r = 0; r < kBlock; ++r) a[r] = staged.x[i + kParts * r][e];
        TT_UNROLL for (int c = 0; c < kBlock; ++c) b[c] = staged.w[j + kParts * c][e];
        TT_UNROLL for (int r = 0; r < kBlock; ++r) {
          TT_UNROLL for (int c = 0; c < kBlock; ++c) sums[r][c] += a[r] * b[c];
        }
      }
    }
    if (!active) return;
    TT_UNROLL for (int r = 0; r < kBlock; ++r) {
      TT_UNROLL for (int c = 0; c < kBlock; ++c) {
        const int64_t at = row + i + kParts * r, to = column + j + kParts * c;
        if (at < m && to < n) out[at * n + to] = sums[r][c] * weights.factor(to);
      }
    }
  }
};

template <typename Weights>
void multiply(int64_t m, int64_t n, int64_t k, const Tensor& input, const Weights& weights, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous_as(input, DType::kFloat32);
  const AccumulateBuffer result(out, DType::kFloat32);
  const Queue queue = queue_of(out);
  if (m <= kFewRows) {
    multiply_few_rows(queue, m, n, k, x.data_as<float>(), weights, result.data<float>());
  } else {
    using Product = TileProduct<Weights>;
    constexpr int kThreads = Product::kParts * Product::kParts;
    for_each_shared_group<sizeof(typename Product::Memory), kThreads>(
        queue, Product::tiles(m) * Product::tiles(n), kThreads * 16,
        Product{m, n, k, x.data_as<float>(), weights, result.data<float>()});
  }
  result.copy_to_output();
}

void pack(const Queue& queue, int64_t bytes, const int32_t* from, uint8_t* to) {
  constexpr int64_t kHalf = kPackedWeights / 2;
  for_each(queue, bytes, [=] TT_DEVICE(int64_t i) {
    const int64_t at = i / kHalf * kPackedWeights + i % kHalf;
    to[i] = static_cast<uint8_t>((from[at] & 15) | (from[at + kHalf] & 15) << 4);
  });
}

}  // namespace

void int8_weight_mm(const Tensor& input, const Tensor& weight, const Tensor& scales, Tensor& out) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const Tensor s = column_numbers(scales, n, "scales"), w = contiguous_as(weight, DType::kInt8);
  if (k == 0) return fill_zeros(queue_of(out), out);
  multiply(input.numel() / k, n, k, input, Int8Weights{static_cast<const uint8_t*>(w.data()), k, per_column<float>(s)},
           out);
}

void int4_pack(const Tensor& weight, Tensor& out) {
  const Tensor w = contiguous_as(weight, DType::kInt32);
  pack(queue_of(out), out.numel(), w.data_as<int32_t>(), out.data_as<uint8_t>());
}

void int4_weight_mm(const Tensor& input, const Tensor& weight, int64_t group_size, const Tensor& scales_and_zeros,
                    Tensor& out) {
  const int64_t n = weight.size(0), k = input.size(1);
  const Tensor w = contiguous_as(weight, DType::kUInt8), s = contiguous_as(scales_and_zeros, DType::kFloat32);
  multiply(
      input.size(0), n, k, input,
      Int4Weights{w.data_as<uint8_t>(), k, n, std::countr_zero(static_cast<uint64_t>(group_size)), s.data_as<float>()},
      out);
}

}  // namespace tt::cuda
