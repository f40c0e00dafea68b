// Sparse components, compared with the same functions of strided matrices.
#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// [[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]]
Tensor matrix() { return tensor({{0., 1., 0., 2.}, {0., 0., 0., 0.}, {3., 0., 4., 0.}}).to(kFloat); }

Tensor counted(std::vector<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return arange(count).to(kFloat).reshape(sizes) - 2;
}

void expect_equal(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(std::vector<int64_t>(a.sizes().begin(), a.sizes().end()),
            std::vector<int64_t>(b.sizes().begin(), b.sizes().end()));
  EXPECT_EQ(a.data<float>(), b.data<float>());
}

TEST_F(Api, SparseConversions) {
  const sparse::Csr csr = sparse::to_csr(matrix());
  EXPECT_THAT(csr.crow_indices.data<int64_t>(), ElementsAre(0, 2, 2, 4));
  EXPECT_THAT(csr.col_indices.data<int64_t>(), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(csr.values.data<float>(), ElementsAre(1, 2, 3, 4));
  expect_equal(csr.to_dense(), matrix());
  expect_equal(csr.to_coo().to_dense(), matrix());
  expect_equal(sparse::to_coo(counted({2, 3, 2})).to_dense(), counted({2, 3, 2}));
  expect_equal(sparse::to_csr(zeros({2, 3})).to_dense(), zeros({2, 3}));
}

TEST_F(Api, SparseDuplicatesAreAdded) {
  const Tensor indices = tensor({{1, 0, 1}, {2, 1, 2}}).to(kInt);
  const sparse::Coo coo{indices, tensor({1., 2., 3.}).to(kFloat), {2, 3}};
  const sparse::Coo sorted = coo.coalesce();
  EXPECT_THAT(sorted.values.data<float>(), ElementsAre(2, 4));
  EXPECT_EQ(sorted.indices.dtype(), kInt);
  expect_equal(sparse::to_csr(coo).to_dense(), coo.to_dense());
  expect_equal(coo.to_dense(), tensor({{0., 2., 0.}, {0., 0., 4.}}).to(kFloat));
  const sparse::Coo rows{tensor({{1, 1}}), ones({2, 3}), {2, 3}};
  expect_equal(rows.coalesce().to_dense(), tensor({{0., 0., 0.}, {2., 2., 2.}}).to(kFloat));
}

TEST_F(Api, SparseProducts) {
  const sparse::Csr a = sparse::to_csr(matrix());
  expect_equal(sparse::mm(a, counted({4, 5})), matrix().matmul(counted({4, 5})));
  expect_equal(sparse::mv(a, counted({4})), matrix().matmul(counted({4})));
  expect_equal(sparse::mm_transposed(a, counted({3, 2})), matrix().t().matmul(counted({3, 2})));
  const Tensor other = matrix().t() + eye(4).index({indexing::Slice(), indexing::Slice(0, 3)});
  expect_equal(sparse::mm(a, sparse::to_csr(other)).to_dense(), matrix().matmul(other));
  const Tensor x = counted({3, 2}), y = counted({2, 4});
  expect_equal(sparse::sampled_mm(a, x, y).to_dense(), where(matrix() != 0, x.matmul(y), zeros({3, 4})));
}

TEST_F(Api, SparseGradients) {
  sparse::Csr a = sparse::to_csr(matrix());
  a.values = a.values.detach().requires_grad_();
  const Tensor b = counted({4, 2}).requires_grad_();
  (sparse::mm(a, b) * counted({3, 2})).sum().backward();
  const Tensor dense = matrix().requires_grad_(), same = counted({4, 2}).requires_grad_();
  (dense.matmul(same) * counted({3, 2})).sum().backward();
  expect_equal(b.grad(), same.grad());
  expect_equal(a.values.grad(), dense.grad().index({matrix() != 0}));

  const Tensor source = matrix().requires_grad_();
  sparse::to_csr(source).to_dense().sum().backward();
  expect_equal(source.grad(), (matrix() != 0).to(kFloat));
}

TEST_F(Api, SparseErrors) {
  const sparse::Csr a = sparse::to_csr(matrix());
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::mm(a, ones({3, 2})); }), HasSubstr("expected a matrix of 4 rows"));
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::mm(a, a); }), HasSubstr("(4), got 3"));
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::to_csr(ones({2, 2, 2})); }), HasSubstr("expected a matrix"));
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::mm_transposed(a, ones({4, 2})); }), HasSubstr("3 rows"));
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::sampled_mm(a, ones({3, 2}), ones({2, 5})); }), HasSubstr("4 col"));
  const sparse::Coo outside{tensor({{0}, {7}}), ones({1}), {3, 4}};
  EXPECT_THAT(message_of<RuntimeError>([&] { floats(outside.to_dense()); }), HasSubstr("7"));
  const sparse::Coo flat{tensor({0, 1}), ones({2}), {3}};
  EXPECT_THAT(message_of<RuntimeError>([&] { flat.to_dense(); }), HasSubstr("[dimensions, elements]"));
  const sparse::Coo narrow{tensor({{0}}), ones({1, 4}), {3, 5}};
  EXPECT_THAT(message_of<RuntimeError>([&] { narrow.to_dense(); }), HasSubstr("[elements, dense sizes...]"));
  EXPECT_THAT(message_of<RuntimeError>([&] { narrow.coalesce(); }), HasSubstr("[elements, dense sizes...]"));
  sparse::Csr wrong = a;
  wrong.sizes = {5, 4};
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::mm(wrong, ones({4, 2})); }), HasSubstr("than the 5 rows"));
  EXPECT_THAT(message_of<RuntimeError>([&] { sparse::mm_transposed(wrong, ones({5, 2})); }), HasSubstr("the 5 rows"));
  EXPECT_THAT(message_of<RuntimeError>([&] { wrong.to_dense(); }), HasSubstr("than the 5 rows"));
  wrong.sizes = a.sizes;
  wrong.crow_indices = tensor({0, 9, 2, 4});
  EXPECT_NE(message_of<RuntimeError>([&] { floats(sparse::mm(wrong, ones({4, 2}))); }), "");
}

}  // namespace
}  // namespace teletensor::testing
