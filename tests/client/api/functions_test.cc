// Functions that are composed in the client (linalg, fft, special, einsum, pooling), compared with results of PyTorch
// (record.py).
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using List = std::vector<Tensor>;
using Function = std::function<List(const List&)>;
using Functions = std::map<std::string, Function>;

// A function of one or two tensors with one result.
Function one(std::function<Tensor(const Tensor&)> f) {
  return [f](const List& in) { return List{f(in[0])}; };
}
Function two(std::function<Tensor(const Tensor&, const Tensor&)> f) {
  return [f](const List& in) { return List{f(in[0], in[1])}; };
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Functions factorisations() {
  using namespace linalg;
  return {
      {"inv", one(linalg::inv)},
      {"inverse of a complex matrix", one(inverse)},
      {"det", one(linalg::det)},
      {"slogdet",
       [](const List& in) {
         const auto [sign, size] = linalg::slogdet(in[0]);
         return List{sign, size};
       }},
      {"logdet", one(logdet)},
      {"solve", two([](auto& a, auto& b) { return solve(a, b); })},
      {"solve of a vector", two([](auto& a, auto& b) { return solve(a, b); })},
      {"solve from the right", two([](auto& a, auto& b) { return solve(a, b, false); })},
      {"solve that broadcasts", two([](auto& a, auto& b) { return solve(a, b); })},
      {"solve_triangular", two([](auto& a, auto& b) { return solve_triangular(a, b, false); })},
      {"lu",
       [](const List& in) {
         const auto [P, L, U] = lu(in[0]);
         return List{P, L, U};
       }},
      {"lu_solve", two([](auto& a, auto& b) {
         const auto [factors, pivots] = lu_factor(a);
         return lu_solve(factors, pivots, b);
       })},
      {"adjoint lu_solve", two([](auto& a, auto& b) {
         const auto [factors, pivots] = lu_factor(a);
         return lu_solve(factors, pivots, b, true, true);
       })},
      {"cholesky", one([](auto& a) { return linalg::cholesky(a); })},
      {"upper cholesky", one([](auto& a) { return linalg::cholesky(a, true); })},
      {"cholesky_solve", two([](auto& a, auto& b) { return cholesky_solve(b, linalg::cholesky(a)); })},
      {"cholesky_inverse", one([](auto& a) { return cholesky_inverse(linalg::cholesky(a)); })},
      {"qr",
       [](const List& in) {
         const auto [Q, R] = qr(in[0]);
         return List{Q.abs(), R.abs()};
       }},
      {"householder_product", two(householder_product)},
      {"eigvalsh", one([](auto& a) { return eigvalsh(a); })},
      {"eigh", one([](auto& a) {
         const auto [values, vectors] = eigh(a);
         return (vectors * values.unsqueeze(-2).sqrt()).matmul(vectors.transpose(-2, -1));
       })},
      {"eigvals", one([](auto& a) { return std::get<0>(eigvals(a).abs().sort()); })},
      {"svdvals", one(svdvals)},
      {"svd", one([](auto& a) {
         const auto [U, S, Vh] = svd(a, false);
         return U.matmul(S.sqrt().unsqueeze(-1) * Vh);
       })},
      {"pinv", one([](auto& a) { return pinv(a); })},
      {"hermitian pinv", one([](auto& a) { return pinv(a, std::nullopt, std::nullopt, true); })},
      {"matrix_rank", one([](auto& a) { return matrix_rank(a); })},
      {"lstsq", two([](auto& a, auto& b) { return std::get<0>(lstsq(a, b, std::nullopt, "gels")); })},
  };
}

Functions norms_and_products() {
  using namespace linalg;
  return {
      {"vector_norm", one([](auto& x) { return linalg::vector_norm(x, 3, 1, true); })},
      {"matrix_norm", one([](auto& x) { return matrix_norm(x); })},
      {"matrix_norm 1", one([](auto& x) { return matrix_norm(x, 1); })},
      {"matrix_norm -inf", one([](auto& x) {
         return matrix_norm(x, -kInfinity, {-2, -1}, true);
       })},
      {"matrix_norm 2", one([](auto& x) { return matrix_norm(x, 2); })},
      {"matrix_norm nuc", one([](auto& x) { return matrix_norm(x, "nuc"); })},
      {"norm", one([](auto& x) { return linalg::norm(x); })},
      {"cond", one([](auto& x) { return cond(x); })},
      {"cond fro", one([](auto& x) { return cond(x, "fro"); })},
      {"matrix_power", one([](auto& x) { return linalg::matrix_power(x, -2); })},
      {"matrix_power 0", one([](auto& x) { return linalg::matrix_power(x, 0); })},
      {"multi_dot", [](const List& in) { return List{multi_dot(in)}; }},
      {"cross", two([](auto& a, auto& b) { return linalg::cross(a, b); })},
      {"vecdot", two([](auto& a, auto& b) { return vecdot(a, b); })},
      {"vander", one([](auto& x) { return teletensor::linalg::vander(x); })},
      {"tensorinv", one([](auto& x) { return tensorinv(x, 1); })},
      {"tensorsolve", two([](auto& a, auto& b) { return tensorsolve(a, b); })},
      {"einsum matmul", two([](auto& a, auto& b) {
         return einsum("ij,jk", {a, b});
       })},
      {"einsum batched", two([](auto& a, auto& b) {
         return einsum("bij,bkj->bik", {a, b});
       })},
      {"einsum diagonal", one([](auto& a) { return einsum("bii->ib", {a}); })},
      {"einsum trace", one([](auto& a) { return einsum("ii", {a}); })},
      {"einsum dots", two([](auto& a, auto& b) {
         return einsum("...ij,...jk->...ik", {a, b});
       })},
      {"einsum implicit dots", two([](auto& a, auto& b) {
         return einsum("...i, ...i", {a, b});
       })},
      {"einsum chain", [](const List& in) { return List{einsum("ij,jk,kl->il", in)}; }},
      {"einsum outer", two([](auto& a, auto& b) {
         return einsum("i,j->ji", {a, b});
       })},
      {"einsum sum", two([](auto& a, auto& b) {
         return einsum("ij,kl->k", {a, b});
       })},
      {"einsum that broadcasts", two([](auto& a, auto& b) {
         return einsum("ij,ij->i", {a, b});
       })},
      {"tensordot", two([](auto& a, auto& b) {
         return tensordot(a, b, {1, 0}, {0, 1});
       })},
  };
}

Functions transforms() {
  using namespace fft;
  return {
      {"fft", one([](auto& x) { return fft::fft(x); })},
      {"ifft", one([](auto& x) { return ifft(x, 8, -1, "ortho"); })},
      {"rfft", one([](auto& x) { return rfft(x, 4, 0); })},
      {"irfft", one([](auto& x) { return irfft(x, 7); })},
      {"hfft", one([](auto& x) { return hfft(x); })},
      {"ihfft", one([](auto& x) { return ihfft(x); })},
      {"fft2", one([](auto& x) { return fft2(x); })},
      {"rfftn", one([](auto& x) {
         return rfftn(x, std::nullopt, {0, 1}, "forward");
       })},
      {"irfftn", one([](auto& x) {
         return irfftn(x, {3, 5});
       })},
      {"fftfreq", one([](auto& x) { return fftfreq(7, 0.5) + 0 * x; })},
      {"rfftfreq", one([](auto& x) { return rfftfreq(7) + 0 * x; })},
      {"fftshift", one([](auto& x) { return fftshift(x); })},
      {"ifftshift", one([](auto& x) { return ifftshift(x, 1); })},
  };
}

Functions shapes() {
  return {
      {"broadcast_tensors", [](const List& in) { return broadcast_tensors(in); }},
      {"meshgrid", [](const List& in) { return meshgrid(in); }},
      {"meshgrid of x and y", [](const List& in) { return meshgrid(in, "xy"); }},
      {"cartesian_prod", [](const List& in) { return List{cartesian_prod(in)}; }},
      {"block_diag", [](const List& in) { return List{block_diag(in)}; }},
      {"column_stack", [](const List& in) { return List{column_stack(in)}; }},
      {"row_stack", [](const List& in) { return List{row_stack(in)}; }},
      {"dstack", [](const List& in) { return List{dstack(in)}; }},
      {"atleast_3d", one(atleast_3d)},
      {"hsplit", [](const List& in) { return hsplit(in[0], 2); }},
      {"vsplit", [](const List& in) { return vsplit(in[0], 3); }},
      {"dsplit", [](const List& in) { return dsplit(in[0], 2); }},
      {"fliplr", one(fliplr)},
      {"flipud", one(flipud)},
  };
}

Functions others() {
  namespace F = nn::functional;
  return {
      {"expit", one(special::expit)},
      {"gammaln", one(special::gammaln)},
      {"psi", one(special::psi)},
      {"multigammaln", one([](auto& x) { return special::multigammaln(x, 2); })},
      {"gammainc", one([](auto& x) { return special::gammainc(x.detach() * 0 + 1.5, x); })},
      {"interpolate", one([](auto& x) {
         return F::interpolate(x, F::InterpolateFuncOptions()
                                      .scale_factor(std::vector<double>{1.5})
                                      .mode("bilinear")
                                      .recompute_scale_factor(true));
       })},
      {"circular pad", one([](auto& x) {
         return F::pad(x, F::PadFuncOptions({1, 2, 2, -1}).mode("circular"));
       })},
      {"max_unpool2d", one([](auto& x) {
         const auto [values, indices] = F::max_pool2d_with_indices(x, nn::MaxPool2dOptions(2));
         return F::max_unpool2d(values, indices, nn::MaxUnpool2dOptions(2));
       })},
      {"max_unpool1d to a size", one([](auto& x) {
         const auto [values, indices] = F::max_pool1d_with_indices(x, nn::MaxPool1dOptions(2));
         return F::max_unpool1d(values, indices, nn::MaxUnpool1dOptions(2), std::vector<int64_t>{7});
       })},
      {"ctc_loss", one([](auto& x) {
         return F::ctc_loss(x.log_softmax(2), tensor({{1, 2}, {2, 0}}), {5, 5}, {2, 1});
       })},
  };
}

Tensor as_real(const Tensor& t) { return t.is_complex() ? stack({real(t), imag(t)}, -1) : t; }

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  EXPECT_EQ(got.dtype(), expected.dtype()) << what;
  if (expected.numel() == 0) return;
  const double tolerance = expected.dtype() == kDouble ? 1e-9 : 2e-5;
  const double scale = std::max(1.0, expected.to(kDouble).abs().max().item<double>());
  EXPECT_THAT(got.data<double>(), Pointwise(DoubleNear(tolerance * scale), expected.data<double>())) << what;
}

