// Operators on components of sparse tensors: equal to the CPU, including errors for invalid indices.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

constexpr DType kIndices[] = {DType::kInt32, DType::kInt64};
constexpr DType kDTypes[] = {DType::kInt8,    DType::kInt64,   DType::kFloat16,   DType::kBFloat16,
                             DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128};

// CSR indices of random matrices; rows have up to `longest` entries, with columns in any order, also equal ones.
Tensors random_csr(int64_t batch, int64_t rows, int64_t columns, int64_t longest, DType index) {
  std::mt19937 random(7);
  std::vector<double> crow, col;
  std::vector<int64_t> lengths(static_cast<size_t>(rows));
  int64_t nnz = 0;
  for (int64_t& n : lengths) nnz += n = static_cast<int64_t>(random() % static_cast<uint64_t>(longest + 1));
  for (int64_t b = 0; b < batch; ++b) {
    std::shuffle(lengths.begin(), lengths.end(), random);
    double at = 0;
    crow.push_back(at);
    for (int64_t n : lengths) crow.push_back(at += static_cast<double>(n));
    for (int64_t i = 0; i < nnz; ++i) col.push_back(static_cast<double>(random() % static_cast<uint64_t>(columns)));
  }
  if (batch == 1) return {values({rows + 1}, crow, index), values({nnz}, col, index)};
  return {values({batch, rows + 1}, crow, index), values({batch, nnz}, col, index)};
}

Sizes with_batch(int64_t batch, Sizes sizes) {
  if (batch > 1) sizes.insert(sizes.begin(), batch);
  return sizes;
}

class SparseTest : public ::testing::Test {
 protected:
  void compare(const std::string& what, const Tensors& inputs, const Compute& compute, double tolerance = 0) {
    expect_equal_on_gpu(engine_, what, inputs, compute, tolerance);
  }
  // Expects the CPU's error, which contains `part`.
  void expect_failure(const std::string& part, const Tensors& inputs, const Compute& compute) {
    const SimulatedEngine engine;  // a session, because no client reads the errors of one
    const std::string want = failure_of(inputs, compute);
    EXPECT_NE(want.find(part), std::string::npos) << want;
    std::string got = failure_of(copy_all_to_device(inputs, engine_.gpu()), compute);
    if (const size_t at = got.find(" ["); at == 1) got.erase(1, got.find(']') - at + 1);  // a session adds the operator
    EXPECT_EQ(got, want);
  }
  SimulatedEngine engine_;
};

// Few long rows, and many short ones; few columns of the dense matrix, and many.
TEST_F(SparseTest, MultipliesDenseMatrices) {
  const struct {
    int64_t batch, rows, columns, longest, k;
  } cases[] = {{1, 7, 5, 4, 3}, {2, 3, 40, 100, 1},  {1, 3, 6, 100, 40}, {1, 4, 3, 0, 2},
               {3, 5, 4, 6, 0}, {2, 3, 2, 6000, 17}, {1, 2, 3, 9000, 1}};
  for (DType index : kIndices) {
    for (DType dtype : kDTypes) {
      for (const auto& c : cases) {
        const Tensors csr = random_csr(c.batch, c.rows, c.columns, c.longest, index);
        const Tensor factors = filled_any(with_batch(c.batch, {csr[1].size(-1)}), dtype);
        const Tensor x = filled_any(with_batch(c.batch, {c.columns, c.k}), dtype);
        const Tensor y = filled_any(with_batch(c.batch, {c.rows, c.k}), dtype);
        const double tolerance = is_integral(dtype) ? 0 : 4 * tolerance_of(dtype);
        compare(
            "products", {csr[0], csr[1], factors, x, y},
            [&](const Tensors& in) -> Tensors {
              return {ops::sparse_csr_mm(in[0], in[1], in[2], in[3]),
                      ops::sparse_csr_mm_transposed(in[0], in[1], in[2], in[4], c.columns),
                      ops::sparse_csr_sddmm(in[0], in[1], in[4], in[3])};
            },
            tolerance);
        if (c.batch > 1 || is_complex(dtype)) continue;
        compare("extremum", {csr[0], csr[1], factors, x}, [](const Tensors& in) -> Tensors {
          const Tensors largest = ops::sparse_csr_mm_extremum(in[0], in[1], in[2], in[3], true);
          const Tensors smallest = ops::sparse_csr_mm_extremum(in[0], in[1], in[2], in[3], false);
          return {largest[0], largest[1], smallest[0], smallest[1]};
        });
      }
    }
  }
}

