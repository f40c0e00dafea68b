// Compares the client's copy of the tape with the tape: runs the same random programs, with in-place writes, views
// and detached tensors, on an engine in this process and through a client.

#include <optional>
#include <random>
#include <variant>

#include "client/autograd/backward.h"
#include "client/connect.h"
#include "tests/autograd/fixture.h"
#include "tests/server/daemon.h"

namespace tt::autograd::testing {
namespace {

struct Ref {
  size_t tensor;
};
using StepArg = std::variant<Ref, double, int64_t>;

struct Step {
  std::string_view op;
  std::vector<StepArg> args;
  std::optional<size_t> into;
  bool grad = true;
};

struct Plan {
  std::vector<bool> leaves;  // whether each leaf requires grad
  std::vector<Step> steps;
};

constexpr int64_t kSize = 4;

// Generates operators that save no tensors, so that an in-place write never invalidates the pass.
class Planner {
 public:
  explicit Planner(uint32_t seed) : bits_(seed) {}

  Plan plan() {
    Plan plan;
    for (int i = 0; i < 4; ++i) plan.leaves.push_back(one_in(2));
    shapes_.assign(4, kSize);
    for (int i = 0; i < 25; ++i) plan.steps.push_back(step());
    return plan;
  }

 private:
  bool one_in(uint32_t n) { return bits_() % n == 0; }
  size_t any() { return bits_() % shapes_.size(); }

  Step step() {
    Step step;
    size_t a = any(), b = any();
    uint32_t kind = bits_() % 7;
    if (kind == 0 && shapes_[a] == kSize) {
      step = {"select", {Ref{a}, int64_t{0}, static_cast<int64_t>(bits_() % kSize)}, {}};
      shapes_.push_back(0);
    } else if (kind == 1) {
      step = {one_in(3) ? "detach" : "alias", {Ref{a}}, {}};
      shapes_.push_back(shapes_[a]);
    } else if (kind <= 3) {
      step = {"add", {Ref{a}, Ref{b}, int64_t{1}}, {}};
      shapes_.push_back(std::max(shapes_[a], shapes_[b]));
    } else if (kind == 4) {
      step = {"mul", {Ref{a}, 3.0}, a};
    } else if (kind == 5) {
      if (shapes_[a] < shapes_[b]) std::swap(a, b);
      step = {one_in(2) ? "assign" : "add", {Ref{a}, Ref{b}}, a};
      if (step.op == "add") step.args.push_back(int64_t{1});
    } else {
      step = {"full_like", {Ref{a}, 7.0}, a};
    }
    step.grad = !one_in(8);
    return step;
  }

  std::mt19937 bits_;
  std::vector<int64_t> shapes_;
};

// The state of a tensor after each step, in the engine or in the client: "leaf", "grad", "error: ...".
using Trace = std::vector<std::string>;
using Grads = std::vector<std::optional<std::vector<double>>>;

std::vector<double> numbers(size_t i) { return {1.0 + static_cast<double>(i), 2, 3, 4}; }

class EngineInterpreter {
 public:
  void leaf(size_t i, bool requires_grad) {
    tensors_.push_back(values({kSize}, numbers(i), DType::kFloat64));
    tensors_.back()->requires_grad = requires_grad;
  }
  void run(const Step& step) {
    std::vector<Arg> args;
    for (const StepArg& arg : step.args) {
      if (const Ref* ref = std::get_if<Ref>(&arg))
        args.emplace_back(tensors_[ref->tensor].get());
      else if (const double* number = std::get_if<double>(&arg))
        args.emplace_back(*number);
      else
        args.emplace_back(std::get<int64_t>(arg));
    }
    const Op& op = *find_op(step.op);
    while (args.size() < op.params.size()) args.push_back(op.params[args.size()].default_value);
    GradMode mode(step.grad);
    absl::Span<const Tensor> into;
    if (step.into) into = absl::MakeConstSpan(&tensors_[*step.into], 1);
    Tensors results = ops::call(op.id, args, into);
    if (!step.into) tensors_.push_back(results[0]);
  }
  std::string describe(size_t i) const {
    return tensors_[i].requires_grad() ? tensors_[i]->is_leaf() ? "leaf" : "grad" : "none";
  }
  size_t size() const { return tensors_.size(); }
  Grads backward(size_t root, size_t leaves) {
    testing::backward(ops::sum(tensors_[root], std::nullopt, false, std::nullopt));
    Grads grads;
    for (size_t i = 0; i < leaves; ++i) {
      const History* history = find_history(*tensors_[i].get());
      grads.push_back(history && history->grad ? std::optional(read(history->grad)) : std::nullopt);
    }
    return grads;
  }

