#include "kernels/cpu/nn/convolution.h"

#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

// The definition of a convolution: calls visit(x offset, w offset, y offset) for each multiplication.
template <typename F>
void for_each_term(const Tensor& x, const Tensor& w, const Tensor& y, const ConvolutionParams& s, F visit) {
  const int64_t in_group = w.size(1), out_group = w.size(0) / s.groups;
  for (int64_t n = 0; n < y.size(0); ++n) {
    for (int64_t o = 0; o < y.size(1); ++o) {
      for (int64_t c = 0; c < in_group; ++c) {
        for (int64_t oh = 0; oh < y.size(2); ++oh) {
          for (int64_t ow = 0; ow < y.size(3); ++ow) {
            for (int64_t kh = 0; kh < w.size(2); ++kh) {
              for (int64_t kw = 0; kw < w.size(3); ++kw) {
                const int64_t h = oh * s.stride[0] - s.padding[0] + kh * s.dilation[0];
                const int64_t v = ow * s.stride[1] - s.padding[1] + kw * s.dilation[1];
                if (h < 0 || h >= x.size(2) || v < 0 || v >= x.size(3)) continue;
                const int64_t channel = o / out_group * in_group + c;
                visit(((n * x.size(1) + channel) * x.size(2) + h) * x.size(3) + v,
                      ((o * in_group + c) * w.size(2) + kh) * w.size(3) + kw,
                      ((n * y.size(1) + o) * y.size(2) + oh) * y.size(3) + ow);
              }
            }
          }
        }
      }
    }
  }
}

struct Case {
  int64_t images, in, out, height, width, kernel;
  ConvolutionParams shape;

  int64_t reach(int64_t size, int d) const {
    return (size + 2 * shape.padding[d] - shape.dilation[d] * (kernel - 1) - 1) / shape.stride[d] + 1;
  }
  Sizes x() const { return {images, in, height, width}; }
  Sizes w() const { return {out, in / shape.groups, kernel, kernel}; }
  Sizes y() const { return {images, out, reach(height, 0), reach(width, 1)}; }
};

const Case kCases[] = {
    {2, 3, 5, 9, 7, 3, {{1, 1}, {0, 0}, {1, 1}, 1}},    {1, 16, 32, 8, 8, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},
    {2, 4, 6, 11, 10, 3, {{2, 2}, {1, 1}, {1, 1}, 2}},  {3, 6, 6, 9, 9, 5, {{1, 2}, {2, 0}, {1, 1}, 6}},
    {1, 2, 4, 12, 13, 3, {{1, 1}, {2, 2}, {2, 3}, 1}},  {2, 8, 8, 5, 5, 1, {{2, 2}, {0, 0}, {1, 1}, 1}},
    {2, 1, 32, 14, 14, 5, {{1, 1}, {2, 2}, {1, 1}, 1}}, {1, 4, 4, 10, 10, 3, {{3, 3}, {0, 0}, {1, 1}, 1}},
    // Wider than 2,048 columns: computed in pieces.
    {1, 2, 3, 3, 2600, 3, {{1, 1}, {1, 1}, {1, 1}, 1}}, {1, 4, 4, 3, 4700, 3, {{1, 2}, {0, 3}, {1, 4}, 2}},
    {1, 1, 2, 4, 5, 3, {{1, 1}, {0, 1100}, {1, 1}, 1}},
    // Wide strides or padding, for which pieces have fewer columns.
    {1, 2, 3, 4, 9100, 3, {{1, 900}, {1, 1}, {1, 1}, 1}}, {2, 2, 4, 4, 30, 3, {{1, 2}, {1, 70}, {1, 2}, 2}},
};

class Convolution : public ::testing::TestWithParam<DType> {};

