// Concatenation and rearrangement.
#include <gtest/gtest.h>

#include "kernels/cpu/kernels.h"
#include "tests/kernels/samples.h"

namespace tt::cpu {
namespace {

using Values = std::vector<double>;

Tensor fresh(SizesView sizes, DType dtype = DType::kFloat32) { return empty(sizes, dtype, Device{}); }

TEST(Join, ConcatenatesAlongAnyDimensionAndConverts) {
  const Tensor a = tensor_of({2, 2}, {1, 2, 3, 4}), b = transpose(tensor_of({1, 2}, {5, 6}, DType::kInt64), 0, 1);
  Tensor out = fresh({2, 3});
  cat({a, b}, -1, out);
  EXPECT_EQ(values_of(out), (Values{1, 2, 5, 3, 4, 6}));
  out = fresh({4, 2});
  cat({a, fresh({0}), fresh({0, 2}), a}, 0, out);
  EXPECT_EQ(values_of(out), (Values{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(Join, StacksAlongNewDimension) {
  const Tensor a = tensor_of({2}, {1, 2}), b = tensor_of({2}, {3, 4});
  Tensor out = fresh({2, 2});
  stack({a, b}, 0, out);
  EXPECT_EQ(values_of(out), (Values{1, 2, 3, 4}));
  stack({a, b}, -1, out);
  EXPECT_EQ(values_of(out), (Values{1, 3, 2, 4}));
}

TEST(Join, RepeatsWithNewDimensions) {
  const Tensor a = tensor_of({2, 1}, {1, 2});
  Tensor out = fresh({2, 2, 3});
  repeat(a, {2, 1, 3}, out);
  EXPECT_EQ(values_of(out), (Values{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  out = fresh({0, 1});
  repeat(a, {0, 1}, out);
  out = fresh({4});
  repeat(tensor_of({2}, {1, 2}), {2}, out);
  EXPECT_EQ(values_of(out), (Values{1, 2, 1, 2}));
}

TEST(Rearrange, FlipsEveryLayout) {
  const Tensor a = transpose(tensor_of({3, 2}, {1, 4, 2, 5, 3, 6}), 0, 1);  // [[1, 2, 3], [4, 5, 6]]
  Tensor out = fresh({2, 3});
  flip(a, {0}, out);
  EXPECT_EQ(values_of(out), (Values{4, 5, 6, 1, 2, 3}));
  flip(a, {-1}, out);
  EXPECT_EQ(values_of(out), (Values{3, 2, 1, 6, 5, 4}));
  flip(a, {0, 1}, out);
  EXPECT_EQ(values_of(out), (Values{6, 5, 4, 3, 2, 1}));
}

// Planes that are transposed in tiles, with partial tiles.
TEST(Rearrange, FlipsTransposed) {
  for (DType dtype : {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor x = transpose(random_tensor({3, 37, 70}, dtype), 1, 2);  // [3, 70, 37]
    for (const Sizes& dims : {Sizes{1}, Sizes{2}, Sizes{1, 2}, Sizes{0, 1}, Sizes{0, 1, 2}}) {
      Tensor out = fresh({3, 70, 37}, dtype);
      flip(x, dims, out);
      Values want;
      for (int64_t i = 0; i < x.numel(); ++i) {
        int64_t place[] = {i / (70 * 37), i / 37 % 70, i % 37}, offset = 0;
        for (int64_t d : dims) place[d] = x.size(d) - 1 - place[d];
        for (int64_t d = 0; d < 3; ++d) offset += place[d] * x.stride(d);
        want.push_back(values_of(view_of(x, Geometry{{}, {}, offset}))[0]);
      }
      EXPECT_EQ(values_of(out), want) << name(dtype) << " " << dims.size();
    }
  }
}

TEST(Rearrange, RollsByAnyShift) {
  const Tensor a = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor out = fresh({2, 3});
  roll(a, {1}, {1}, out);
  EXPECT_EQ(values_of(out), (Values{3, 1, 2, 6, 4, 5}));
  roll(a, {-4, 3}, {1, 0}, out);
  EXPECT_EQ(values_of(out), (Values{5, 6, 4, 2, 3, 1}));
  roll(a, {-1}, {}, out);
  EXPECT_EQ(values_of(out), (Values{2, 3, 4, 5, 6, 1}));
  roll(a, {INT64_MIN}, {0}, out);
  EXPECT_EQ(values_of(out), values_of(a));
  out = fresh({3, 2});
  roll(transpose(a, 0, 1), {2}, {}, out);
  EXPECT_EQ(values_of(out), (Values{3, 6, 1, 4, 2, 5}));
}

TEST(Rearrange, KeepsTriangles) {
  const Tensor a = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor out = fresh({2, 3});
  tril(a, 0, out);
  EXPECT_EQ(values_of(out), (Values{1, 0, 0, 4, 5, 0}));
  triu(a, 1, out);
  EXPECT_EQ(values_of(out), (Values{0, 2, 3, 0, 0, 6}));
  tril(a, INT64_MAX, out);
  EXPECT_EQ(values_of(out), values_of(a));
  tril(a, INT64_MIN, out);
  EXPECT_EQ(values_of(out), Values(6, 0));
  triu(a, INT64_MAX, out);
  EXPECT_EQ(values_of(out), Values(6, 0));
  triu(a, INT64_MIN, out);
  EXPECT_EQ(values_of(out), values_of(a));
}

TEST(Rearrange, EmbedsDiagonals) {
  Tensor out = fresh({2, 3, 3});
  diag_embed(tensor_of({2, 2}, {1, 2, 3, 4}), 1, -2, -1, out);
  EXPECT_EQ(values_of(out), (Values{0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}));
  out = fresh({3, 3});
  diag_embed(tensor_of({2}, {1, 2}), -1, 0, 1, out);
  EXPECT_EQ(values_of(out), (Values{0, 0, 0, 1, 0, 0, 0, 2, 0}));
}

}  // namespace
}  // namespace tt::cpu