TEST_F(Api, FunctionsGivePyTorchsResults) {
  const Value recorded = load(std::string(TT_API_TEST_DATA) + "/functions.pt");
  Functions all = factorisations();
  all.merge(norms_and_products());
  all.merge(transforms());
  all.merge(shapes());
  all.merge(others());
  ASSERT_EQ(all.size(), recorded.to_dict().size());
  for (const auto& [name, function] : all) {
    SCOPED_TRACE(name);
    const Value& expected = recorded[name];
    List inputs;
    for (const Value& input : expected["inputs"].to_list()) {
      inputs.push_back(input.to_tensor().clone().detach());
      inputs.back().set_requires_grad(true);
    }
    const List outputs = function(inputs);
    const Value::List& results = expected["outputs"].to_list();
    ASSERT_EQ(outputs.size(), results.size());
    Tensor loss;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor output = as_real(outputs[i]);
      expect_close(output.detach(), results[i].to_tensor(), "output " + std::to_string(i));
      if (!output.requires_grad()) continue;
      const Tensor squares = (output * output).sum();
      loss = loss.defined() ? loss + squares : squares;
    }
    const Value::List& gradients = expected["grads"].to_list();
    if (!loss.defined()) continue;
    loss.backward();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i].is_tensor()) continue;
      ASSERT_TRUE(inputs[i].grad().defined()) << "gradient " << i;
      expect_close(as_real(inputs[i].grad()), gradients[i].to_tensor(), "gradient " + std::to_string(i));
    }
  }
}

