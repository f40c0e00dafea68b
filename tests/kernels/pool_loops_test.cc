#include "kernels/cpu/loops/pool_loops.h"

#include <limits>

#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

const Window kWindows[] = {
    {{6, 8}, {3, 4}, {2, 2}, {2, 2}},          {{7, 9}, {7, 9}, {3, 3}, {1, 1}, {1, 1}},
    {{9, 11}, {3, 3}, {3, 2}, {3, 4}, {1, 0}}, {{8, 8}, {4, 4}, {2, 3}, {2, 2}, {1, 1}, {1, 2}},
    {{5, 5}, {3, 3}, {3, 3}, {2, 2}, {1, 1}},  // as with ceil_mode: windows extend beyond the padding
    {{1, 300}, {1, 150}, {1, 2}, {1, 2}},
};

// Calls visit(output, input) for every input inside every window.
template <typename F>
void for_each_tap(const Window& w, F visit) {
  for (int64_t o = 0; o < w.out[0] * w.out[1]; ++o) {
    for (int64_t k = 0; k < w.kernel[0] * w.kernel[1]; ++k) {
      const int64_t h = o / w.out[1] * w.stride[0] - w.padding[0] + k / w.kernel[1] * w.dilation[0];
      const int64_t v = o % w.out[1] * w.stride[1] - w.padding[1] + k % w.kernel[1] * w.dilation[1];
      if (h >= 0 && h < w.in[0] && v >= 0 && v < w.in[1]) visit(o, h * w.in[1] + v);
    }
  }
}

template <typename T>
void check_max(const Window& w, DType dtype) {
  Tensor x = filled({w.in[0], w.in[1]}, dtype), y = filled({w.out[0], w.out[1]}, dtype);
  std::vector<int64_t> index(y.numel());
  max_plane(w, x.data_as<T>(), y.data_as<T>(), index.data());
  std::vector<double> most(y.numel(), -std::numeric_limits<double>::infinity());
  std::vector<int64_t> where(y.numel(), -1);
  for_each_tap(w, [&](int64_t o, int64_t i) {
    if (at(x, i) > most[o]) most[o] = at(x, i), where[o] = i;
  });
  for (int64_t o = 0; o < y.numel(); ++o) {
    ASSERT_EQ(at(y, o), most[o]);
    ASSERT_EQ(index[o], where[o]);
  }
}

TEST(MaxPlane, ChoosesFirstMaximum) {
  for (const Window& w : kWindows) {
    check_max<float>(w, DType::kFloat32);
    check_max<double>(w, DType::kFloat64);
    check_max<int64_t>(w, DType::kInt64);
    check_max<uint8_t>(w, DType::kUInt8);
  }
}

TEST(MaxPlane, NaNPropagatesAndMinusInfinityHasValidIndex) {
  const double inf = std::numeric_limits<double>::infinity();
  Tensor x = values({2, 4}, {1, NAN, -inf, -inf, 5, 2, -inf, -inf}), y = filled({1, 2});
  std::vector<int64_t> index(2);
  max_plane({{2, 4}, {1, 2}, {2, 2}, {2, 2}}, x.data_as<float>(), y.data_as<float>(), index.data());
  EXPECT_TRUE(std::isnan(at(y, 0)));
  EXPECT_EQ(index[0], 1);
  EXPECT_EQ(at(y, 1), -inf);
  EXPECT_EQ(index[1], 2);
}

TEST(MaxPlane, ChoosesLastNaNInRowOrder) {
  Tensor x = values({2, 4}, {1, NAN, 3, NAN, NAN, 2, 4, NAN}), y = filled({1, 3});
  std::vector<int64_t> index(3);
  max_plane({{2, 4}, {1, 3}, {2, 2}, {1, 1}}, x.data_as<float>(), y.data_as<float>(), index.data());
  for (int64_t o = 0; o < 3; ++o) EXPECT_TRUE(std::isnan(at(y, o)));
  EXPECT_EQ(index, (std::vector<int64_t>{4, 1, 7}));
}

TEST(MaxPlane, BackwardAddsToChosenElement) {
  const Window w{{4, 4}, {3, 3}, {2, 2}, {1, 1}};
  Tensor g = filled({3, 3}), dx = constant({4, 4}, 1);
  const std::vector<int64_t> index{5, 5, 2, 5, 10, 10, 8, 8, 15};
  max_plane_backward(w, g.data_as<float>(), index.data(), dx.data_as<float>());
  Tensor want = constant({4, 4}, 1);
  for (int i = 0; i < 9; ++i) put(want, index[i], at(want, index[i]) + at(g, i));
  expect_close(dx, want, 1e-6);
}

