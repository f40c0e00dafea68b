// Backward through the client: leaves, captures, client functions, hooks, and errors that the client raises without a
// round trip.

#include "client/autograd/backward.h"
#include "client/connect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/daemon.h"

namespace tt::client::testing {
namespace {

using V = std::vector<double>;

class ClientAutogradTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = new server::testing::Daemon;
    ConnectOptions options;
    options.address = "unix:" + daemon_->socket();
    options.token = daemon_->token();
    session_ = new Ref<Session>(connect(options));
  }
  static void TearDownTestSuite() {
    (*session_)->close();
    delete session_;
    delete daemon_;
  }

  static Tensor leaf(V numbers, bool requires_grad = true) {
    absl::Span<const char> bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
    const Sizes sizes{static_cast<int64_t>(numbers.size())};
    Tensor t = (*session_)->upload(bytes, DType::kFloat64, sizes, Device{});
    set_requires_grad(t, requires_grad, 0);
    return t;
  }
  static Tensor call(std::string_view name, std::vector<Arg> args, bool grad = true) {
    const Op& op = *find_op(name);
    while (args.size() < op.params.size()) args.push_back(op.params[args.size()].default_value);
    CallOptions options;
    options.grad = grad;
    return (*session_)->call(op, args, options)[0];
  }
  static Tensor mul(const Tensor& a, const Tensor& b, bool grad = true) {
    return call("mul", {a.get(), b.get()}, grad);
  }
  static Tensor mul(const Tensor& a, double b, bool grad = true) { return call("mul", {a.get(), b}, grad); }
  static Tensor sum(const Tensor& a) { return call("sum", {a.get()}); }

  static V read(const Tensor& t) {
    if (!t) return {};
    Value value = (*session_)->read(t);
    const double* first = reinterpret_cast<const double*>(value.bytes.data());
    return V(first, first + value.bytes.size() / sizeof(double));
  }
  static void run_backward(const Tensor& root, bool retain = false, bool create = false) {
    backward({&root, 1}, {}, retain, create, 0);
  }
  static std::vector<Tensor> gradients(const Tensor& root, std::vector<Tensor> inputs, bool create = false,
                                       bool allow_unused = false) {
    return grad({&root, 1}, {}, inputs, create, create, allow_unused, 0);
  }
  // x -> 2 x as a client function whose gradient is `factor` times the incoming gradient.
  static Tensor function(const Tensor& x, double factor, int* runs = nullptr) {
    Tensor y = mul(x, 2.0, false);
    auto back = [factor, runs](std::vector<Tensor> g, bool create_graph) -> std::vector<Tensor> {
      if (runs) ++*runs;
      return {mul(g[0], factor, create_graph)};
    };
    custom_function({&x, 1}, {&y, 1}, back, 0);
    return y;
  }
  template <typename F>
  static std::string error_of(F run) {
    try {
      run();
    } catch (const Error& e) {
      return e.message();
    }
    return {};
  }

  static server::testing::Daemon* daemon_;
  static Ref<Session>* session_;
};
server::testing::Daemon* ClientAutogradTest::daemon_ = nullptr;
Ref<Session>* ClientAutogradTest::session_ = nullptr;

TEST_F(ClientAutogradTest, OnlyReachedLeavesGetGradients) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4}), z = leaf({5, 6});
  Tensor root = sum(mul(x, y));
  EXPECT_FALSE(root->is_leaf());
  run_backward(root);
  EXPECT_EQ(read(x->grad), (V{3, 4}));
  EXPECT_EQ(read(y->grad), (V{1, 2}));
  EXPECT_FALSE(z->grad);
  Handle* first = x->grad.get();
  run_backward(sum(mul(x, 10.0)));
  EXPECT_EQ(x->grad.get(), first);
  EXPECT_EQ(read(x->grad), (V{13, 14}));
  const Tensor none;
  set_grads({&x, 1}, {&none, 1}, 0);
  run_backward(sum(mul(x, 10.0)));
  EXPECT_EQ(read(x->grad), (V{10, 10}));
}

TEST_F(ClientAutogradTest, MisuseIsErrorAtOnce) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4}), constant = leaf({1, 1}, false);
  EXPECT_THAT(error_of([&] { run_backward(mul(x, 2.0)); }), ::testing::HasSubstr("only for scalar outputs"));
  EXPECT_THAT(error_of([&] { run_backward(sum(constant)); }), ::testing::HasSubstr("does not require grad"));
  EXPECT_THAT(error_of([&] { gradients(sum(x), {y}); }), ::testing::HasSubstr("not have been used in the graph"));
  EXPECT_FALSE(gradients(sum(x), {y}, false, true)[0]);
  EXPECT_THAT(error_of([&] { gradients(sum(x), {constant}); }), ::testing::HasSubstr("does not require grad"));
  EXPECT_THAT(error_of([&] { set_requires_grad(mul(x, 2.0), false, 0); }), ::testing::HasSubstr("leaf variables"));
  Tensor root = sum(mul(x, x));
  run_backward(root);
  EXPECT_THAT(error_of([&] { run_backward(root); }), ::testing::HasSubstr("a second time"));
}

