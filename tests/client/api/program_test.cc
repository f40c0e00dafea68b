// Programs of C++ functions: runs beside single calls, gradients, sizes, errors and their lifetime.
#include "client/api/dispatch.h"
#include "engine/schema/op_ids.h"
#include "tests/client/api/api_test.h"

namespace teletensor {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Programs = testing::Api;
using testing::message_of;

// The number of Programs that the session has in the engine.
int64_t count_programs() { return internal::call(tt::op_id::kProgramCounters, {}).size(0); }

TEST_F(Programs, RunsAsOneInstructionWithTheValuesOfCalls) {
  const Tensor w = randn({3, 4}), x = randn({2, 3});
  const auto f = [&](const Tensor& x) { return (x.matmul(w) + 1).relu() * 2; };
  const compiler::Program program = compiler::trace(f, x);
  EXPECT_EQ(program.instructions(), 4u);
  EXPECT_EQ(program.inputs(), 1u);
  ASSERT_EQ(program.captured().size(), 1u);
  EXPECT_TRUE(program.captured()[0].is_same(w));
  EXPECT_EQ(floats(program(x)), floats(f(x)));
  const Tensor other = randn({5, 3});  // another size
  EXPECT_EQ(floats(program(other)), floats(f(other)));
  w.mul_(2);  // every run reads the captured tensor
  EXPECT_EQ(floats(program(x)), floats(f(x)));
}

TEST_F(Programs, InfersTheShapesOfItsOutputs) {
  const compiler::Program program =
      compiler::trace([](const Tensor& x, const Tensor& y) { return std::make_tuple(x.matmul(y), x.sum(0) > 0, x); },
                      ones({2, 3}), ones({3, 4}));
  const auto outputs = program.infer({ones({7, 3}), ones({3, 5})});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_THAT(outputs[0].sizes, ElementsAre(7, 5));
  EXPECT_EQ(outputs[0].dtype, kFloat);
  EXPECT_TRUE(outputs[0].device.is_cpu());
  EXPECT_THAT(outputs[1].sizes, ElementsAre(3));
  EXPECT_EQ(outputs[1].dtype, kBool);
  EXPECT_THAT(outputs[2].sizes, ElementsAre(7, 3));
  const Tensor x = ones({7, 3});
  const std::vector<Tensor> results = program.run({x, ones({3, 5})});
  EXPECT_THAT(results[0].sizes().vec(), ElementsAre(7, 5));
  EXPECT_TRUE(results[2].is_same(x));
  EXPECT_THAT(message_of<Error>([&] { program.infer({ones({7, 3}), ones({4, 5})}); }), HasSubstr("matmul"));
}

TEST_F(Programs, IsRecordedForBackward) {
  const Tensor w = randn({3, 4}).set_requires_grad(true), x = randn({2, 3}).set_requires_grad(true);
  const auto f = [&](const Tensor& x) { return x.matmul(w).tanh().sum(); };
  f(x).backward();
  const std::vector<float> of_x = floats(x.grad()), of_w = floats(w.grad());
  x.set_grad(Tensor());
  w.set_grad(Tensor());
  const compiler::Program program = compiler::trace(f, x);
  EXPECT_FALSE(x.grad().defined());
  program(x).backward();
  EXPECT_EQ(floats(x.grad()), of_x);
  EXPECT_EQ(floats(w.grad()), of_w);
  const NoGradGuard no_grad;
  EXPECT_FALSE(program(x).requires_grad());
}

TEST_F(Programs, ContainsABackwardPass) {
  nn::Linear model(3, 1);
  const Tensor x = randn({8, 3}), y = randn({8, 1});
  const auto f = [&](const Tensor& x, const Tensor& y) {
    model->zero_grad();
    const Tensor loss = nn::functional::mse_loss(model(x), y);
    loss.backward();
    return loss.detach();
  };
  const Tensor expected = f(x, y);
  const std::vector<float> gradient = floats(model->weight.grad());
  model->zero_grad();
  const compiler::Program program = compiler::trace(f, x, y);
  EXPECT_FALSE(model->weight.grad().defined());
  optim::SGD optimizer(model->parameters(), 0.1);
  EXPECT_EQ(program(x, y).item<float>(), expected.item<float>());
  EXPECT_THAT(floats(model->weight.grad()), ElementsAreArray(gradient));
  for (int i = 0; i < 50; ++i) {
    program(x, y);
    optimizer.step();
  }
  EXPECT_LT(program(x, y).item<float>(), expected.item<float>());
}

TEST_F(Programs, KeepsLessForBackwardWithinABudget) {
  const Tensor w = randn({64, 64}).set_requires_grad(true), x = randn({64, 64});
  const compiler::Function f = [&](const std::vector<Tensor>& inputs) {
    Tensor h = inputs[0];
    for (int i = 0; i < 3; ++i) h = (h.matmul(w) * 0.1).sin().exp();
    return autograd::grad({h.sum()}, {w});
  };
  const std::vector<float> expected = floats(compiler::trace(f, {x}).run({x})[0]);
  const compiler::Program half = compiler::trace(f, {x}, {.memory_budget = 0.5});
  EXPECT_EQ(floats(half.run({x})[0]), expected);
  EXPECT_THAT(half.explain({x}), HasSubstr("with a budget of 0.5"));
  EXPECT_THAT(message_of<ValueError>([&] { compiler::trace(f, {x}, {.memory_budget = 2}); }),
              HasSubstr("expected a memory budget from 0 to 1, got 2"));
}

TEST_F(Programs, GradientsOfGivenTensors) {
  const Tensor x = randn({4}).set_requires_grad(true);
  const auto f = [](const Tensor& x) { return autograd::grad({(x * x * x).sum()}, {x})[0]; };
  EXPECT_EQ(floats(compiler::trace(f, x)(x)), floats(f(x)));
}

TEST_F(Programs, RequiresWhatTheFunctionHasReadOfSizes) {
  const compiler::Program mean = compiler::trace([](const Tensor& x) { return x.sum() / x.size(0); }, ones({4, 2}));
  EXPECT_EQ(mean(ones({4, 2})).item<float>(), 2);
  EXPECT_EQ(mean(ones({4, 6})).item<float>(), 6);  // a size that it has not read
  EXPECT_THAT(message_of<ValueError>([&] {
                mean(ones({5, 2}));
              }),
              HasSubstr("the traced function requires size(input 0, 0) == 4"));
  const compiler::Program flat = compiler::trace([](const Tensor& x) { return x.view({x.numel()}) + 1; }, ones({2, 3}));
  EXPECT_THAT(message_of<ValueError>([&] { flat(ones({3, 3})); }), HasSubstr("requires size(input 0, 0) == 2"));
  const compiler::Program plain =
      compiler::trace([](const Tensor& x) { return x.is_contiguous() ? x + 1 : x + 2; }, ones({2, 3}));
  EXPECT_THAT(message_of<ValueError>([&] { plain(ones({3, 2}).t()); }), HasSubstr("is_contiguous"));
  const compiler::Program stride = compiler::trace([](const Tensor& x) { return x * x.stride(0); }, ones({2, 3}));
  EXPECT_THAT(message_of<ValueError>([&] { stride(ones({2, 4})); }), HasSubstr("stride"));
}

TEST_F(Programs, WritesTakeEffectAtEveryRun) {
  const Tensor count = zeros({2});
  const compiler::Program program = compiler::trace(
      [&](const Tensor& x) {
        const NoGradGuard no_grad;
        count.add_(1);
        return x + count;
      },
      ones({2}));
  EXPECT_THAT(floats(count), ElementsAre(0, 0));
  program(ones({2}));
  EXPECT_THAT(floats(program(ones({2}))), ElementsAre(3, 3));
  EXPECT_THAT(floats(count), ElementsAre(2, 2));
}

TEST_F(Programs, ErrorsNameTheInstructionAndTheLine) {
  const Tensor table = ones({3, 2});
  const compiler::Program program = compiler::trace(
      [&](const Tensor& index) {
        const Tensor doubled = table * 2;
        const SourceLine line;
        return doubled.index_select(0, index);
      },
      tensor({0, 1}, kLong));
  EXPECT_THAT(floats(program(tensor({2}, kLong))), ElementsAre(2, 2));
  const Tensor failed = program(tensor({5, 1}, kLong));
  EXPECT_THAT(
      message_of<Error>([&] { failed.data<float>(); }),
      AllOf(HasSubstr("[index_select]"), HasSubstr("instruction 1 of a Program"), HasSubstr("program_test.cc:")));
}

TEST_F(Programs, RefusesWhatItCannotContain) {
  const Tensor x = ones({2});
  EXPECT_THAT(
      message_of<RuntimeError>([&] { compiler::trace([](const Tensor& x) { return x * x.sum().item<float>(); }, x); }),
      HasSubstr("exists only while a Program is traced"));
  EXPECT_THAT(message_of<NotImplementedError>([&] { compiler::trace([](const Tensor& x) { return x.nonzero(); }, x); }),
              HasSubstr("[nonzero] the sizes of its results depend on values"));
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                compiler::trace([](const Tensor& x) { return x.view({1, 2}); }, x);
              }),
              HasSubstr("cannot be a view of an input"));
  nn::Linear model(2, 1);
  optim::SGD optimizer(model->parameters(), 0.1);
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                compiler::trace(
                    [&](const Tensor& x) {
                      model(x).sum().backward();
                      optimizer.step();
                      return x + 1;
                    },
                    x);
              }),
              HasSubstr("an optimizer's step"));
  EXPECT_FALSE(model->weight.grad().defined());
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                compiler::trace(
                    [&](const Tensor& x) {
                      model->weight.set_data(ones({1, 2}));
                      return model(x);
                    },
                    x);
              }),
              HasSubstr("set_data"));
  EXPECT_THAT(message_of<RuntimeError>([&] {
                compiler::trace(
                    [&](const Tensor& y) { return compiler::trace([](const Tensor& z) { return z + 1; }, x)(y); }, x);
              }),
              HasSubstr("tracing a Program already"));
  EXPECT_EQ((x + 1).sum().item<float>(), 4);  // no trace is left
}