TEST_F(SparseTest, MultipliesBlocks) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt32}) {
    for (int64_t batch : {1, 2}) {
      const Tensors csr = random_csr(batch, 4, 3, 3, DType::kInt64);
      const Tensor blocks = filled(with_batch(batch, {csr[1].size(-1), 2, 5}), dtype);
      compare(
          "blocks", {csr[0], csr[1], blocks, filled(with_batch(batch, {15, 6}), dtype)},
          [](const Tensors& in) -> Tensors { return {ops::sparse_bsr_mm(in[0], in[1], in[2], in[3])}; },
          tolerance_of(dtype));
    }
  }
}

TEST_F(SparseTest, MultipliesSparseMatrices) {
  for (DType dtype : kDTypes) {
    for (int64_t longest : {0, 3, 90}) {
      const Tensors a = random_csr(1, 6, 5, longest, DType::kInt32), b = random_csr(1, 5, 7, longest, DType::kInt32);
      const Tensors at = random_csr(1, 6, 5, 4, DType::kInt32), c = random_csr(1, 5, 5, longest, DType::kInt32);
      compare(
          "sparse products",
          {a[0], a[1], filled_any({a[1].numel()}, dtype), b[0], b[1], filled_any({b[1].numel()}, dtype), at[0], at[1],
           c[0], c[1], filled_any({c[1].numel()}, dtype)},
          [](const Tensors& in) -> Tensors {
            Tensors product = ops::sparse_csr_matmul(in[0], in[1], in[2], in[3], in[4], in[5], 7);
            product.push_back(
                ops::sparse_csr_sampled_matmul(in[0], in[1], in[2], in[8], in[9], in[10], in[6], in[7], 5));
            return product;
          },
          is_integral(dtype) ? 0 : 4 * tolerance_of(dtype));
    }
  }
}

TEST_F(SparseTest, SortsColumns) {
  const Sizes spaces[] = {{3, 4}, {int64_t{1} << 40, int64_t{1} << 40}};
  for (DType index : kIndices) {
    const Tensor indices = values({2, 9}, {2, 0, 2, 1, 1, 0, 2, 2, 0, 3, 1, 3, 0, 2, 1, 1, 3, 0}, index);
    const Tensor first = values({2, 3}, {0, 0, 2, 1, 3, 1}, index),
                 second = values({2, 4}, {0, 1, 2, 2, 3, 0, 0, 1}, index);
    for (const Sizes& size : spaces) {
      for (DType dtype : kDTypes) {
        compare("coalesce", {indices, filled_any({9, 5}, dtype), filled_any({9}, dtype)}, [&](const Tensors& in) {
          Tensors both = ops::sparse_coalesce(in[0], in[1], size);
          for (const Tensor& t : ops::sparse_coalesce(in[0], in[2], size)) both.push_back(t);
          return both;
        });
      }
      compare("sets", {indices, first, second}, [&](const Tensors& in) {
        Tensors all = ops::sparse_unique(in[0], size);
        for (const Tensor& t : ops::sparse_union(in[1], in[2], size)) all.push_back(t);
        for (const Tensor& t : ops::sparse_intersection(in[2], in[1], size)) all.push_back(t);
        return all;
      });
    }
  }
  // Long runs of equal columns.
  for (int64_t n : {300, 5000}) {
    for (int64_t width : {2, 20}) {
      compare(
          "runs", {ops::remainder(filled({1, n}, DType::kInt64), int64_t{3}), filled({n, width}, DType::kFloat64)},
          [](const Tensors& in) { return ops::sparse_coalesce(in[0], in[1], {3}); }, 1e-12);
    }
  }
}

TEST_F(SparseTest, ConvertsLayouts) {
  for (DType index : kIndices) {
    for (int64_t batch : {1, 3}) {
      const Tensors csr = random_csr(batch, 6, 5, 4, index);
      const int64_t nnz = csr[1].size(-1);
      compare("layouts", csr, [&](const Tensors& in) -> Tensors {
        const Tensor rows = ops::sparse_expand(in[0], nnz);
        Tensors all = ops::sparse_transpose(in[0], in[1], 5);
        all.push_back(rows);
        all.push_back(ops::sparse_compress(rows, 6));
        return all;
      });
    }
  }
  const Tensor indices = values({2, 6}, {2, 0, 2, 1, 0, 2, 1, 3, 1, 0, 3, 0}, DType::kInt32);
  for (DType dtype :
       {DType::kBool, DType::kUInt8, DType::kInt64, DType::kFloat16, DType::kFloat32, DType::kComplex128}) {
    const Tensor x = filled_any({3, 4, 40}, dtype), parts = filled_any({6, 40}, dtype),
                 numbers = filled_any({6}, dtype);
    compare("dense", {indices, x, parts, numbers}, [](const Tensors& in) -> Tensors {
      return {ops::sparse_gather(in[1], in[0]),
              ops::sparse_gather(ops::select(in[1], 2, 1), in[0]),
              ops::sparse_scatter(in[0], in[2], {3, 4}),
              ops::sparse_scatter(in[0], in[3], {3, 4}),
              ops::sparse_nonzero(in[1], 3),
              ops::sparse_nonzero(in[1], 2),
              ops::sparse_nonzero(in[1], 0)};
    });
  }
}

