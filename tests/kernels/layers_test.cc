// Embedding, nll_loss, pooling, softmax and matmul at operator level: dtypes, dimensions, and errors.
#include "kernels/cpu/kernels.h"
#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

TEST(Embedding, SelectsAndAccumulatesRows) {
  for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt64}) {
    Tensor table = filled({5, 40}, dtype), index = values({2, 3}, {4, 0, 4, 1, 2, 0}, DType::kInt32);
    Tensor out = filled({2, 3, 40}, dtype);
    embedding(table, index, -1, out);
    for (int64_t i = 0; i < out.numel(); ++i)
      ASSERT_EQ(at(out, i), at(table, static_cast<int64_t>(at(index, i / 40)) * 40 + i % 40));
  }
  Tensor index = values({4}, {1, 3, 1, 0}, DType::kInt64), g = filled({4, 40}), dw = constant({5, 40}, 77);
  embedding_backward(g, index, 5, 3, dw);
  for (int64_t j = 0; j < 40; ++j) {
    EXPECT_EQ(at(dw, j), at(g, 3 * 40 + j));
    EXPECT_EQ(at(dw, 40 + j), at(g, j) + at(g, 80 + j));
    EXPECT_EQ(at(dw, 3 * 40 + j), 0) << "the row of padding_idx must get no gradient";
    EXPECT_EQ(at(dw, 4 * 40 + j), 0);
  }
}

TEST(Embedding, RejectsIndicesOutOfRange) {
  Tensor table = filled({5, 4}), out = filled({1, 4}), grad = filled({1, 4}), dw = filled({5, 4});
  for (double bad : {5.0, -1.0, 1e12}) {
    Tensor index = values({1}, {bad}, DType::kInt64);
    EXPECT_THROW(embedding(table, index, -1, out), Error);
    EXPECT_THROW(embedding_backward(grad, index, 5, -1, dw), Error);
  }
}

TEST(NllLoss, AppliesWeightsIgnoreIndexAndReduction) {
  // Two samples of three classes at two positions; one target is ignored.
  Tensor x = filled({2, 3, 2}), target = values({2, 2}, {2, -100, 0, 1}, DType::kInt64), w = values({3}, {1, 2, 4});
  Tensor each = filled({2, 2}), mean = filled({}), sum = filled({}), total = filled({});
  nll_loss(x, target, w, -100, "none", each, total);
  nll_loss(x, target, w, -100, "sum", sum, total);
  nll_loss(x, target, w, -100, "mean", mean, total);
  const double a = -4 * at(x, 4), b = -at(x, 6), c = -2 * at(x, 9);
  expect_close(each, values({2, 2}, {a, 0, b, c}), 1e-6);
  EXPECT_NEAR(at(sum, 0), a + b + c, 1e-5);
  EXPECT_NEAR(at(mean, 0), (a + b + c) / 7, 1e-5);
  EXPECT_EQ(at(total, 0), 7);

  Tensor dx = constant({2, 3, 2}, 77), g = values({}, {3});
  const int64_t size[] = {2, 3, 2};
  nll_loss_backward(g, target, w, total, size, -100, "mean", dx);
  Tensor want = constant({2, 3, 2}, 0);
  put(want, 4, -4 * 3 / 7.0), put(want, 6, -3 / 7.0), put(want, 9, -2 * 3 / 7.0);
  expect_close(dx, want, 1e-6);
  Tensor gs = filled({2, 2});
  nll_loss_backward(gs, target, Tensor(), total, size, -100, "none", dx);
  want = constant({2, 3, 2}, 0);
  put(want, 4, -at(gs, 0)), put(want, 6, -at(gs, 2)), put(want, 9, -at(gs, 3));
  expect_close(dx, want, 1e-6);
}

TEST(NllLoss, RejectsTargetsOutOfRange) {
  Tensor x = filled({1, 3}), out = filled({}), total = filled({});
  for (double bad : {3.0, -1.0}) {
    Tensor target = values({1}, {bad}, DType::kInt64);
    try {
      nll_loss(x, target, Tensor(), -100, "mean", out, total);
      FAIL() << "accepted " << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIndex);
      EXPECT_EQ(e.message(), absl::StrCat("Target ", static_cast<int>(bad), " is out of bounds."));
    }
  }
  Tensor dx = filled({1, 3}), too_many = filled({2}), target = values({1}, {0}, DType::kInt64);
  const int64_t size[] = {1, 3};
  EXPECT_THROW(nll_loss_backward(too_many, target, Tensor(), total, size, -100, "none", dx), Error);
}

TEST(Pool, HandlesPlanesOfAnyDType) {
  const int64_t kernel[] = {2}, none[] = {0}, one[] = {1};
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32}) {
    Tensor x = transposed(filled({3, 2, 6, 4}, dtype), 2, 3), y = filled({3, 2, 2, 3}, dtype);  // 3 x 2 x 4 x 6
    Tensor index = filled({3, 2, 2, 3}, DType::kInt64);
    max_pool2d_with_indices(x, kernel, std::nullopt, none, one, false, y, index);
    for (int64_t p = 0; p < 6; ++p) {
      for (int64_t o = 0; o < 6; ++o) {
        double most = -1e9;
        for (int64_t k = 0; k < 4; ++k)
          most = std::max(most, at(x, p * 24 + (o % 3 * 2 + k % 2) * 4 + o / 3 * 2 + k / 2));
        ASSERT_EQ(at(y, p * 6 + o), most);
      }
    }
  }
}

