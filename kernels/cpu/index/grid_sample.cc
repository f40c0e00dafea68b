// grid_sample in one pass: the positions and weights of a block of samples are computed once, and used for all
// channels.
#include <cstring>
#include <functional>
#include <numeric>

#include "engine/device/parallel.h"
#include "kernels/cpu/index/grid_taps.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int64_t kBlock = 256;         // samples per block
constexpr int64_t kTaskWork = 1 << 14;  // minimum results per task of the pool
constexpr int64_t kMostCombined = 16;   // taps per sample

// The taps of some samples of a block, with padding: offsets in a channel (negative: outside) and weights.
template <typename T>
struct Taps {
  int64_t count = 0, per_sample;
  int32_t sample[kBlock];
  int64_t at[kBlock * kMostCombined];
  T weight[kBlock * kMostCombined];

  explicit Taps(int64_t taps) : per_sample(taps) {}

  // `coordinates` are those of sample `i` of the block.
  void add(const Grid& grid, const std::array<GridAxis<T>, kMostDims>& axes, const T* coordinates, int64_t i) {
    std::array<std::array<int64_t, kMostTaps>, kMostDims> offsets;
    std::array<std::array<T, kMostTaps>, kMostDims> weights;
    for (int64_t d = 0; d < grid.dims; ++d) {
      const auto axis = static_cast<size_t>(d);
      const T coordinate = coordinates[grid.dims - 1 - d];
      grid.offsets(axes[axis], coordinate, offsets[axis]);
      grid.weights(axes[axis], coordinate, 0, weights[axis]);
    }
    const int64_t first = count * per_sample;
    grid.combine(
        offsets, [](int64_t a, int64_t b) { return a + b; }, at + first, 1);
    grid.combine(
        weights, [](T a, T b) { return a * b; }, weight + first, 1);
    sample[count++] = static_cast<int32_t>(i);
  }
  // Writes the samples' results of one channel to the block's results.
  void write(const T* channel, T* to) const {
    for (int64_t i = 0; i < count; ++i) {
      T sum = 0;
      for (int64_t k = i * per_sample; k < (i + 1) * per_sample; ++k) {
        if (at[k] >= 0) sum += weight[k] * channel[at[k]];
      }
      to[sample[i]] = sum;
    }
  }
};

// Bilinear samples of a block whose four elements are all inside the image, which needs no checks per element.
template <typename T>
struct Interior {
  int32_t first[kBlock];  // the upper left element's offset, 0 for other samples
  int32_t inside[kBlock];
  T weight[kBlock * 4];  // upper left, upper right, lower left, lower right
};

// `x` and `y` are positions in an image of these sizes. The block is complete: kBlock samples.
template <typename T>
[[gnu::always_inline]] inline void find_interior_of(const T* __restrict x, const T* __restrict y, int32_t height,
                                                    int32_t width, Interior<T>& to) {
  const T last_row = static_cast<T>(height - 1), last_column = static_cast<T>(width - 1);
  for (int64_t i = 0; i < kBlock; ++i) {
    const T column = std::floor(x[i]), row = std::floor(y[i]), right = x[i] - column, low = y[i] - row;
    const bool inside = (column >= T(0)) & (column < last_column) & (row >= T(0)) & (row < last_row);
    to.inside[i] = inside;
    to.first[i] = static_cast<int32_t>(inside ? row : T(0)) * width + static_cast<int32_t>(inside ? column : T(0));
    to.weight[4 * i] = (T(1) - low) * (T(1) - right);
    to.weight[4 * i + 1] = (T(1) - low) * right;
    to.weight[4 * i + 2] = low * (T(1) - right);
    to.weight[4 * i + 3] = low * right;
  }
}
TT_CLONES void find_interior(const float* x, const float* y, int32_t height, int32_t width, Interior<float>& to) {
  find_interior_of(x, y, height, width, to);
}
TT_CLONES void find_interior(const double* x, const double* y, int32_t height, int32_t width, Interior<double>& to) {
  find_interior_of(x, y, height, width, to);
}

template <typename T>
using Two [[gnu::vector_size(2 * sizeof(T))]] = T;
template <typename T>
using Four [[gnu::vector_size(4 * sizeof(T))]] = T;