TEST_F(ClientAutogradTest, SecondDerivatives) {
  Tensor x = leaf({2, 3});
  Tensor first = gradients(sum(mul(x, mul(x, x))), {x}, true)[0];
  EXPECT_TRUE(first->requires_grad);
  EXPECT_EQ(read(gradients(sum(first), {x})[0]), (V{12, 18}));
}

TEST_F(ClientAutogradTest, FunctionsRunInOrderOfPass) {
  Tensor x = leaf({1, 2});
  int runs = 0, others = 0;
  Tensor inner = function(mul(x, 3.0), 100.0, &runs);
  Tensor outer = function(mul(inner, inner), 10.0, &runs);
  function(mul(x, 1.0), 1.0, &others);
  run_backward(sum(outer));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(read(x->grad), (V{36000, 72000}));  // 10 * 2 (6 x) * 100 * 3
}

TEST_F(ClientAutogradTest, ThrowingFunctionEndsPassOnly) {
  Tensor x = leaf({1, 2}), y = mul(x, 2.0, false);
  auto back = [](std::vector<Tensor>, bool) -> std::vector<Tensor> { throw Error(ErrorKind::kValue, "mine"); };
  custom_function({&x, 1}, {&y, 1}, back, 0);
  EXPECT_EQ(error_of([&] { run_backward(sum(y)); }), "mine");
  EXPECT_FALSE(x->grad);
  run_backward(sum(mul(x, 5.0)));
  EXPECT_EQ(read(x->grad), (V{5, 5}));
}

TEST_F(ClientAutogradTest, FunctionWithoutGradientStopsPass) {
  Tensor x = leaf({1, 2}), y = leaf({1, 1}), z = mul(x, 2.0, false);
  auto back = [](std::vector<Tensor>, bool) { return std::vector<Tensor>(1); };
  custom_function({&x, 1}, {&z, 1}, back, 0);
  run_backward(sum(mul(z, y)));
  EXPECT_FALSE(x->grad);
  EXPECT_EQ(read(y->grad), (V{2, 4}));
}

TEST_F(ClientAutogradTest, SecondDerivativeThroughAFunction) {
  Tensor x = leaf({3});
  Tensor y = mul(x, 1.0), square = mul(y, y, false);
  auto back = [y](std::vector<Tensor> g, bool create) -> std::vector<Tensor> {
    return {mul(mul(g[0], y, create), 2.0, create)};
  };
  custom_function({&y, 1}, {&square, 1}, back, 0);
  Tensor first = gradients(mul(square, square), {x}, true)[0];  // x^4
  EXPECT_EQ(read(first), V{108});
  EXPECT_EQ(read(gradients(first, {x})[0]), V{108});  // 12 x^2
}

TEST_F(ClientAutogradTest, HooksSeeAndReplaceGradients) {
  Tensor x = leaf({2});
  Tensor y = mul(x, 3.0);
  V seen;
  add_hook(
      y,
      [&](std::vector<Tensor> g, bool) -> std::vector<Tensor> {
        seen = read(g[0]);
        return {mul(g[0], 10.0, false)};
      },
      0);
  int64_t once = add_hook(
      x, [&](std::vector<Tensor>, bool) { return std::vector<Tensor>(1); }, 0);
  Tensor root = sum(mul(y, y));
  run_backward(root, true);
  EXPECT_EQ(seen, V{12});
  EXPECT_EQ(read(x->grad), V{360});
  remove_hook(x, once, 0);
  run_backward(root);
  EXPECT_EQ(read(x->grad), V{720});
}

TEST_F(ClientAutogradTest, RetainedAndIntermediateGradients) {
  Tensor x = leaf({2});
  Tensor y = mul(x, 3.0);
  retain_grad(y);
  Tensor root = sum(mul(y, y));
  EXPECT_EQ(read(gradients(root, {y}, true)[0]), V{12});
  run_backward(root);
  EXPECT_EQ(read(y->grad), V{12});
  EXPECT_EQ(read(x->grad), V{36});
}

TEST_F(ClientAutogradTest, PassesNest) {
  Tensor x = leaf({2}), w = leaf({5});
  Tensor y = mul(x, 2.0, false);
  auto back = [&](std::vector<Tensor> g, bool) -> std::vector<Tensor> {
    run_backward(sum(mul(w, x)));  // a pass within a pass, as in checkpointing
    return {g[0]};
  };
  custom_function({&x, 1}, {&y, 1}, back, 0);
  run_backward(sum(mul(y, w)));
  EXPECT_EQ(read(x->grad), V{10});
  EXPECT_EQ(read(w->grad), V{6});
}

}  // namespace
}  // namespace tt::client::testing