 private:
  std::vector<Tensor> tensors_;
};

class ClientInterpreter {
 public:
  explicit ClientInterpreter(::tt::Ref<client::Session> session) : session_(std::move(session)) {}

  void leaf(size_t i, bool requires_grad) {
    std::vector<double> bytes = numbers(i);
    absl::Span<const char> view(reinterpret_cast<const char*>(bytes.data()), bytes.size() * sizeof(double));
    tensors_.push_back(session_->upload(view, DType::kFloat64, Sizes{kSize}, Device{}));
    client::set_requires_grad(tensors_.back(), requires_grad, 0);
  }
  void run(const Step& step) {
    std::vector<Arg> args;
    for (const StepArg& arg : step.args) {
      if (const Ref* ref = std::get_if<Ref>(&arg))
        args.emplace_back(tensors_[ref->tensor].get());
      else if (const double* number = std::get_if<double>(&arg))
        args.emplace_back(*number);
      else
        args.emplace_back(std::get<int64_t>(arg));
    }
    const Op& op = *find_op(step.op);
    while (args.size() < op.params.size()) args.push_back(op.params[args.size()].default_value);
    client::CallOptions options;
    options.grad = step.grad;
    if (step.into) options.into = absl::MakeConstSpan(&tensors_[*step.into], 1);
    client::Tensors results = session_->call(op, args, options);
    if (!step.into) tensors_.push_back(results[0]);
  }
  std::string describe(size_t i) const {
    return tensors_[i]->requires_grad ? tensors_[i]->is_leaf() ? "leaf" : "grad" : "none";
  }
  size_t size() const { return tensors_.size(); }
  Grads backward(size_t root, size_t leaves) {
    const Op& sum = *find_op("sum");
    std::vector<Arg> args{tensors_[root].get()};
    while (args.size() < sum.params.size()) args.push_back(sum.params[args.size()].default_value);
    client::Tensor scalar = session_->call(sum, args)[0];
    client::backward({&scalar, 1}, {}, false, false, 0);
    Grads grads;
    for (size_t i = 0; i < leaves; ++i) {
      grads.emplace_back();
      if (!tensors_[i]->grad) continue;
      client::Value value = session_->read(tensors_[i]->grad);
      const double* first = reinterpret_cast<const double*>(value.bytes.data());
      grads.back().emplace(first, first + value.bytes.size() / sizeof(double));
    }
    return grads;
  }

 private:
  ::tt::Ref<client::Session> session_;
  std::vector<client::Tensor> tensors_;
};

template <typename Interpreter>
std::pair<Trace, Grads> run(Interpreter interpreter, const Plan& plan) {
  Trace trace;
  Grads grads;
  for (size_t i = 0; i < plan.leaves.size(); ++i) interpreter.leaf(i, plan.leaves[i]);
  for (const Step& step : plan.steps) {
    std::string at =
        absl::StrCat(trace.size(), " ", std::string(step.op), step.into ? absl::StrCat(" into ", *step.into) : "",
                     step.grad ? "" : " without grad", ": ");
    std::string error = error_of([&] { interpreter.run(step); });
    if (!error.empty()) trace.push_back(at + error);
    for (size_t i = 0; i < interpreter.size(); ++i) trace.push_back(absl::StrCat(at, i, " ", interpreter.describe(i)));
    // A failed step creates no tensors, so the indices of later steps would be wrong.
    if (!error.empty() && !step.into) return {trace, grads};
  }
  for (size_t root = interpreter.size(); root-- > 0;) {
    if (interpreter.describe(root) == "none") continue;
    grads = interpreter.backward(root, plan.leaves.size());
    break;
  }
  return {trace, grads};
}

class ShadowTest : public AutogradTest {};

TEST_F(ShadowTest, AgreesWithTape) {
  server::testing::Daemon daemon;
  client::ConnectOptions options;
  options.address = "unix:" + daemon.socket();
  options.token = daemon.token();
  auto session = client::connect(options);
  int differentiated = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = Planner(seed).plan();
    auto [trace, grads] = run(EngineInterpreter(), plan);
    auto [shadow_trace, shadow_grads] = run(ClientInterpreter(session), plan);
    for (size_t i = 0; i < std::max(trace.size(), shadow_trace.size()); ++i) {
      ASSERT_EQ(i < shadow_trace.size() ? shadow_trace[i] : "", i < trace.size() ? trace[i] : "");
    }
    ASSERT_EQ(shadow_grads, grads);
    for (const auto& grad : grads) differentiated += grad ? 1 : 0;
  }
  EXPECT_GT(differentiated, 300);
  session->close();
}

}  // namespace
}  // namespace tt::autograd::testing
