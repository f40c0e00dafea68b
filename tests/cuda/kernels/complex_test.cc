// Complex numbers: CUDA gives the CPU's results. Pointwise operators are in pointwise_test.cc.
#include <gtest/gtest.h>

#include "engine/schema/op_ids.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::transposed;
using testing::values;

class ComplexTest : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  double tolerance() const { return dtype() == DType::kComplex64 ? 2e-5 : 1e-12; }
  // A matrix, a transposed one, one with an extra dimension, and an empty one.
  Tensors shapes() const {
    return {filled_any({5, 9}, dtype()), transposed(filled_any({9, 5}, dtype()), 0, 1),
            transposed(filled_any({3, 4, 70}, dtype()), 0, 2), filled_any({0, 3}, dtype())};
  }
  void expect_each(const std::string& what, const Compute& compute, double tolerance = 0) {
    for (const Tensor& t : shapes()) {
      ASSERT_NO_FATAL_FAILURE(expect_equal_on_gpu(engine_, what + to_string(t.sizes()), {t}, compute, tolerance));
    }
  }
  SimulatedEngine engine_;
};

TEST_P(ComplexTest, CastsFromAndToEveryDType) {
  for (DType other : {DType::kBool, DType::kUInt8, DType::kInt16, DType::kInt64, DType::kFloat16, DType::kFloat32,
                      DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    const std::string what(name(other));
    expect_each(what, [=](const Tensors& t) { return Tensors{ops::to_dtype(t[0], other)}; });
    for (const Tensor& t : {filled_any({5, 9}, other), transposed(filled_any({9, 5}, other), 0, 1)}) {
      expect_equal_on_gpu(engine_, what, {t}, [&](const Tensors& x) { return Tensors{ops::to_dtype(x[0], dtype())}; });
    }
  }
}

TEST_P(ComplexTest, PartsAreViews) {
  expect_each("parts", [](const Tensors& t) {
    return Tensors{ops::real(t[0]), ops::imag(t[0]), ops::view_as_real(t[0]), ops::conj_physical(t[0])};
  });
  const Tensor t = filled_any({4, 3}, dtype());
  expect_equal_on_gpu(engine_, "written through", {t}, [](const Tensors& x) {
    ops::call(op_id::kAssign, {Arg(ops::imag(x[0]).get()), Arg(ops::real(x[0]).get())}, {{ops::imag(x[0])}});
    return Tensors{x[0]};
  });
}

TEST_P(ComplexTest, Indexing) {
  const Tensor index = values({3}, {4, 0, 2}, DType::kInt64);
  expect_each("moves", [](const Tensors& t) {
    return Tensors{ops::cat({t[0], t[0]}, 0), ops::flip(t[0], {0}), ops::roll(t[0], {1}, {0}), ops::tril(t[0], 0)};
  });
  const Tensor matrix = filled_any({5, 9}, dtype()), more = filled_any({3, 9}, dtype());
  expect_equal_on_gpu(
      engine_, "indexed", {matrix, index, more},
      [](const Tensors& t) {
        return Tensors{ops::index_select(t[0], 0, t[1]),
                       ops::index_add(t[0], 0, t[1], t[2], std::complex<double>(0.5, -2)),
                       ops::index_put(t[0], {t[1]}, t[2], false), ops::index_put(t[0], {t[1]}, t[2], true),
                       ops::pad(t[0], {1, 2}, std::complex<double>(1, 2))};
      },
      tolerance());
  const Tensor columns = ops::unsqueeze(index, 1);
  expect_equal_on_gpu(
      engine_, "scattered", {matrix, columns, more},
      [](const Tensors& t) {
        return Tensors{ops::gather(t[0], 0, t[1]), ops::scatter(t[0], 0, t[1], t[2]),
                       ops::scatter_add(t[0], 0, t[1], t[2])};
      },
      tolerance());
  const Tensor repeated = values({3, 2}, {1, 4, 1, 0, 1, 4}, DType::kInt64);
  for (const Tensor& factors : {filled_any({3, 5}, dtype()), transposed(filled_any({5, 3}, dtype()), 0, 1)}) {
    expect_equal_on_gpu(
        engine_, "multiplied", {matrix, repeated, factors},
        [](const Tensors& t) {
          return Tensors{ops::scatter_reduce(t[0], 0, t[1], t[2], "prod"),
                         ops::scatter_reduce(t[0], 1, t[1], t[2], "prod", false),
                         ops::index_reduce(t[0], 0, ops::select(t[1], 1, 0), ops::pad(t[2], {0, 4}, 1.0), "prod")};
        },
        tolerance());
  }
  expect_both_fail(
      engine_, "index 4 is out of bounds for dimension 1 with size 2", {more, repeated},
      [](const Tensors& t) { return Tensors{ops::scatter_reduce(ops::narrow(t[0], 1, 0, 2), 1, t[1], t[0], "prod")}; });
}

TEST_P(ComplexTest, Creation) {
  const std::complex<double> from(1, -2), to(-3, 0.5);
  for (Device device : {Device{}, engine_.gpu()}) {
    expect_same(ops::full({3, 5}, from, dtype(), device), ops::full({3, 5}, from, dtype()), 0);
    expect_same(ops::linspace(from, to, 7, dtype(), device), ops::linspace(from, to, 7, dtype()), tolerance());
    expect_same(ops::logspace(from, to, 7, 2.0, dtype(), device), ops::logspace(from, to, 7, 2.0, dtype()),
                tolerance());
    expect_same(ops::eye(4, 6, dtype(), device), ops::eye(4, 6, dtype()), 0);
    expect_same(ops::eye(6, 4, DType::kInt8, device), ops::eye(6, 4, DType::kInt8), 0);
  }
}

TEST_P(ComplexTest, RandomNumbersEqualCpu) {
  for (auto draw : {&ops::randn, &ops::rand}) {
    ops::manual_seed(7);
    const Tensor here = draw(Sizes{5, 33}, dtype(), Device{});
    ops::manual_seed(7);
    expect_same(draw(Sizes{5, 33}, dtype(), engine_.gpu()), here, tolerance());
  }
}

TEST_P(ComplexTest, Reductions) {
  using Dims = std::optional<absl::Span<const int64_t>>;
  for (int64_t dim : {0, 1, -1}) {
    expect_each(
        "along " + std::to_string(dim),
        [=](const Tensors& t) {
          const Dims dims = absl::MakeConstSpan(&dim, 1);
          return Tensors{ops::sum(t[0], dims),
                         ops::prod(t[0], dims),
                         ops::any(t[0], dims),
                         ops::all(t[0], dims),
                         ops::cumsum(t[0], dim),
                         ops::cumprod(t[0], dim),
                         ops::vector_norm(t[0], 2.0, dims),
                         ops::count_nonzero(t[0], dims)};
        },
        10 * tolerance());
  }
  for (const Tensor& t : {filled_any({5, 9}, dtype()), filled_any({70, 50}, dtype()), filled_any({}, dtype())}) {
    expect_equal_on_gpu(
        engine_, "of all", {t},
        [](const Tensors& x) {
          return Tensors{ops::sum(x[0]), ops::mean(x[0]), ops::vector_norm(x[0], 3.0), ops::vector_norm(x[0], INFINITY),
                         ops::var(x[0]), ops::std(x[0])};
        },
        10 * tolerance());
  }
  expect_each(
      "exponentials", [](const Tensors& t) { return Tensors{ops::logsumexp(t[0], {-1})}; }, tolerance());
}

TEST_P(ComplexTest, RejectsOrderedOperators) {
  expect_both_fail(engine_, "not implemented for complex", {filled_any({4}, dtype())},
                   [](const Tensors& t) { return Tensors{ops::cummax(t[0], 0)[0]}; });
}

TEST_P(ComplexTest, Products) {
  const std::pair<Sizes, Sizes> factors[] = {{{4, 3}, {3, 5}}, {{2, 4, 3}, {3, 5}},       {{2, 4, 3}, {2, 3, 5}},
                                             {{3}, {3}},       {{2, 1, 4, 3}, {3, 3, 2}}, {{4, 0}, {0, 2}}};
  for (const auto& [a, b] : factors) {
    expect_equal_on_gpu(
        engine_, to_string(a), {filled_any(a, dtype()), filled_any(b, dtype())},
        [](const Tensors& t) { return Tensors{ops::matmul(t[0], t[1])}; }, tolerance());
  }
  expect_equal_on_gpu(
      engine_, "turned",
      {transposed(filled_any({3, 4}, dtype()), 0, 1), filled_any({5, 3}, dtype()), filled_any({5}, dtype())},
      [](const Tensors& t) { return Tensors{ops::linear(t[0], t[1], t[2])}; }, tolerance());
}

INSTANTIATE_TEST_SUITE_P(Both, ComplexTest, ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tt::cuda