TEST_F(SparseTest, ComputesSoftmaxOfGroups) {
  const Tensor few = ops::remainder(filled({200}, DType::kInt64), int64_t{3});
  const Tensor many = values({7}, {4, 0, 4, 2, 0, 4, 1}, DType::kInt64);
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    compare(
        "softmax", {filled({200, 2}, dtype), few, filled({7, 20}, dtype), many},
        [](const Tensors& in) -> Tensors {
          return {ops::sparse_softmax(in[0], in[1], 3, false), ops::sparse_softmax(in[0], in[1], 3, true),
                  ops::sparse_softmax(in[2], in[3], 1 << 12, false), ops::sparse_softmax(in[2], in[3], 5, true)};
        },
        4 * tolerance_of(dtype));
  }
}

TEST_F(SparseTest, SolvesTriangularSystems) {
  const Tensor crow = values({6}, {0, 3, 6, 9, 12, 16}, DType::kInt32);
  const Tensor col = values({16}, {0, 3, 1, 1, 0, 4, 2, 1, 2, 3, 0, 4, 4, 0, 2, 3}, DType::kInt32);
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    compare(
        "solve", {crow, col, filled_any({16}, dtype), filled_any({5, 3}, dtype)},
        [](const Tensors& in) {
          Tensors all;
          const Tensor factors = ops::add(in[2], 1.5);
          for (int i = 0; i < 8; ++i) {
            all.push_back(ops::sparse_csr_triangular_solve(in[0], in[1], factors, in[3], (i & 1) != 0, (i & 2) != 0,
                                                           (i & 4) != 0));
          }
          return all;
        },
        dtype == DType::kFloat64 ? 1e-13 : 1e-5);
  }
}

TEST_F(SparseTest, StepsOfAdamChangeTheirRowsOnly) {
  const Tensor rows = values({3}, {4, 0, 2}, DType::kInt32);
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (bool maximize : {false, true}) {
      compare(
          "adam", {filled({5, 7}, dtype), filled({3, 7}, dtype), rows},
          [&](const Tensors& in) -> Tensors {
            const Tensor param = ops::clone(in[0]), average = ops::mul(in[0], 0.5), square = ops::mul(in[0], in[0]);
            ops::sparse_adam_step(param, average, square, in[2], in[1], 0.1, 0.9, 0.99, 1e-6, 2, maximize);
            return {param, average, square};
          },
          4 * tolerance_of(dtype));
    }
  }
}

TEST_F(SparseTest, SelectsTwoOfFour) {
  for (DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kComplex64}) {
    compare(
        "2:4", {filled_any({3, 32}, dtype), filled_any({32, 5}, dtype)},
        [](const Tensors& in) -> Tensors {
          const Tensors packed = ops::sparse_semi_compress(in[0]);
          return {packed[0], packed[1], ops::sparse_semi_expand(packed[0], packed[1]),
                  ops::sparse_semi_select(in[0], packed[1]), ops::sparse_semi_mm(packed[0], packed[1], in[1])};
        },
        tolerance_of(dtype));
  }
}

TEST_F(SparseTest, ReportsTheFirstBrokenInvariant) {
  const auto coo = [](std::vector<double> indices, bool coalesced = false) {
    return std::pair<Tensors, Compute>({values({2, 3}, indices, DType::kInt64), filled({3})}, [=](const Tensors& in) {
      return Tensors{ops::sparse_check_coo(in[0], in[1], {3, 4}, coalesced)};
    });
  };
  const struct {
    std::pair<Tensors, Compute> call;
    const char* part;
  } cases[] = {{coo({0, 1, 7, 5, 0, -1}), "size is 3 but found index 7"},
               {coo({0, 1, 2, 3, 9, 4}), "size is 4 but found index 9"},
               {coo({0, -2, 9, 3, 9, 4}), "found negative index -2 for dim 0"},
               {coo({0, 1, 1, 3, 2, 2}, true), "is_coalesced"},
               {coo({0, 1, 1, 3, 2, 8}, true), "found index 8"}};
  for (const auto& c : cases) expect_failure(c.part, c.call.first, c.call.second);
  compare("valid", {values({2, 2}, {0, 1, 3, 0}, DType::kInt32), filled({2})}, [](const Tensors& in) {
    return Tensors{ops::sparse_check_coo(in[0], in[1], {3, 4}, true)};
  });

  const auto check = [this](std::vector<double> starts, std::vector<double> plain, const char* part, bool by_rows) {
    const Tensors inputs = {values({2, 3}, starts, DType::kInt64), values({2, 2}, plain, DType::kInt64)};
    const auto compute = [=](const Tensors& in) {
      return Tensors{ops::sparse_check_compressed(in[0], in[1], 2, 3, by_rows)};
    };
    part ? expect_failure(part, inputs, compute) : compare("valid", inputs, compute);
  };
  for (bool by_rows : {false, true}) {
    check({0, 1, 2, 0, 2, 2}, {2, 0, 0, 2}, nullptr, by_rows);
    check({0, 1, 2, 1, 1, 3}, {2, 0, 0, 9}, "[..., 0] == 0", by_rows);
    check({0, 1, 2, 0, 1, 1}, {2, 0, 0, 9}, "[..., -1] == nnz", by_rows);
    check({0, 5, 2, 1, 1, 3}, {2, 0, 9, 9}, "0 <= ", by_rows);
    check({0, 1, 2, 0, 2, 2}, {2, 0, 0, 3}, by_rows ? "< ncols" : "< nrows", by_rows);
    check({0, 1, 2, 0, 2, 2}, {2, 0, 1, 1}, "sorted and distinct", by_rows);
  }
}

