// grid_tap_index and grid_tap_weight: the positions and weights with which grid_sample reads its input, as tensors. The
// operator's gradient uses the operator itself, with another `order`.
#include "kernels/cpu/index/grid_taps.h"

#include "engine/device/parallel.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kTaskWork = 1 << 12;  // minimum samples per task of the pool

// Computes a value per sample and tap: `values(axis, d, coordinate, v)` stores those of one dimension's taps in v, and
// `join` combines those of several dimensions.
template <typename T, typename V, typename Values, typename Join>
void for_each_sample(const Grid& grid, V* to, const Values& values, const Join& join) {
  const std::array<GridAxis<T>, kMostDims> of = grid.axes<T>();
  const T* from = grid.coordinates.data_as<T>();
  const int64_t samples = grid.samples, dims = grid.dims;
  parallel_for(grid.batch * samples, kTaskWork, [&](int64_t begin, int64_t end) {
    int64_t n = begin / samples, sample = begin % samples;
    for (int64_t i = begin; i < end; ++i) {
      std::array<std::array<V, kMostTaps>, kMostDims> each;
      for (int64_t d = 0; d < dims; ++d) {
        values(of[static_cast<size_t>(d)], d, from[i * dims + dims - 1 - d], each[static_cast<size_t>(d)]);
      }
      grid.combine(each, join, to + n * grid.all_taps * samples + sample, samples);
      if (++sample == samples) {
        sample = 0;
        ++n;
      }
    }
  });
}

}  // namespace

void grid_tap_index(const Tensor& grid, SizesView size, std::string_view mode, std::string_view padding_mode,
                    bool align_corners, Tensor& out) {
  const Grid taps(grid, size, mode, padding_mode, align_corners);
  with_real(taps.coordinates.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto offsets = [&](const GridAxis<T>& axis, int64_t, T coordinate, std::array<int64_t, kMostTaps>& to) {
      taps.offsets(axis, coordinate, to);
    };
    for_each_sample<T>(taps, out.data_as<int64_t>(), offsets, [](int64_t a, int64_t b) { return a + b; });
  });
}

void grid_tap_weight(const Tensor& grid, SizesView size, std::string_view mode, std::string_view padding_mode,
                     bool align_corners, SizesView order, Tensor& out) {
  const Grid taps(grid, size, mode, padding_mode, align_corners);
  AccumulateBuffer result(out);
  with_real(taps.coordinates.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto weights = [&](const GridAxis<T>& axis, int64_t d, T coordinate, std::array<T, kMostTaps>& to) {
      const int64_t n = std::min<int64_t>(order[static_cast<size_t>(d)], 4);  // higher derivatives are zero, too
      taps.weights(axis, coordinate, n, to);
    };
    for_each_sample<T>(taps, result.template data<T>(), weights, [](T a, T b) { return a * b; });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
