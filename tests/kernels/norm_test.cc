#include "kernels/cpu/kernels.h"
#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

constexpr double kEps = 1e-5;

// The definition of a normalisation: which elements share statistics, and which share a weight.
struct Definition {
  int64_t groups, channels;
  std::function<int64_t(int64_t)> group;    // index of the group of an element
  std::function<int64_t(int64_t)> channel;  // index of the channel of an element
  bool centered = true;
};

struct Normalized {
  std::vector<double> mean, rstd, y;
};
Normalized normalized(const Definition& d, const Tensor& x, const Tensor& w, const Tensor& b) {
  std::vector<double> sum(d.groups), squares(d.groups), count(d.groups);
  for (int64_t i = 0; i < x.numel(); ++i) sum[d.group(i)] += at(x, i), count[d.group(i)] += 1;
  Normalized n{std::vector<double>(d.groups), std::vector<double>(d.groups), std::vector<double>(x.numel())};
  for (int64_t g = 0; g < d.groups; ++g) n.mean[g] = d.centered ? sum[g] / count[g] : 0;
  for (int64_t i = 0; i < x.numel(); ++i) squares[d.group(i)] += std::pow(at(x, i) - n.mean[d.group(i)], 2);
  for (int64_t g = 0; g < d.groups; ++g) n.rstd[g] = 1 / std::sqrt(squares[g] / count[g] + kEps);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double xhat = (at(x, i) - n.mean[d.group(i)]) * n.rstd[d.group(i)];
    n.y[i] = xhat * (w ? at(w, d.channel(i)) : 1) + (b ? at(b, d.channel(i)) : 0);
  }
  return n;
}
double dot(const Tensor& g, const std::vector<double>& y) {
  double sum = 0;
  for (int64_t i = 0; i < g.numel(); ++i) sum += at(g, i) * y[i];
  return sum;
}
// The derivative of dot(g, normalized(x, w, b)) with respect to element i of t, by central differences.
double slope(const Definition& d, const Tensor& g, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& t,
             int64_t i) {
  const double before = at(t, i), h = 1e-6;
  put(t, i, before + h);
  const double up = dot(g, normalized(d, x, w, b).y);
  put(t, i, before - h);
  const double down = dot(g, normalized(d, x, w, b).y);
  put(t, i, before);
  return (up - down) / (2 * h);
}
void expect_slopes(const Definition& d, const Tensor& g, const Tensor& x, const Tensor& w, const Tensor& b,
                   const Tensor& t, const Tensor& gradient) {
  for (int64_t i = 0; i < t.numel(); ++i) ASSERT_NEAR(at(gradient, i), slope(d, g, x, w, b, t, i), 1e-6) << i;
}
void expect_values(const Tensor& got, const std::vector<double>& want, double tolerance) {
  for (int64_t i = 0; i < got.numel(); ++i) ASSERT_NEAR(at(got, i), want[i], tolerance) << i;
}

Definition by_channel(const Sizes& sizes) {
  const int64_t space = sizes.size() == 2 ? 1 : sizes[2], channels = sizes[1];
  const auto channel = [=](int64_t i) { return i / space % channels; };
  return {channels, channels, channel, channel};
}

TEST(BatchNorm, UpdatesRunningStatistics) {
  for (const Sizes& sizes : {Sizes{6, 3}, Sizes{4, 3, 7}, Sizes{2, 5, 300}}) {
    const Definition d = by_channel(sizes);
    Tensor x = filled(sizes, DType::kFloat64), w = filled({d.channels}, DType::kFloat64),
           b = filled({d.channels}, DType::kFloat64);
    Tensor g = filled(sizes, DType::kFloat64), y = filled(sizes, DType::kFloat64), dx = filled(sizes, DType::kFloat64);
    Tensor mean = filled({d.channels}, DType::kFloat64), rstd = filled({d.channels}, DType::kFloat64);
    Tensor dw = filled({d.channels}, DType::kFloat64), db = filled({d.channels}, DType::kFloat64);
    Tensor running_mean = constant({d.channels}, 1), running_var = constant({d.channels}, 2);
    batch_norm(x, running_mean, running_var, w, b, true, 0.1, kEps, y, mean, rstd);
    const Normalized want = normalized(d, x, w, b);
    expect_values(y, want.y, 1e-12);
    expect_values(mean, want.mean, 1e-12);
    const double n = static_cast<double>(x.numel() / d.channels);
    for (int64_t c = 0; c < d.channels; ++c) {
      const double variance = 1 / (want.rstd[c] * want.rstd[c]) - kEps;
      EXPECT_NEAR(at(running_mean, c), 0.9 + 0.1 * want.mean[c], 1e-6);
      EXPECT_NEAR(at(running_var, c), 1.8 + 0.1 * variance * n / (n - 1), 1e-6);
    }
    if (x.numel() > 1000) continue;  // finite differences cost one evaluation per element
    batch_norm_backward(g, x, w, mean, rstd, true, dx, dw, db);
    expect_slopes(d, g, x, w, b, x, dx);
    expect_slopes(d, g, x, w, b, w, dw);
    expect_slopes(d, g, x, w, b, b, db);
  }
}