TEST_F(Programs, RefusesOtherInputs) {
  const compiler::Program program = compiler::trace([](const Tensor& x) { return x + 1; }, ones({2}));
  EXPECT_THAT(message_of<TypeError>([&] { program.run({}); }), HasSubstr("expected 1 inputs, got 0"));
  EXPECT_THAT(message_of<ValueError>([&] { program(ones({2}, kDouble)); }), HasSubstr("expected an input of float32"));
  EXPECT_THAT(message_of<RuntimeError>([&] { program.run({Tensor()}); }), HasSubstr("undefined Tensor"));
  const Session other = testing::connect_to(daemon());
  {
    const SessionGuard guard(other);
    EXPECT_THAT(message_of<Error>([&] { program(ones({2})); }), HasSubstr("another session"));
  }
  other.close();
  EXPECT_THAT(message_of<RuntimeError>([] { compiler::Program().run({}); }), HasSubstr("undefined Program"));
  const compiler::Program two = compiler::trace(
      [](const Tensor& x) {
        return std::vector<Tensor>{x + 1, x + 2};
      },
      ones({2}));
  EXPECT_THAT(message_of<RuntimeError>([&] { two(ones({2})); }),
              HasSubstr("expected a Program with one output, got one with 2"));
}

TEST_F(Programs, IsDefinedAndDropped) {
  const int64_t before = count_programs();
  compiler::Program program = compiler::trace([](const Tensor& x) { return x * 3 + 1; }, ones({2}));
  EXPECT_EQ(count_programs(), before);
  program.define();
  program.define();  // is defined already
  EXPECT_EQ(count_programs(), before + 1);
  compiler::Program copy = program;
  program.drop();
  EXPECT_FALSE(program.defined());
  EXPECT_THAT(floats(copy(ones({2}))), ElementsAre(4, 4));
  EXPECT_EQ(count_programs(), before + 1);
  copy.drop();
  EXPECT_EQ(count_programs(), before);
}