TEST_P(Convolution, Forward) {
  for (const Case& c : kCases) {
    Tensor x = filled(c.x(), GetParam()), w = filled(c.w(), GetParam()), bias = filled({c.out}, GetParam());
    Tensor y = constant(c.y(), 77, GetParam()), want = constant(c.y(), 0, DType::kFloat64);
    const int64_t positions = y.size(2) * y.size(3);
    for (int64_t i = 0; i < y.numel(); ++i) put(want, i, at(bias, i / positions % c.out));
    for_each_term(x, w, y, c.shape,
                  [&](int64_t i, int64_t j, int64_t k) { put(want, k, at(want, k) + at(x, i) * at(w, j)); });
    convolution(x, w, bias, c.shape, y);
    expect_close(y, want, tolerance_of(GetParam()));
  }
}

TEST_P(Convolution, GradientOfTheInput) {
  for (const Case& c : kCases) {
    Tensor g = filled(c.y(), GetParam()), w = filled(c.w(), GetParam());
    Tensor dx = constant(c.x(), 77, GetParam()), want = constant(c.x(), 0, DType::kFloat64);
    for_each_term(dx, w, g, c.shape,
                  [&](int64_t i, int64_t j, int64_t k) { put(want, i, at(want, i) + at(g, k) * at(w, j)); });
    convolution_data(g, w, c.shape, dx);
    expect_close(dx, want, tolerance_of(GetParam()));
  }
}