TEST(BatchNorm, EvaluatesWithRunningStatistics) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    const Sizes sizes{3, 4, 5};
    Tensor x = filled(sizes, dtype), w = filled({4}), g = filled(sizes, dtype), y = filled(sizes, dtype),
           dx = filled(sizes, dtype);
    Tensor running_mean = filled({4}), running_var = constant({4}, 3), mean = filled({4}), rstd = filled({4});
    Tensor dw = filled({4}), db = filled({4});
    batch_norm(x, running_mean, running_var, w, Tensor(), false, 0.1, kEps, y, mean, rstd);
    batch_norm_backward(g, x, w, mean, rstd, false, dx, dw, db);
    const double scale = 1 / std::sqrt(3 + kEps);
    std::vector<double> want(x.numel()), want_dx(x.numel()), want_dw(4), want_db(4);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t c = i / 5 % 4;
      want[i] = (at(x, i) - at(running_mean, c)) * scale * at(w, c);
      want_dx[i] = at(g, i) * scale * at(w, c);
      want_dw[c] += at(g, i) * (at(x, i) - at(running_mean, c)) * scale;
      want_db[c] += at(g, i);
    }
    const double tolerance = 10 * std::max(tolerance_of(dtype), 1e-6);
    expect_values(y, want, tolerance);
    expect_values(dx, want_dx, tolerance);
    expect_values(dw, want_dw, tolerance);
    expect_values(db, want_db, tolerance);
  }
}

TEST(BatchNorm, EmptyBatchKeepsRunningStatistics) {
  Tensor x = filled({0, 3, 2}), y = filled({0, 3, 2}), mean = filled({3}), rstd = filled({3});
  Tensor running = constant({3}, 5);
  batch_norm(x, running, running, Tensor(), Tensor(), true, 0.1, kEps, y, mean, rstd);
  expect_close(running, constant({3}, 5), 0);
}

TEST(BatchNorm, RejectsStatisticsOfAnotherSize) {
  Tensor x = filled({2, 3}), y = filled({2, 3}), three = filled({3}), two = filled({2}), dx = filled({2, 3});
  EXPECT_THROW(batch_norm(x, two, two, Tensor(), Tensor(), false, 0.1, kEps, y, three, three), Error);
  EXPECT_THROW(batch_norm_backward(x, x, Tensor(), two, two, true, dx, three, three), Error);
  EXPECT_THROW(batch_norm_backward(two, x, Tensor(), three, three, true, dx, three, three), Error);
}

TEST(LayerNorm, ForwardAndBackward) {
  for (int64_t n : {1, 5, 64, 333}) {
    const Definition d{4, n, [=](int64_t i) { return i / n; }, [=](int64_t i) { return i % n; }};
    for (bool affine : {false, true}) {
      Tensor x = filled({4, n}, DType::kFloat64), g = filled({4, n}, DType::kFloat64),
             y = filled({4, n}, DType::kFloat64);
      Tensor w = affine ? filled({n}, DType::kFloat64) : Tensor(), b = affine ? filled({n}, DType::kFloat64) : Tensor();
      Tensor mean = filled({4}, DType::kFloat64), rstd = filled({4}, DType::kFloat64),
             dx = filled({4, n}, DType::kFloat64);
      Tensor dw = filled({n}, DType::kFloat64), db = filled({n}, DType::kFloat64);
      const int64_t shape[] = {n};
      layer_norm(x, shape, w, b, kEps, y, mean, rstd);
      const Normalized want = normalized(d, x, w, b);
      expect_values(y, want.y, 1e-12);
      expect_values(mean, want.mean, 1e-12);
      expect_values(rstd, want.rstd, 1e-9);
      layer_norm_backward(g, x, w, mean, rstd, shape, dx, dw, db);
      if (n == 1) continue;  // zero variance: differences are dominated by rounding
      expect_slopes(d, g, x, w, b, x, dx);
      if (!affine) continue;
      expect_slopes(d, g, x, w, b, w, dw);
      expect_slopes(d, g, x, w, b, b, db);
    }
  }
}