TEST(AveragePlane, UsesRequestedDivisor) {
  for (Window w : kWindows) {
    w.dilation = {1, 1};
    for (const Divisor& divisor : {Divisor{true}, Divisor{false}, Divisor{true, 5}}) {
      Tensor x = filled({w.in[0], w.in[1]}), y = filled({w.out[0], w.out[1]});
      average_plane(w, divisor, x.data_as<float>(), y.data_as<float>());
      Tensor sum = constant({w.out[0], w.out[1]}, 0, DType::kFloat64), inside = constant({w.out[0], w.out[1]}, 0);
      for_each_tap(w, [&](int64_t o, int64_t i) {
        put(sum, o, at(sum, o) + at(x, i));
        put(inside, o, at(inside, o) + 1);
      });
      std::vector<double> by(y.numel());
      for (int64_t o = 0; o < y.numel(); ++o) {
        const auto extent = [&](int d, int64_t i) {  // the part within the padded input
          const int64_t begin = i * w.stride[d] - w.padding[d];
          return std::min(begin + w.kernel[d], w.in[d] + w.padding[d]) - begin;
        };
        const double padded = static_cast<double>(extent(0, o / w.out[1]) * extent(1, o % w.out[1]));
        by[o] = divisor.override ? divisor.override : divisor.count_padding ? padded : at(inside, o);
        put(sum, o, at(sum, o) / by[o]);
      }
      expect_close(y, sum, 1e-6);

      Tensor g = filled({w.out[0], w.out[1]}), dx = constant({w.in[0], w.in[1]}, 0);
      Tensor want = constant({w.in[0], w.in[1]}, 0, DType::kFloat64);
      average_plane_backward(w, divisor, g.data_as<float>(), dx.data_as<float>());
      for_each_tap(w, [&](int64_t o, int64_t i) { put(want, i, at(want, i) + at(g, o) / by[o]); });
      expect_close(dx, want, 1e-6);
    }
  }
}

TEST(AdaptivePlane, CoversTheInput) {
  const Pair in{7, 10};
  for (const Pair& out : {Pair{1, 1}, Pair{3, 4}, Pair{7, 10}, Pair{9, 12}}) {
    Tensor x = filled({in[0], in[1]}, DType::kFloat64), mean = filled({out[0], out[1]}, DType::kFloat64);
    Tensor most = filled({out[0], out[1]}, DType::kFloat64), g = filled({out[0], out[1]}, DType::kFloat64);
    Tensor dx = constant({in[0], in[1]}, 0, DType::kFloat64), want_dx = constant({in[0], in[1]}, 0, DType::kFloat64);
    std::vector<int64_t> index(mean.numel());
    adaptive_average_plane(in, out, x.data_as<double>(), mean.data_as<double>());
    adaptive_max_plane(in, out, x.data_as<double>(), most.data_as<double>(), index.data());
    adaptive_average_plane_backward(in, out, g.data_as<double>(), dx.data_as<double>());
    for (int64_t o = 0; o < mean.numel(); ++o) {
      const auto begin = [&](int d, int64_t i) { return static_cast<int64_t>(std::floor(double(i) * in[d] / out[d])); };
      const auto end = [&](int d, int64_t i) { return static_cast<int64_t>(std::ceil((i + 1.0) * in[d] / out[d])); };
      double sum = 0, largest = -1e9, count = 0;
      for (int64_t h = begin(0, o / out[1]); h < end(0, o / out[1]); ++h) {
        for (int64_t v = begin(1, o % out[1]); v < end(1, o % out[1]); ++v, ++count) {
          sum += at(x, h * in[1] + v);
          largest = std::max(largest, at(x, h * in[1] + v));
        }
      }
      for (int64_t h = begin(0, o / out[1]); h < end(0, o / out[1]); ++h) {
        for (int64_t v = begin(1, o % out[1]); v < end(1, o % out[1]); ++v) {
          put(want_dx, h * in[1] + v, at(want_dx, h * in[1] + v) + at(g, o) / count);
        }
      }
      ASSERT_NEAR(at(mean, o), sum / count, 1e-12);
      ASSERT_EQ(at(most, o), largest);
      ASSERT_EQ(at(x, index[o]), largest);
    }
    expect_close(dx, want_dx, 1e-12);
  }
}

}  // namespace
}  // namespace tt::cpu