TEST_F(Api, FunctionsRejectArguments) {
  const Tensor m = ones({2, 3}), s = ones({2, 2});
  const struct {
    std::function<void()> call;
    const char* message;
  } rows[] = {
      {[&] { linalg::inv(m); }, "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"},
      {[&] {
         linalg::solve(s, ones({3, 2}));
       },
       "Incompatible shapes of A and B for the equation AX = B (2x2 and 3x2)"},
      {[&] { linalg::qr(ones({3})); }, "must have at least 2 dimensions"},
      {[&] { linalg::multi_dot({m}); }, "expected at least 2 tensors but got 1"},
      {[&] { linalg::matrix_norm(m, 3); }, "not supported"},
      {[&] {
         linalg::lstsq(m, ones({2, 1}), std::nullopt, "fast");
       },
       "should be one of (gels, gelsy, gelsd, gelss)"},
      {[&] { fft::fft(m, 0); }, "Invalid number of data points (0) specified"},
      {[&] { fft::fft(m, std::nullopt, -1, "none"); }, "Invalid normalization mode"},
      {[&] { fft::rfft(m.to(kComplexFloat)); }, "expects a real input tensor"},
      {[&] { einsum("ij,jk", {m}); }, "the equation has 2 operands, got 1"},
      {[&] { einsum("ijk", {m}); }, "does not match the number of dimensions (2)"},
      {[&] { einsum("ij->k", {m}); }, "output subscript k does not appear"},
      {[&] {
         einsum("ij,ij", {m, s});
       },
       "do not broadcast"},
      {[&] { tensordot(m, s, {1}, {0}); }, "contracted dimensions need to match"},
      {[&] {
         nn::functional::pad(m, nn::functional::PadFuncOptions({3, 0}).mode("reflect"));
       },
       "Padding size"},
      {[&] {
         nn::functional::max_pool1d(ones({1, 1, 1, 1}), nn::MaxPool1dOptions(1));
       },
       "Expected 2D or 3D"},
      {[&] {
         tensordot(s, s, {0, 1}, {0, 0});
       },
       "listed twice"},
      {[&] {
         linalg::norm(ones({2, 2, 2}), 2.0, {0, 1, 2});
       },
       "must be of length 1 or 2"},
  };
  for (const auto& row : rows) EXPECT_THAT(message_of<RuntimeError>(row.call), HasSubstr(row.message));
  EXPECT_THAT(message_of<IndexError>([&] { fft::fft(m, std::nullopt, 4); }), HasSubstr("Dimension out of range"));
  EXPECT_THAT(message_of<ValueError>([&] {
                nn::functional::interpolate(ones({1, 1, 2}), {});
              }),
              HasSubstr("only one of size or scale_factor"));
  EXPECT_THAT(message_of<NotImplementedError>([&] { linalg::vecdot(ones({3}, kInt), ones({3}, kInt)); }),
              HasSubstr("Expected a floating point or complex tensor"));
  EXPECT_NE(message_of<LinAlgError>([&] { linalg::inv(zeros({2, 2})).data<float>(); }), "");
}