TEST(LayerNorm, ManyRowsInHalfPrecision) {
  Tensor x = filled({500, 96}, DType::kBFloat16), y = filled({500, 96}, DType::kBFloat16);
  Tensor mean = filled({500}), rstd = filled({500});
  const int64_t shape[] = {96};
  layer_norm(x, shape, Tensor(), Tensor(), kEps, y, mean, rstd);
  const Definition d{500, 96, [](int64_t i) { return i / 96; }, [](int64_t i) { return i % 96; }};
  const Normalized want = normalized(d, x, Tensor(), Tensor());
  expect_values(y, want.y, 0.02);
  // Sums over rows are split into several blocks.
  Tensor g = constant({500, 96}, 1), dx = filled({500, 96}), dw = filled({96}), db = filled({96});
  layer_norm_backward(g, x, Tensor(), mean, rstd, shape, dx, dw, db);
  expect_values(db, std::vector<double>(96, 500), 1e-3);
}

// Rows of 16-bit elements, computed in float32.
TEST(LayerNorm, HalfEqualsRoundedFloat) {
  const int64_t shape[] = {1100};
  const Tensor w = filled({1100}), b = filled({1100});
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = filled({70, 1100}, dtype);
    Tensor wide = filled({70, 1100}), y = filled({70, 1100}, dtype), want = filled({70, 1100});
    Tensor mean = filled({70}), rstd = filled({70}), want_mean = filled({70}), want_rstd = filled({70});
    for (int64_t i = 0; i < x.numel(); ++i) put(wide, i, at(x, i));
    layer_norm(x, shape, w, b, kEps, y, mean, rstd);
    layer_norm(wide, shape, w, b, kEps, want, want_mean, want_rstd);
    const auto expect_rounded = [&](const Tensor& got) {
      for (int64_t i = 0; i < got.numel(); ++i) {
        put(x, i, at(want, i));
        ASSERT_EQ(at(got, i), at(x, i)) << i;
        put(wide, i, at(x, i));
      }
    };
    expect_rounded(y);
    for (int64_t r = 0; r < 70; ++r) ASSERT_EQ(at(mean, r), at(want_mean, r)) << r;
    rms_norm(y, shape, w, kEps, y, rstd);  // in place: every row is read before it is written
    rms_norm(wide, shape, w, kEps, want, want_rstd);
    expect_rounded(y);
  }
}

TEST(GroupNorm, ForwardAndBackward) {
  const Sizes sizes{2, 6, 4};
  const Definition d{2 * 3, 6, [](int64_t i) { return i / 8; }, [](int64_t i) { return i / 4 % 6; }};
  Tensor x = filled(sizes, DType::kFloat64), g = filled(sizes, DType::kFloat64), y = filled(sizes, DType::kFloat64);
  Tensor w = filled({6}, DType::kFloat64), b = filled({6}, DType::kFloat64), dx = filled(sizes, DType::kFloat64);
  Tensor mean = filled({2, 3}, DType::kFloat64), rstd = filled({2, 3}, DType::kFloat64);
  Tensor dw = filled({6}, DType::kFloat64), db = filled({6}, DType::kFloat64);
  group_norm(x, 3, w, b, kEps, y, mean, rstd);
  expect_values(y, normalized(d, x, w, b).y, 1e-12);
  group_norm_backward(g, x, w, mean, rstd, 3, dx, dw, db);
  expect_slopes(d, g, x, w, b, x, dx);
  expect_slopes(d, g, x, w, b, w, dw);
  expect_slopes(d, g, x, w, b, b, db);
}

TEST(RmsNorm, ForwardAndBackward) {
  const Definition d{3, 40, [](int64_t i) { return i / 40; }, [](int64_t i) { return i % 40; }, false};
  Tensor x = filled({3, 40}, DType::kFloat64), g = filled({3, 40}, DType::kFloat64),
         y = filled({3, 40}, DType::kFloat64);
  Tensor w = filled({40}, DType::kFloat64), rstd = filled({3}, DType::kFloat64), dx = filled({3, 40}, DType::kFloat64);
  Tensor dw = filled({40}, DType::kFloat64);
  const int64_t shape[] = {40};
  rms_norm(x, shape, w, kEps, y, rstd);
  expect_values(y, normalized(d, x, w, Tensor()).y, 1e-12);
  rms_norm_backward(g, x, w, rstd, shape, dx, dw);
  expect_slopes(d, g, x, w, Tensor(), x, dx);
  expect_slopes(d, g, x, w, Tensor(), w, dw);
}

}  // namespace
}  // namespace tt::cpu
