#include "kernels/cpu/kernels.h"
#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

// PyTorch's documented algorithms in double, for one element.
struct Adam {
  double lr = 0.1, beta1 = 0.9, beta2 = 0.99, eps = 1e-8, decay = 0.01;
  bool decoupled = false, amsgrad = false, maximize = false;
  double average = 0, square = 0, largest = 0;

  double step(double p, double g, int t) {
    if (maximize) g = -g;
    if (decoupled)
      p -= lr * decay * p;
    else
      g += decay * p;
    average = beta1 * average + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * g * g;
    largest = std::max(largest, square);
    const double denominator = std::sqrt(amsgrad ? largest : square) / std::sqrt(1 - std::pow(beta2, t)) + eps;
    return p - lr / (1 - std::pow(beta1, t)) * average / denominator;
  }
};

class Optimizers : public ::testing::TestWithParam<DType> {
 protected:
  double tolerance() const { return 4 * tolerance_of(GetParam()); }
};

TEST_P(Optimizers, AdamVariants) {
  for (bool decoupled : {false, true}) {
    for (bool amsgrad : {false, true}) {
      // Two parameters: one processed in several chunks, one not contiguous.
      Tensors params{filled({20000}, GetParam()), transposed(filled({3, 5}, GetParam()), 0, 1)}, averages, squares,
          largest;
      for (const Tensor& p : params) {
        averages.push_back(constant(p.sizes(), 0, GetParam()));
        squares.push_back(constant(p.sizes(), 0, GetParam()));
        if (amsgrad) largest.push_back(constant(p.sizes(), 0, GetParam()));
      }
      Adam first{.decoupled = decoupled, .amsgrad = amsgrad, .maximize = decoupled}, last = first;
      double p0 = at(params[0], 19999), p1 = at(params[1], 5);  // element (2, 1), stored at 1 * 5 + 2 = 7 below
      p1 = at(params[1], 7);
      for (int t = 1; t <= 3; ++t) {
        Tensors grads{filled({20000}, GetParam()), filled({5, 3}, GetParam())};
        adam_step(params, grads, averages, squares, largest, t, 0.1, 0.9, 0.99, 1e-8, 0.01, decoupled, amsgrad,
                  decoupled, {}, {});
        p0 = first.step(p0, at(grads[0], 19999), t);
        p1 = last.step(p1, at(grads[1], 2 * 3 + 1), t);
        EXPECT_NEAR(at(params[0], 19999), p0, tolerance() * t);
        EXPECT_NEAR(at(params[1], 7), p1, tolerance() * t);
      }
    }
  }
}

TEST_P(Optimizers, SkippedSteps) {
  const Tensor one = constant({}, 1, DType::kFloat32), zero = constant({}, 0, DType::kFloat32);
  const Tensors params{filled({70}, GetParam())}, grads{constant({70}, 0.75, GetParam())};
  const Tensors averages{constant({70}, 0, GetParam())}, squares{constant({70}, 0, GetParam())};
  const Tensor steps = constant({}, 0, DType::kFloat32);
  const auto step = [&](const Tensor& found_inf) {
    adam_step(params, grads, averages, squares, {}, 1, 0.1, 0.9, 0.99, 1e-8, 0, false, false, false, found_inf, steps);
  };
  Adam expected{.decay = 0};
  double p = at(params[0], 69);
  for (int t = 1; t <= 3; ++t) {
    step(one);
    EXPECT_EQ(at(steps, 0), t - 1);
    step(zero);
    EXPECT_EQ(at(steps, 0), t);
    p = expected.step(p, at(grads[0], 69), t);
    EXPECT_NEAR(at(params[0], 69), p, tolerance() * t);
  }
  const double before = at(params[0], 0);
  sgd_step(params, grads, {}, 0.1, 0, 0, 0, false, false, false, one);
  EXPECT_EQ(at(params[0], 0), before);
  sgd_step(params, grads, {}, 0.1, 0, 0, 0, false, false, false, zero);
  EXPECT_NE(at(params[0], 0), before);
}

TEST_P(Optimizers, Unscale) {
  const Tensor factor = constant({}, 0.5, DType::kFloat32), found_inf = constant({}, 0, DType::kFloat32);
  Tensors grads{filled({40000}, GetParam()), transposed(filled({3, 5}, GetParam()), 0, 1)};
  const double first = at(grads[0], 39999), second = at(grads[1], 7);
  amp_unscale(grads, found_inf, factor);
  EXPECT_NEAR(at(grads[0], 39999), first / 2, tolerance());
  EXPECT_NEAR(at(grads[1], 7), second / 2, tolerance());
  EXPECT_EQ(at(found_inf, 0), 0);
  grads.push_back(constant({3}, NAN, GetParam()));
  amp_unscale(grads, found_inf, factor);
  EXPECT_EQ(at(found_inf, 0), 1);
}

TEST_P(Optimizers, SgdVariants) {
  for (double momentum : {0.0, 0.9}) {
    for (bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      const double dampening = nesterov ? 0 : 0.25;
      Tensors params{filled({70}, GetParam())}, buffers;
      // The contents of a new buffer must not matter.
      if (momentum != 0) buffers.push_back(constant({70}, NAN, GetParam()));
      double p = at(params[0], 69), buffer = 0;
      for (int t = 1; t <= 3; ++t) {
        Tensors grads{filled({70}, GetParam())};
        sgd_step(params, grads, buffers, 0.1, momentum, dampening, 0.01, nesterov, false, t == 1, {});
        double g = at(grads[0], 69) + 0.01 * p;
        if (momentum != 0) {
          buffer = t == 1 ? g : momentum * buffer + (1 - dampening) * g;
          g = nesterov ? g + momentum * buffer : buffer;
        }
        p -= 0.1 * g;
        EXPECT_NEAR(at(params[0], 69), p, tolerance() * t);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Optimizers,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(OptimizerLists, RejectsMismatchedLists) {
  Tensors params{filled({3})}, two{filled({3}), filled({3})}, short_one{filled({2})}, none;
  EXPECT_THROW(sgd_step(params, two, none, 0.1, 0, 0, 0, false, false, true, {}), Error);
  EXPECT_THROW(sgd_step(params, short_one, none, 0.1, 0, 0, 0, false, false, true, {}), Error);
  EXPECT_THROW(adam_step(params, params, none, none, none, 1, 0.1, 0.9, 0.99, 1e-8, 0, false, false, false, {}, {}),
               Error);
}

}  // namespace
}  // namespace tt::cpu