TEST_F(Api, ConditionNumbersOfSingularAndEmptyMatrices) {
  const Tensor singular = tensor({1.0, 2.0, 2.0, 4.0}).reshape({2, 2});
  for (const double p : {1.0, -1.0, kInfinity, -kInfinity})
    EXPECT_EQ(linalg::cond(singular, p).to(kDouble).item<double>(), kInfinity) << p;
  EXPECT_EQ(linalg::cond(singular, "fro").to(kDouble).item<double>(), kInfinity);
  EXPECT_GT(linalg::cond(singular, "nuc").to(kDouble).item<double>(), 1e6);
  const Tensor empty = zeros({2, 0, 0});
  for (const Tensor& none : {linalg::cond(empty), linalg::cond(empty, 1.0), linalg::cond(empty, "nuc")}) {
    EXPECT_EQ(none.sizes(), IntArrayRef({2}));
    EXPECT_EQ(none.abs().sum().item<float>(), 0);
  }
}

// The results of calls are remembered by their metadata: what differs in it, differs in the result.
TEST_F(Api, RepeatedCallsFollowTheirArguments) {
  const Tensor x = ones({2, 3});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ((x + ones({3})).sizes(), IntArrayRef({2, 3}));
    EXPECT_EQ((x + ones({2, 1})).sizes(), IntArrayRef({2, 3}));
    EXPECT_EQ((x + ones({4, 2, 3})).sizes(), IntArrayRef({4, 2, 3}));
    EXPECT_EQ((x + ones({3}, kDouble)).dtype(), kDouble);
    EXPECT_EQ((x + 1.5).dtype(), kFloat);
    EXPECT_EQ((ones({2}, kLong) + 1).dtype(), kLong);
    EXPECT_EQ((ones({2}, kLong) + 1.5).dtype(), kFloat);
    EXPECT_EQ(x.sum(0).sizes(), IntArrayRef({3}));
    EXPECT_EQ(x.sum(1).sizes(), IntArrayRef({2}));
    EXPECT_EQ(x.sum(1, true).sizes(), IntArrayRef({2, 1}));
    EXPECT_EQ(x.sum({0, 1}).dim(), 0);
    EXPECT_EQ(x.transpose(0, 1).add(1).strides(), IntArrayRef({1, 3}));
    EXPECT_EQ(x.add(1).strides(), IntArrayRef({3, 1}));
    EXPECT_TRUE((x + ones({3}, requires_grad())).requires_grad());
    EXPECT_FALSE((x + ones({3})).requires_grad());
    {
      const NoGradGuard no_grad;
      EXPECT_FALSE((x + ones({3}, requires_grad())).requires_grad());
    }
    EXPECT_THAT(message_of<RuntimeError>([&] { x + ones({4}); }), HasSubstr("must match"));
    Tensor y = ones({2, 3});
    y.add_(x);
    EXPECT_THAT(message_of<RuntimeError>([&] { y.add_(ones({4, 2, 3})); }), HasSubstr("shape"));
  }
}

TEST_F(Api, ThreadsRememberTheirOwnCalls) {
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t i = 0; i < sums.size(); ++i) {
    threads.emplace_back([i, &sums] {
      Tensor x = zeros({static_cast<int64_t>(i) + 1, 2});
      for (int step = 0; step < 50; ++step) x = x + 1;
      sums[i] = x.sum().item<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, (std::vector<float>{100, 200, 300, 400}));
}

}  // namespace
}  // namespace teletensor::testing