TEST_F(SparseTest, ReportsInvalidIndices) {
  const Tensor ones = filled({2}), x = filled({3, 4});
  const auto csr = [&](std::vector<double> crow, std::vector<double> col) {
    return Tensors{values({4}, crow, DType::kInt64), values({2}, col, DType::kInt64), ones, x};
  };
  const Compute calls[] = {
      [](const Tensors& in) { return Tensors{ops::sparse_csr_mm(in[0], in[1], in[2], in[3])}; },
      [](const Tensors& in) { return Tensors{ops::sparse_csr_mm_transposed(in[0], in[1], in[2], in[3], 3)}; },
      [](const Tensors& in) { return Tensors{ops::sparse_csr_sddmm(in[0], in[1], in[3], in[3])}; },
      [](const Tensors& in) { return ops::sparse_csr_mm_extremum(in[0], in[1], in[2], in[3], true); },
      [](const Tensors& in) { return ops::sparse_transpose(in[0], in[1], 3); },
      [](const Tensors& in) { return ops::sparse_csr_matmul(in[0], in[1], in[2], in[0], in[1], in[2], 3); },
      [](const Tensors& in) {
        return Tensors{ops::sparse_csr_triangular_solve(in[0], in[1], in[2], in[3], true, true, false)};
      },
      [](const Tensors& in) {
        return Tensors{ops::sparse_csr_sampled_matmul(in[0], in[1], in[2], in[0], in[1], in[2], in[0], in[1], 3)};
      },
  };
  for (const Compute& call : calls) {
    expect_failure("end with the number of entries 2", csr({0, 1, 9, 2}, {0, 7}), call);
    expect_failure("end with the number of entries 2", csr({1, 1, 1, 2}, {0, 1}), call);
    expect_failure("end with the number of entries 2", csr({0, 2, 1, 2}, {0, 1}), call);
    expect_failure("index 3 is out of range for a dimension of size 3", csr({0, 1, 1, 2}, {0, 3}), call);
    expect_failure("index -1 is out of range", csr({0, 1, 1, 2}, {-1, 2}), call);
  }
  expect_failure("expected sorted indices, got 0 after 2", {values({4}, {1, 2, 0, 9}, DType::kInt64)},
                 [](const Tensors& in) { return Tensors{ops::sparse_compress(in[0], 3)}; });
  expect_failure("index 9 is out of range", {values({4}, {1, 9, 0, 2}, DType::kInt64)},
                 [](const Tensors& in) { return Tensors{ops::sparse_compress(in[0], 3)}; });
  const Tensor set = values({1, 2}, {0, 1}, DType::kInt64), other = values({1, 2}, {2, 2}, DType::kInt64);
  expect_failure("expected sorted and distinct indices", {set, other},
                 [](const Tensors& in) { return ops::sparse_union(in[0], in[1], {3}); });
  expect_failure("expected sorted and distinct indices", {set, other},
                 [](const Tensors& in) { return ops::sparse_intersection(in[1], in[0], {3}); });
  for (const auto& [rows, part] : {std::pair(std::vector<double>{1, 1}, "expected distinct rows"),
                                   std::pair(std::vector<double>{1, 5}, "index 5 is out of range")}) {
    const SimulatedEngine engine;
    const Tensor param = copy_to_device(filled({3, 2}), engine_.gpu());
    const Tensors on_gpu = copy_all_to_device({values({2}, rows, DType::kInt64), filled({2, 2})}, engine_.gpu());
    EXPECT_NE(failure_of({},
                         [&](const Tensors&) {
                           ops::sparse_adam_step(param, ops::clone(param), ops::clone(param), on_gpu[0], on_gpu[1], 0.1,
                                                 0.9, 0.9, 1e-6, 1, false);
                           return Tensors{param};
                         })
                  .find(part),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tt::cuda