TEST_P(Convolution, GradientOfTheWeights) {
  for (const Case& c : kCases) {
    Tensor g = filled(c.y(), GetParam()), x = filled(c.x(), GetParam());
    Tensor dw = constant(c.w(), 77, GetParam()), want = constant(c.w(), 0, DType::kFloat64);
    for_each_term(x, dw, g, c.shape,
                  [&](int64_t i, int64_t j, int64_t k) { put(want, j, at(want, j) + at(g, k) * at(x, i)); });
    convolution_weights(g, x, c.shape, dw);
    expect_close(dw, want, 2 * tolerance_of(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Convolution,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(ConvolutionInputs, OneSpatialDimension) {
  Tensor x = filled({2, 3, 10}), w = filled({4, 3, 3}), y = filled({2, 4, 10}), as_2d = filled({2, 4, 1, 10});
  convolution(x, w, Tensor(), {{1}, {1}, {1}, 1}, y);
  Tensor x2 = view_of(x, {{2, 3, 1, 10}, {30, 10, 10, 1}, 0, true}),
         w2 = view_of(w, {{4, 3, 1, 3}, {9, 3, 3, 1}, 0, true});
  convolution(x2, w2, Tensor(), {{1, 1}, {0, 1}, {1, 1}, 1}, as_2d);
  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_NEAR(at(y, i), at(as_2d, i), 1e-5);
}

TEST(ConvolutionInputs, StridedActivations) {
  Tensor x = filled({2, 4, 6, 5}), w = filled({3, 4, 3, 3}), y = filled({2, 3, 3, 4}), want = filled({2, 3, 3, 4});
  Tensor turned = transposed(x, 2, 3);  // 2 x 4 x 5 x 6
  Tensor copy = filled({2, 4, 5, 6});
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t h = 0; h < 5; ++h) {
      for (int64_t v = 0; v < 6; ++v) put(copy, (i * 5 + h) * 6 + v, at(x, (i * 6 + v) * 5 + h));
    }
  }
  convolution(turned, w, Tensor(), {{1, 1}, {0, 0}, {1, 1}, 1}, y);
  convolution(copy, w, Tensor(), {{1, 1}, {0, 0}, {1, 1}, 1}, want);
  expect_close(y, want, 1e-6);
}

TEST(ConvolutionInputs, ChannelsLastAndExpanded) {
  Tensor last = filled({2, 9, 16}), w = filled({8, 16, 3, 3}), y = filled({2, 8, 3, 3}), want = filled({2, 8, 3, 3});
  Tensor x = view_of(last, {{2, 16, 3, 3}, {144, 1, 48, 16}, 0, true});
  Tensor copy = empty(x.sizes(), DType::kFloat32, Device{});
  for (int64_t i = 0; i < copy.numel(); ++i) put(copy, i, at(last, (i / 144 * 9 + i % 9) * 16 + i / 9 % 16));
  const ConvolutionParams plain{{1, 1}, {1, 1}, {1, 1}, 1};
  convolution(x, w, Tensor(), plain, y);
  convolution(copy, w, Tensor(), plain, want);
  expect_close(y, want, 1e-6, "channels last");
  // A constant gradient, like the gradient of a sum.
  Tensor one = constant({1}, 0.5), dw = filled({8, 16, 3, 3}), want_dw = filled({8, 16, 3, 3});
  convolution_weights(view_of(one, {{2, 8, 3, 3}, {0, 0, 0, 0}, 0, true}), copy, plain, dw);
  convolution_weights(constant({2, 8, 3, 3}, 0.5), copy, plain, want_dw);
  expect_close(dw, want_dw, 1e-6, "expanded");
}

TEST(ConvolutionInputs, LargeBatchesRunImageByImage) {
  // The batch exceeds the caches, so it is computed in parts. 11 is prime: no equal parts of several images.
  for (int64_t images : {12, 11}) {
    Tensor x = filled({images, 16, 64, 64}), w = filled({24, 16, 3, 3}), y = filled({images, 24, 64, 64});
    Tensor one = filled({1, 24, 64, 64}), dx = filled(x.sizes()), one_dx = filled({1, 16, 64, 64});
    const ConvolutionParams plain{{1, 1}, {1, 1}, {1, 1}, 1};
    convolution(x, w, Tensor(), plain, y);
    convolution_data(y, w, plain, dx);
    for (int64_t n : {int64_t{0}, images - 1}) {
      const auto image = [n](const Tensor& t) {
        Geometry g{t.sizes(), t.strides(), n * t.stride(0), true};
        g.sizes[0] = 1;
        return view_of(t, g);
      };
      convolution(image(x), w, Tensor(), plain, one);
      expect_close(image(y), one, 1e-5);
      convolution_data(image(y), w, plain, one_dx);
      expect_close(image(dx), one_dx, 1e-5);
    }
  }
}

TEST(ConvolutionInputs, EmptyBatchesAndChannels) {
  const ConvolutionParams plain{{1, 1}, {1, 1}, {1, 1}, 1};
  Tensor none = filled({0, 3, 4, 4}), w = filled({2, 3, 3, 3}), y = filled({0, 2, 4, 4});
  convolution(none, w, Tensor(), plain, y);
  Tensor dw = constant({2, 3, 3, 3}, 77);
  convolution_weights(y, none, plain, dw);
  expect_close(dw, constant({2, 3, 3, 3}, 0), 0);
  Tensor no_channels = filled({1, 0, 4, 4}), narrow = filled({2, 0, 3, 3}), bias = filled({2}),
         out = filled({1, 2, 4, 4});
  convolution(no_channels, narrow, bias, plain, out);
  for (int64_t i = 0; i < out.numel(); ++i) EXPECT_EQ(at(out, i), at(bias, i / 16));
}

TEST(ConvolutionInputs, UsesChangedWeights) {
  const ConvolutionParams plain{{1, 1}, {1, 1}, {1, 1}, 1};
  Tensor x = filled({1, 16, 6, 6}), w = filled({16, 16, 3, 3}), y = filled({1, 16, 6, 6}),
         first = filled({1, 16, 6, 6});
  convolution(x, w, Tensor(), plain, first);
  for (int round = 0; round < 3; ++round) convolution(x, w, Tensor(), plain, y);
  expect_close(y, first, 0, "from the kept copy");
  for (int64_t i = 0; i < w.numel(); ++i) put(w, i, 2 * at(w, i));
  w->storage->bump_version();
  convolution(x, w, Tensor(), plain, y);
  for (int64_t i = 0; i < y.numel(); ++i) put(first, i, 2 * at(first, i));
  expect_close(y, first, 1e-6, "after a write");
}

}  // namespace
}  // namespace tt::cpu