TEST(Pool, RejectsIndicesOutsidePlane) {
  Tensor g = filled({1, 1, 1, 2}), dx = filled({1, 1, 2, 2});
  const int64_t size[] = {1, 1, 2, 2};
  max_pool2d_backward(g, values({1, 1, 1, 2}, {0, 3}, DType::kInt64), size, dx);
  EXPECT_EQ(at(dx, 3), at(g, 1));
  for (double bad : {4.0, -1.0}) {
    EXPECT_THROW(max_pool2d_backward(g, values({1, 1, 1, 2}, {0, bad}, DType::kInt64), size, dx), Error);
  }
  EXPECT_THROW(max_pool2d_backward(g, values({1}, {0}, DType::kInt64), size, dx), Error);
}

TEST(Pool, RejectsWindowsWithoutSizeOrStride) {
  const int64_t two[] = {2}, none[] = {0}, minus[] = {-1};
  Tensor x = filled({1, 4, 4}), y = filled({1, 2, 2});
  EXPECT_THROW(avg_pool2d(x, none, std::nullopt, none, false, true, std::nullopt, y), Error);
  EXPECT_THROW(avg_pool2d(x, two, absl::Span<const int64_t>(none), none, false, true, std::nullopt, y), Error);
  EXPECT_THROW(avg_pool2d(x, two, std::nullopt, minus, false, true, std::nullopt, y), Error);
}

TEST(SoftmaxKernels, AnyDimensionAndDType) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (int64_t dim : {0, 1, -1}) {
      Tensor x = filled({4, 5, 6}, dtype), y = filled({4, 5, 6}, dtype), log = filled({4, 5, 6}, dtype);
      softmax(x, dim, std::nullopt, y);
      log_softmax(x, dim, std::nullopt, log);
      const int64_t d = dim < 0 ? 2 : dim, n = x.size(d), step = x.stride(d);
      for (int64_t i = 0; i < x.numel(); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += std::exp(at(x, i + (j - i / step % n) * step));
        ASSERT_NEAR(at(y, i), std::exp(at(x, i)) / sum, tolerance_of(dtype) + 1e-7);
        ASSERT_NEAR(at(log, i), at(x, i) - std::log(sum), 8 * (tolerance_of(dtype) + 1e-7));
      }
    }
  }
  Tensor number = filled({}), one = filled({});
  softmax(number, 0, std::nullopt, one);
  EXPECT_EQ(at(one, 0), 1);
}

TEST(Linear, AddsTheBiasOnce) {
  for (int64_t features : {1, 5}) {
    Tensor x = filled({2, 3, 4}), w = filled({features, 4}), b = filled({features}), y = filled({2, 3, features});
    linear(x, w, b, y);
    for (int64_t i = 0; i < y.numel(); ++i) {
      double want = at(b, i % features);
      for (int64_t j = 0; j < 4; ++j) want += at(x, i / features * 4 + j) * at(w, i % features * 4 + j);
      EXPECT_NEAR(at(y, i), want, 1e-5);
    }
    EXPECT_THROW(linear(x, w, filled({features + 1}), y), Error);
  }
}

TEST(Matmul, BroadcastsBatches) {
  // Batches of sizes [2, 1] and [3] broadcast, and the matrices of `a` are transposed: no dimensions can be merged.
  Tensor a = transposed(filled({2, 1, 5, 4}), 2, 3), b = filled({3, 5, 6}), y = filled({2, 3, 4, 6});
  matmul(a, b, y);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t n = i / 72, m = i / 24 % 3, row = i / 6 % 4, column = i % 6;
    double want = 0;
    for (int64_t p = 0; p < 5; ++p) want += at(a, n * 20 + p * 4 + row) * at(b, m * 30 + p * 6 + column);
    ASSERT_NEAR(at(y, i), want, 1e-5);
  }
  // Attention heads: two batches of three heads of 40 x 36, interleaved with the rows.
  Tensor q = transposed(filled({2, 40, 3, 36}), 1, 2), k = transposed(transposed(filled({2, 40, 3, 36}), 1, 2), 2, 3);
  Tensor scores = filled({2, 3, 40, 40});
  matmul(q, k, scores);
  for (int64_t i = 0; i < scores.numel(); ++i) {
    const int64_t base = i / 4800 * 4320 + i / 1600 % 3 * 36, row = i / 40 % 40, column = i % 40;
    double want = 0;
    for (int64_t p = 0; p < 36; ++p) want += at(q, base + row * 108 + p) * at(k, base + column * 108 + p);
    ASSERT_NEAR(at(scores, i), want, 1e-4);
  }
  // One matrix for a contiguous batch: a single product.
  Tensor x = filled({2, 3, 4, 5}), w = filled({5, 6}), z = filled({2, 3, 4, 6});
  matmul(x, w, z);
  for (int64_t i = 0; i < z.numel(); ++i) {
    double want = 0;
    for (int64_t p = 0; p < 5; ++p) want += at(x, i / 6 * 5 + p) * at(w, p * 6 + i % 6);
    ASSERT_NEAR(at(z, i), want, 1e-5);
  }
}

}  // namespace
}  // namespace tt::cpu
