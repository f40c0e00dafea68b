// Indexing, gathering and scattering: equal to the CPU, including errors for invalid indices.
#include <gtest/gtest.h>

#include "engine/schema/op_ids.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::transposed;
using testing::values;

constexpr DType kDTypes[] = {DType::kBool,    DType::kUInt8,    DType::kInt32,   DType::kInt64,
                             DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
constexpr DType kIndex = DType::kInt64;

class IndexTest : public ::testing::Test {
 protected:
  void compare(const std::string& what, const Tensors& inputs, const Compute& compute, double tolerance = 0) {
    expect_equal_on_gpu(engine_, what, inputs, compute, tolerance);
  }
  SimulatedEngine engine_;
};

TEST_F(IndexTest, Gathers) {
  const Tensor rows = values({3}, {2, 0, -1}, kIndex), columns = values({2, 1}, {1, -2}, DType::kInt32);
  const Tensor row_mask = values({3}, {1, 0, 1}, DType::kBool);
  for (DType dtype : kDTypes) {
    for (const Tensor& x : {filled({3, 4, 8}, dtype), transposed(filled({8, 4, 3}, dtype), 0, 2)}) {
      compare("index", {x, rows, columns}, [](const Tensors& in) -> Tensors {
        return {ops::index(in[0], {in[1]}), ops::index(in[0], {Tensor(), in[2]}), ops::index(in[0], {in[1], in[2]}),
                ops::index(in[0], {in[1], Tensor(), in[2]}), ops::index(in[0], {Tensor(), Tensor(), in[1]})};
      });
      compare("masks", {x, row_mask, rows}, [](const Tensors& in) -> Tensors {
        return {ops::index_masked(in[0], {in[1]}), ops::masked_select(in[0], ops::to_dtype(in[0], DType::kBool))};
      });
    }
  }
  compare("nothing", {filled({3, 4}), values({0}, {}, kIndex)},
          [](const Tensors& in) -> Tensors { return {ops::index(in[0], {in[1]})}; });
}

TEST_F(IndexTest, Scatters) {
  const Tensor rows = values({2}, {2, -3}, kIndex), again = values({4}, {1, 1, 0, 1}, kIndex);
  for (DType dtype : kDTypes) {
    const Tensor x = filled({3, 4}, dtype), line = filled({4}, dtype), block = filled({4, 4}, dtype);
    const Tensor mask = filled({3, 4}, DType::kBool), number = filled({}, DType::kFloat32);
    compare("index_put", {x, rows, line, again, block, mask, number}, [](const Tensors& in) -> Tensors {
      return {ops::index_put(in[0], {in[1]}, in[2]), ops::index_put(in[0], {in[3]}, in[4], true),
              ops::index_put(in[0], {in[5]}, in[6]), ops::index_put(in[0], {Tensor(), in[1]}, in[6])};
    });
    compare("along a dimension", {x, rows, again, block}, [](const Tensors& in) -> Tensors {
      return {ops::index_fill(in[0], 1, ops::remainder(in[1], int64_t{4}), Scalar(1.0)),
              ops::index_add(in[0], 0, in[2], in[3]), ops::index_add(in[0], 0, in[2], in[3], Scalar(int64_t{2}))};
    });
  }
}

TEST_F(IndexTest, InPlaceWritesOnlyIndexedElements) {
  const Compute put = [](const Tensors& in) -> Tensors {
    const Tensor view = ops::transpose(in[0], 0, 1);
    const ops::ListArg indices{{in[1]}};
    const Arg args[] = {Arg(view.get()), indices.arg(), Arg(in[2].get()), Arg(false)};
    ops::call(op_id::kIndexPut, args, {&view, 1});
    return {in[0]};
  };
  compare("index_put_", {filled({3, 4}), values({2}, {1, 3}, kIndex), filled({3})}, put);
}

TEST_F(IndexTest, SelectsAlongDimension) {
  for (DType dtype : kDTypes) {
    compare("index_select", {filled({3, 16}, dtype), values({4}, {2, 0, 2, 1}, kIndex), filled({}, dtype)},
            [](const Tensors& in) -> Tensors {
              return {ops::index_select(in[0], 0, in[1]), ops::index_select(in[0], -1, in[1]),
                      ops::index_select(in[2], 0, ops::narrow(ops::zeros_like(in[1]), 0, 0, 1))};
            });
  }
}

TEST_F(IndexTest, GathersAndScatters) {
  const Tensor where = values({2, 3}, {0, 3, 2, 1, 0, 3}, kIndex), down = values({2, 2}, {0, 2, 1, 0}, DType::kInt32);
  for (DType dtype : kDTypes) {
    for (const Tensor& x : {filled({3, 4}, dtype), transposed(filled({4, 3}, dtype), 0, 1)}) {
      compare("gather", {x, where, down, filled({}, dtype), values({}, {0}, kIndex)}, [](const Tensors& in) -> Tensors {
        return {ops::gather(in[0], 1, in[1]), ops::gather(in[0], 0, in[2]), ops::gather(in[3], 0, in[4])};
      });
      compare("scatter", {x, where, filled({2, 3}, dtype)}, [](const Tensors& in) -> Tensors {
        return {ops::scatter(in[0], 1, in[1], in[2]), ops::scatter_value(in[0], 1, in[1], Scalar(1.5)),
                ops::scatter_add(in[0], 1, in[1], in[2]), ops::scatter_add(in[0], 0, ops::zeros_like(in[1]), in[2])};
      });
    }
  }
}

TEST_F(IndexTest, ReducesDuplicateIndices) {
  const Tensor where = values({2, 3}, {0, 0, 2, 1, 1, 3}, kIndex);
  for (DType dtype : {DType::kUInt8, DType::kInt64, DType::kBFloat16, DType::kFloat64}) {
    compare("scatter_combine", {filled({3, 4}, dtype), where, filled({2, 3}, dtype)}, [](const Tensors& in) -> Tensors {
      return {ops::scatter_combine(in[0], 1, in[1], in[2], "amax"),
              ops::scatter_combine(in[0], 1, in[1], in[2], "amin"),
              ops::scatter_combine(in[0], 1, in[1], in[2], "prod")};
    });
  }
}

TEST_F(IndexTest, FindsNonzero) {
  for (DType dtype : kDTypes) {
    for (const Sizes& sizes : {Sizes{3, 4, 2}, Sizes{70, 41}, Sizes{0, 3}, Sizes{}}) {
      compare("nonzero", {filled(sizes, dtype)}, [](const Tensors& in) -> Tensors { return {ops::nonzero(in[0])}; });
    }
  }
  compare("nonzero of a view", {transposed(filled({4, 3}), 0, 1)},
          [](const Tensors& in) -> Tensors { return {ops::nonzero(in[0])}; });
}

TEST_F(IndexTest, InvalidIndicesPoisonResults) {
  const Tensor x = filled({3, 4}), bad = values({2}, {0, 3}, kIndex), negative = values({1, 1}, {-1}, kIndex);
  const std::string words = "index 3 is out of bounds for dimension 0 with size 3";
  const std::vector<std::pair<std::string, Compute>> rows = {
      {words, [](const Tensors& in) -> Tensors { return {ops::index(in[0], {in[1]})}; }},
      {words,
       [](const Tensors& in) -> Tensors { return {ops::index_put(in[0], {in[1]}, ops::narrow(in[0], 0, 0, 1))}; }},
      {"index out of range in self, got 3",
       [](const Tensors& in) -> Tensors { return {ops::index_select(in[0], 0, in[1])}; }},
      {"index -1 is out of bounds for dimension 1 with size 4",
       [](const Tensors& in) -> Tensors { return {ops::gather(in[0], 1, in[2])}; }},
      {"index -1 is out of bounds for dimension 0 with size 3",
       [](const Tensors& in) -> Tensors { return {ops::scatter_add(in[0], 0, in[2], in[0])}; }},
      {"index is out of bounds for dimension 0 with size 0",
       [](const Tensors& in) -> Tensors { return {ops::index(ops::narrow(in[0], 0, 0, 0), {in[1]})}; }},
      {"tensors used as indices must be", [](const Tensors& in) -> Tensors { return {ops::index(in[0], {in[0]})}; }},
  };
  for (const auto& [text, compute] : rows) expect_both_fail(engine_, text, {x, bad, negative}, compute);
}

}  // namespace
}  // namespace tt::cuda