TEST_F(Programs, WithoutInputsAndWithUploads) {
  const auto f = [](const std::vector<Tensor>&) {
    return std::vector<Tensor>{tensor({1.0, 2.0}) + ones({2}), zeros({3}).cos()};
  };
  const compiler::Program program = compiler::trace(f, {});
  const std::vector<Tensor> results = program.run({});
  EXPECT_THAT(floats(results[0]), ElementsAre(2, 3));
  EXPECT_THAT(floats(results[1]), ElementsAre(1, 1, 1));
}

TEST_F(Programs, ExplainsItself) {
  const Tensor x = randn({64, 64});
  const compiler::Program program = compiler::trace([](const Tensor& x) { return ((x + 1) * 2).exp(); }, x);
  EXPECT_EQ(program.text(), "%2 = add(%1, other=1)\n%3 = mul(%2, other=2)\n%4 = exp(%3)\nread %4\n");
  EXPECT_THAT(program.explain({x}),
              AllOf(HasSubstr("# as traced\n"), HasSubstr("fuse_regions"), HasSubstr("pointwise_chain")));
}

TEST_F(Programs, ExactOnesKeepTheBitsOfCalls) {
  const Tensor x = randn({16, 33});
  const compiler::Function f = [](const std::vector<Tensor>& inputs) {
    const Tensor e = (inputs[0] - inputs[0].amax({1}, true)).exp();
    return std::vector<Tensor>{e / e.sum(1, true)};
  };
  EXPECT_THAT(compiler::trace(f, {x}).explain({x}), HasSubstr("softmax"));
  const compiler::Program exact = compiler::trace(f, {x}, {.exact = true});
  EXPECT_THAT(exact.explain({x}), Not(HasSubstr("softmax")));
  EXPECT_EQ(floats(exact.run({x})[0]), floats(f({x})[0]));
}

}  // namespace
}  // namespace teletensor
