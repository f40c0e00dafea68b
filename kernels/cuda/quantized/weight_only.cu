// Products of floating-point rows with weights of 8 or 4 bits, which are converted while they are read. Sums are
// float32. With few rows, one group of threads computes a column of the result; with many, a tile of it.
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/shared_groups.h"
#include "kernels/cuda/quantized/operands.h"

namespace tt::cuda {
namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kPackedWeights = 32;  // of 4 bits in 16 bytes: byte i has those of i and 16 + i

// Types of weights: at(j, p) is element p of row j before it is multiplied by factor(j).
struct Int8Weights {
  const int8_t* data;
  int64_t k;
  PerColumn<float> scales;

  TT_DEVICE float at(int64_t j, int64_t p) const { return static_cast<float>(data[j * k + p]); }
  TT_DEVICE float factor(int64_t j) const { return scales.at(j); }
};

struct Int4Weights {
  const uint8_t* data;
  int64_t k, n, group_size;
  const float* scales;  // (groups, n, 2): scales and zeros

  TT_DEVICE float at(int64_t j, int64_t p) const {
    const auto place = static_cast<int>(p % kPackedWeights);
    const int byte = data[j * k / 2 + p / kPackedWeights * (kPackedWeights / 2) + place % (kPackedWeights / 2)];
    const int q = place < kPackedWeights / 2 ? byte & 15 : byte >> 4;
    const float* const scale = scales + (p / group_size * n + j) * 2;
    return static_cast<float>(q - 8) * scale[0] + scale[1];
  }
  TT_DEVICE float factor(int64_t) const { return 1; }
};

// out[i][j] = the sum over p of x[i][p] * weights.at(j, p), times weights.factor(j), for m <= kFewRows rows.
template <typename Weights>
void multiply_few_rows(const Queue& queue, int64_t m, int64_t n, int64_t k, const float* x, Weights weights,
                       float* out) {
  for_each_group(queue, n, k, [=] TT_DEVICE(Group & group) {
    const int64_t j = group.index();
    float sums[kFewRows] = {};
    for (int64_t p = group.rank(); p < k; p += group.size()) {
      const float weight = weights.at(j, p);
      TT_UNROLL for (int i = 0; i < kFewRows; ++i) {
        if (i < m) sums[i] += x[i * k + p] * weight;
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
  static constexpr int kTile = 64;   // rows and columns of a tile
  static constexpr int kDepth = 32;  // elements that are staged at a time
  static constexpr int kBlock = 4;   // rows and columns of a thread's part of a tile
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
        staged.w[r][e] = column + r < n && p + e < k ? weights.at(column + r, p + e) : 0.0f;
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
  multiply(input.numel() / k, n, k, input, Int8Weights{w.data_as<int8_t>(), k, per_column<float>(s)}, out);
}

void int4_pack(const Tensor& weight, Tensor& out) {
  const Tensor w = contiguous_as(weight, DType::kInt32);
  pack(queue_of(out), out.numel(), w.data_as<int32_t>(), out.data_as<uint8_t>());
}

void int4_weight_mm(const Tensor& input, const Tensor& weight, int64_t group_size, const Tensor& scales_and_zeros,
                    Tensor& out) {
  const int64_t n = weight.size(0), k = input.size(1);
  const Tensor w = contiguous_as(weight, DType::kUInt8), s = contiguous_as(scales_and_zeros, DType::kFloat32);
  multiply(input.size(0), n, k, input, Int4Weights{w.data_as<uint8_t>(), k, n, group_size, s.data_as<float>()}, out);
}

}  // namespace tt::cuda