// Writes the weighted sums of the four elements of samples [begin, end), a multiple of four. Requires an image of at
// least 2 x 2 elements.
template <typename T>
[[gnu::always_inline]] inline void sum_interior_of(int64_t begin, int64_t end, const Interior<T>& from,
                                                   const T* channel, int64_t width, T* to) {
  const auto products = [&](int64_t i) __attribute__((always_inline)) {
    const T* const upper = channel + from.first[i];
    Two<T> a, b;
    std::memcpy(&a, upper, sizeof a);
    std::memcpy(&b, upper + width, sizeof b);
    Four<T> weight;
    std::memcpy(&weight, from.weight + 4 * i, sizeof weight);
    return Four<T>(__builtin_shufflevector(a, b, 0, 1, 2, 3) * weight);
  };
  for (int64_t i = begin; i < end; i += 4) {
    const Four<T> a = products(i), b = products(i + 1), c = products(i + 2), d = products(i + 3);
    const Four<T> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four<T> cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const Four<T> sums = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    std::memcpy(to + (i - begin), &sums, sizeof sums);
  }
}
TT_CLONES void sum_interior(int64_t begin, int64_t end, const Interior<float>& from, const float* channel,
                            int64_t width, float* to) {
  sum_interior_of(begin, end, from, channel, width, to);
}
TT_CLONES void sum_interior(int64_t begin, int64_t end, const Interior<double>& from, const double* channel,
                            int64_t width, double* to) {
  sum_interior_of(begin, end, from, channel, width, to);
}

// Computes the results of one block: samples [first, first + count) of batch entry `n`.
template <typename T>
class BlockSampler {
 public:
  BlockSampler(const Grid& grid, const Tensor& input, T* out)
      : grid_(grid),
        axes_(grid.axes<T>()),
        input_(input.data_as<T>()),
        channels_(input.size(1)),
        elements_(std::accumulate(grid.size.begin(), grid.size.end(), int64_t{1}, std::multiplies<>())),
        out_(out) {}

  void run(int64_t n, int64_t first, int64_t count) const {
    const bool few_checks = grid_.mode == GridMode::kLinear && grid_.dims == 2 && elements_ <= INT32_MAX &&
                            grid_.size[0] > 1 && grid_.size[1] > 1;
    few_checks ? run_bilinear(n, first, count) : run_checked(n, first, count);
  }

 private:
  const T* coordinates(int64_t n, int64_t sample) const {
    return grid_.coordinates.template data_as<T>() + (n * grid_.samples + sample) * grid_.dims;
  }
  const T* channel(int64_t n, int64_t c) const { return input_ + (n * channels_ + c) * elements_; }
  T* results(int64_t n, int64_t c, int64_t first) const { return out_ + (n * channels_ + c) * grid_.samples + first; }

  void run_checked(int64_t n, int64_t first, int64_t count) const {
    Taps<T> taps(grid_.all_taps);
    for (int64_t i = 0; i < count; ++i) taps.add(grid_, axes_, coordinates(n, first + i), i);
    for (int64_t c = 0; c < channels_; ++c) taps.write(channel(n, c), results(n, c, first));
  }

  void run_bilinear(int64_t n, int64_t first, int64_t count) const {
    T x[kBlock], y[kBlock];
    const T* const from = coordinates(n, first);
    for (int64_t i = 0; i < count; ++i) {
      x[i] = axes_[1].unnormalized(from[2 * i]);
      y[i] = axes_[0].unnormalized(from[2 * i + 1]);
    }
    for (int64_t i = 0; i < count && grid_.padding != GridPadding::kZeros; ++i) {
      x[i] = axes_[1].padded(x[i]).position;
      y[i] = axes_[0].padded(y[i]).position;
    }
    std::fill(x + count, x + kBlock, T(-1));
    std::fill(y + count, y + kBlock, T(-1));
    Interior<T> interior;
    find_interior(x, y, static_cast<int32_t>(grid_.size[0]), static_cast<int32_t>(grid_.size[1]), interior);
    Taps<T> edges(grid_.all_taps);
    for (int64_t i = 0; i < count; ++i) {
      if (!interior.inside[i]) edges.add(grid_, axes_, coordinates(n, first + i), i);
    }
    for (int64_t c = 0; c < channels_; ++c) {
      T* const to = results(n, c, first);
      const int64_t whole = count / 4 * 4;
      sum_interior(0, whole, interior, channel(n, c), grid_.size[1], to);
      if (whole < count) {  // results after the last may belong to another task
        T last[4];
        sum_interior(whole, whole + 4, interior, channel(n, c), grid_.size[1], last);
        std::copy_n(last, count - whole, to + whole);
      }
      edges.write(channel(n, c), to);
    }
  }

  const Grid& grid_;
  const std::array<GridAxis<T>, kMostDims> axes_;
  const T* const input_;
  const int64_t channels_, elements_;
  T* const out_;
};

}  // namespace

void grid_sample_values(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding_mode,
                        bool align_corners, Tensor& out) {
  if (out.numel() == 0) return;
  const Grid taps(grid, absl::MakeConstSpan(input.sizes()).subspan(2), mode, padding_mode, align_corners);
  const Tensor x = as_accumulate_type(input);
  AccumulateBuffer result(out);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const BlockSampler<T> sampler(taps, x, result.template data<T>());
    const int64_t blocks = (taps.samples + kBlock - 1) / kBlock;
    const int64_t work = std::min(taps.samples, kBlock) * input.size(1);
    parallel_for(taps.batch * blocks, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kBlock;
        sampler.run(i / blocks, first, std::min(kBlock, taps.samples - first));
      }
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
