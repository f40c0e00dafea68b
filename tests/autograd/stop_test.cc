// Client functions and hooks: the client's code runs between the parts of a pass.

#include <functional>

#include "autograd/nodes/history.h"
#include "autograd/nodes/tape.h"
#include "tests/autograd/fixture.h"

namespace tt::autograd::testing {
namespace {

using V = std::vector<double>;

class StopTest : public AutogradTest {
 protected:
  // A client function that doubles its input: forward runs outside the tape, as autograd.Function does.
  static Tensor function(int64_t stop, const Tensor& x) {
    Tensor y;
    {
      GradMode off(false);
      y = ops::mul(x, 2.0);
    }
    ops::custom_function(stop, {x}, {y});
    return y;
  }
};

TEST_F(StopTest, ClientComputesGradientOfFunction) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = function(5, ops::mul(x, 3.0));
  EXPECT_TRUE(y.requires_grad());
  Tensor z = ops::sum(ops::mul(y, y), std::nullopt, false, std::nullopt);
  GraphTask task({&z, 1}, {}, {}, {});
  Tensors arrived = task.run_until(5);
  EXPECT_EQ(read(arrived[0]), (V{12, 24}));
  Tensor mine = ops::mul(arrived[0], 100.0);
  task.resume_with(5, {&mine, 1});
  task.finish({});
  EXPECT_EQ(grad_of(x), (V{3600, 7200}));
}

TEST_F(StopTest, FunctionMayReturnNoGradient) {
  Tensor x = leaf({2}, {1, 2});
  Tensor z = ops::sum(function(6, x), std::nullopt, false, std::nullopt), none;
  GraphTask task({&z, 1}, {}, {}, {});
  task.run_until(6);
  task.resume_with(6, {&none, 1});
  EXPECT_EQ(read(task.finish({&x, 1})[0]), (V{0, 0}));
  EXPECT_TRUE(grad_of(x).empty());
}

TEST_F(StopTest, RejectsInvalidGradient) {
  Tensor x = leaf({2}, {1, 2});
  Tensor z = ops::sum(function(7, x), std::nullopt, false, std::nullopt), wrong = values({3}, {1, 1, 1});
  GraphTask task({&z, 1}, {}, {}, {});
  EXPECT_THAT(error_of([&] { task.resume_with(7, {&wrong, 1}); }), ::testing::HasSubstr("is not waiting"));
  task.run_until(7);
  EXPECT_THAT(error_of([&] { task.finish({}); }), ::testing::HasSubstr("before function 7 has returned its gradients"));
  EXPECT_THAT(error_of([&] { task.resume_with(7, {&wrong, 1}); }), ::testing::HasSubstr("invalid gradient at index 0"));
}

TEST_F(StopTest, HooksReplaceGradientsInOrder) {
  Tensor x = leaf({}, {2});
  Tensor y = ops::mul(x, 3.0);
  ops::hook(11, y);
  ops::hook(12, y);
  ops::hook(13, x);
  Tensor z = ops::mul(y, y);
  GraphTask task({&z, 1}, {}, {&x, 1}, {});
  EXPECT_EQ(read(task.run_until(11)[0]), V{12});
  Tensor replaced = values({}, {1}, DType::kFloat64), none;
  task.resume_with(11, {&replaced, 1});
  EXPECT_EQ(read(task.run_until(12)[0]), V{1});
  task.resume_with(12, {&none, 1});
  EXPECT_EQ(read(task.run_until(13)[0]), V{3});
  task.resume_with(13, {&none, 1});
  EXPECT_EQ(read(task.finish({&x, 1})[0]), V{3});
}

TEST_F(StopTest, HookChangesApplyToNextPass) {
  Tensor x = leaf({}, {2});
  ops::hook(21, x);
  ops::hook(22, x);
  Tensor z = ops::mul(x, 3.0), none, replaced = values({}, {5}, DType::kFloat64);
  const int64_t scalar[] = {static_cast<int64_t>(DType::kFloat64), 0};
  {
    GraphTask task({&z, 1}, {}, {}, {true, true, false});
    task.run_until(21);
    ops::unhook(21, x);
    ops::unhook(22, x);
    ops::hook(23, x);
    task.resume_with(21, {&none, 1});
    EXPECT_EQ(read(task.run_until(22, scalar)[0]), V{3});
    task.resume_with(22, {&replaced, 1});
    task.finish({});
    EXPECT_EQ(grad_of(x), V{5});
  }
  GraphTask next({&z, 1}, {}, {}, {});
  EXPECT_EQ(read(next.run_until(23, scalar)[0]), V{3});
  next.resume_with(23, {&none, 1});
  next.finish({});
  EXPECT_EQ(grad_of(x), V{8});
}

TEST_F(StopTest, RemovedHookIsSkipped) {
  Tensor x = leaf({}, {2});
  ops::hook(24, x);
  ops::hook(25, x);
  ops::unhook(24, x);
  Tensor z = ops::mul(x, 3.0), none;
  GraphTask task({&z, 1}, {}, {}, {});
  EXPECT_THROW(task.run_until(24), Error);
}

TEST_F(StopTest, PassesNest) {
  Tensor x = leaf({}, {2});
  Tensor shared = ops::mul(x, x);
  Tensor z = ops::mul(function(31, shared), 1.0);
  Tensors captures{x};
  const Tensor root[] = {z};
  ops::backward_begin(1, {root[0]}, {}, captures, true, true, false);
  Tensors arrived = ops::backward_until(1, 31, Tensor(), {});
  backward(shared, {true, true, false});  // visits the same nodes while pass 1 is suspended
  EXPECT_EQ(grad_of(x), V{4});
  ops::backward_feed(1, 31, {arrived[0]}, arrived[0]);
  EXPECT_EQ(read(ops::backward_end(1, captures, arrived[0])[0]), V{8});
  ops::backward_drop(1);
  EXPECT_THAT(error_of([&] { ops::backward_end(1, captures, arrived[0]); }),
              ::testing::HasSubstr("backward pass 1 does not exist"));
}

TEST_F(StopTest, AnErrorOfAnotherCallKeepsDeferredGradients) {
  constexpr int64_t kLarge = 1 << 14;  // so that calls of the pass are deferred
  Tensor x = leaf({kLarge}, V(kLarge, 2)), other = leaf({}, {1});
  Tensor y = ops::mul(x, 3.0);
  ops::hook(61, y);
  Tensor written = ops::mul(other, 1.0);
  Tensor bad = ops::mul(written, written);
  Tensor z = ops::mul(y, y);
  written->storage->bump_version();
  const Tensor roots[] = {ops::sum(z, std::nullopt, false, std::nullopt), bad};
  GraphTask task(roots, {}, {}, {});
  EXPECT_THAT(error_of([&] { task.run_until(61); }), ::testing::HasSubstr("modified by an inplace operation"));
  EXPECT_EQ(read(task.run_until(61)[0]), V(kLarge, 12));
}

TEST_F(StopTest, SavedTensorsGetTheHistoryOfTheFunction) {
  Tensor x = leaf({2}, {1, 2});
  Tensor doubled = ops::mul(x, 3.0), z = function(51, doubled);
  const Tensor result = detach(z), input = detach(doubled);
  Tensors captures{x};
  ops::backward_begin(1, {ops::sum(z, std::nullopt, false, std::nullopt)}, {}, captures, false, true, true);
  const Tensor flag = ops::zeros({1}, DType::kBool, Device{});
  Tensor arrived = ops::backward_until(1, 51, flag, {})[0];
  const Tensor back = ops::backward_history(1, 51, 0, result), argument = ops::backward_history(1, 51, -1, input);
  EXPECT_EQ(edge_of(back).node, edge_of(z).node);
  EXPECT_EQ(edge_of(argument).node, edge_of(doubled).node);
  EXPECT_EQ(back->storage, result->storage);
  const std::vector<std::pair<std::function<void()>, std::string>> kWrong = {
      {[&] { ops::backward_history(1, 51, 1, result); }, "a result or an input"},
      {[&] { ops::backward_history(1, 51, -2, input); }, "a result or an input"},
      {[&] { ops::backward_history(1, 51, INT64_MIN, input); }, "a result or an input"},
      {[&] { ops::backward_history(1, 51, 0, flag); }, "a tensor like that of the function"},
      {[&] { ops::backward_history(1, 52, 0, result); }, "is not waiting for function 52"},
      {[&] { ops::backward_history(2, 51, 0, result); }, "backward pass 2 does not exist"},
  };
  for (const auto& [call, message] : kWrong) EXPECT_THAT(error_of(call), ::testing::HasSubstr(message));
  ops::backward_drop(1);
}

TEST_F(StopTest, OperatorsSetUpLeaves) {
  Tensor x = values({2}, {1, 2}, DType::kFloat64);
  ops::requires_grad(x, true);
  Tensor y = ops::mul(x, 2.0);
  EXPECT_THAT(error_of([&] { ops::requires_grad(y, false); }), ::testing::HasSubstr("leaf variables"));
  EXPECT_THAT(error_of([&] { ops::requires_grad(values({1}, {1}, DType::kInt64), true); }),
              ::testing::HasSubstr("floating point"));
  ops::set_grads({x}, {values({2}, {10, 10}, DType::kFloat64)});
  backward(ops::sum(y, std::nullopt, false, std::nullopt));
  EXPECT_EQ(grad_of(x), (V{12, 12}));
  ops::set_grads({x}, {Tensor()});
  EXPECT_TRUE(grad_of(x).empty());
}

// Saved tensors that the client stores.
class SavedTest : public StopTest {
 protected:
  // Records x * w, leaves the saved tensors to the client under `stop`, and returns the product.
  static Tensor product(int64_t stop, const Tensor& x, const Tensor& w, std::vector<double>* description = nullptr) {
    ops::saved_begin(0, 0, 0);
    Tensor y = ops::mul(x, w);
    Tensor text = ops::saved_end(stop, {x, w}, {y});
    if (description) *description = read(text);
    ops::saved_release(stop);
    return ops::sum(y, std::nullopt, false, std::nullopt);
  }
};

TEST_F(SavedTest, ClientSuppliesSavedTensors) {
  Tensor x = leaf({2}, {1, 2}), w = leaf({2}, {3, 4});
  std::vector<double> description;
  Tensor y = product(31, x, w, &description);
  EXPECT_EQ(description, (V{2, 0, 0, 0, 1}));  // two tensors: inputs 0 and 1
  GraphTask task({&y, 1}, {}, {}, {});
  const Tensor flag = task.run_until(31)[0];
  const Tensor supplied[] = {flag, values({2}, {10, 20}, DType::kFloat64), values({2}, {30, 40}, DType::kFloat64)};
  task.resume_with(31, supplied);
  task.finish({});
  EXPECT_EQ(grad_of(x), (V{30, 40}));
  EXPECT_EQ(grad_of(w), (V{10, 20}));
}

TEST_F(SavedTest, RejectsPassesWithoutTheSavedTensors) {
  Tensor x = leaf({2}, {1, 2}), w = leaf({2}, {3, 4}), y = product(32, x, w);
  EXPECT_THAT(error_of([&] { GraphTask({&y, 1}, {}, {}, {}).finish({}); }), ::testing::HasSubstr("are supplied"));
  const Tensor good = values({2}, {1, 1}, DType::kFloat64);
  const std::vector<std::vector<Tensor>> kWrong = {{good},
                                                   {good, good},
                                                   {good, good, good, good},
                                                   {good, good, values({3}, {1, 1, 1}, DType::kFloat64)},
                                                   {good, good, values({2}, {1, 1}, DType::kFloat32)}};
  for (const std::vector<Tensor>& wrong : kWrong) {
    GraphTask task({&y, 1}, {}, {}, {});
    task.run_until(32);
    EXPECT_FALSE(error_of([&] {
                   task.resume_with(32, wrong);
                   task.finish({});
                 }).empty());
  }
}

TEST_F(SavedTest, RejectsInvalidInstructions) {
  EXPECT_THAT(error_of([] { ops::saved_begin(7, 0, 0); }), ::testing::HasSubstr("a mode from 0 to 6"));
  EXPECT_THAT(error_of([] { ops::saved_values(77); }), ::testing::HasSubstr("no saved tensors are described under 77"));
  EXPECT_THAT(error_of([] { ops::saved_end(0, {}, {}); }), ::testing::HasSubstr("a new stop"));
  ops::saved_release(77);
  Tensor x = leaf({2}, {1, 2}), y = ops::mul(x, x);
  backward(ops::sum(y, std::nullopt, false, std::nullopt));
  EXPECT_EQ(grad_of(x), (V{2, 4}));
}

TEST_F(SavedTest, CopiesMayBeSaved) {
  for (int64_t mode : {1, 2}) {
    Tensor x = leaf({2}, {1, 2}), w = ops::clone(x);
    ops::saved_begin(mode, 0, 0);
    Tensor y = ops::mul(w, w);
    ops::saved_stop();
    std::fill_n(w.data_as<double>(), 2, 0.0);
    w->storage->bump_version();
    backward(ops::sum(y, std::nullopt, false, std::nullopt));
    EXPECT_EQ(grad_of(x), (V{2, 4}));
  }
}

// Functions that run again in a backward pass. One returns sum(exp(x * w)), by two calls that save tensors.
class RecomputationTest : public StopTest {
 protected:
  static constexpr int64_t kFirst = 3, kNext = 4;  // modes of saved_begin
  static Tensor run(int64_t mode, int64_t stop, const Tensor& x, const Tensor& w) {
    ops::saved_begin(mode, stop, 0);
    Tensor y = ops::mul(x, w);
    ops::saved_stop();
    ops::saved_begin(mode, stop, 1);
    y = ops::exp(y);
    ops::saved_stop();
    return ops::sum(y, std::nullopt, false, std::nullopt);
  }
  static bool keeps_none() { return Tape::current().recomputations().host_bytes() == 0; }
  Tensor x_ = leaf({2}, {1, 2}), w_ = leaf({2}, {0, 0});
};

TEST_F(RecomputationTest, PassTakesWhatTheNextRunSaves) {
  Tensor copy = ops::clone(w_), y = run(kFirst, 41, x_, copy);
  EXPECT_EQ(copy->storage->ref_count(), 1);  // no node refers to it
  for (int pass = 0; pass < 2; ++pass) {
    GraphTask task({&y, 1}, {}, {}, {true, pass == 0, false});
    const Tensor flag = task.run_until(41)[0];
    run(kNext, 41, x_, copy);
    EXPECT_FALSE(keeps_none());
    task.resume_with(41, {&flag, 1});
    EXPECT_TRUE(keeps_none());
    task.finish({});
  }
  EXPECT_EQ(grad_of(x_), (V{0, 0}));
  EXPECT_EQ(grad_of(w_), (V{2, 4}));
  EXPECT_THAT(error_of([&] { backward(y); }), ::testing::HasSubstr("supplied"));
}

class KeptResultsTest : public RecomputationTest {
 protected:
  static constexpr int64_t kKeeps = 5, kReuses = 6;
  // Returns the result of one instruction of a function.
  Tensor call(int64_t mode, Tensor (*function)(const Tensor&), int64_t number = 0) {
    ops::saved_begin(mode, 43, number);
    Tensor y = function(x_);
    ops::saved_stop();
    return y;
  }
  static Tensor exp(const Tensor& x) { return ops::exp(x); }
  static Tensor sin(const Tensor& x) { return ops::sin(x); }
  static const Storage* storage_of(const Tensor& t) { return t->storage.get(); }
};

TEST_F(KeptResultsTest, NextRunsTakeThem) {
  const Tensor first = call(kKeeps, exp);
  EXPECT_NE(storage_of(call(kNext, exp)), storage_of(first));
  const Storage* const storage = storage_of(first);
  {
    const Tensor next = call(kReuses, exp);
    EXPECT_EQ(storage_of(next), storage);
    EXPECT_FALSE(next->is_leaf());
  }
  const Tensor root = ops::sum(first, std::nullopt, false, std::nullopt);
  GraphTask task({&root, 1}, {}, {}, {});
  task.resume_with(43, {});
  task.finish({});
  EXPECT_EQ(storage->ref_count(), 1);  // that of `first`: the node has been released
  EXPECT_NE(storage_of(call(kReuses, exp)), storage);
}

TEST_F(KeptResultsTest, OtherCallsAreExecuted) {
  const Tensor first = call(kKeeps, exp);
  EXPECT_NE(storage_of(call(kReuses, sin)), storage_of(first));
  EXPECT_NE(storage_of(call(kReuses, exp, 1)), storage_of(first));
  const Tensor other = leaf({3}, {1, 2, 3});
  ops::saved_begin(kReuses, 43, 0);
  EXPECT_EQ(ops::exp(other)->sizes, (Sizes{3}));
  ops::saved_stop();
  in_place(op_id::kAdd, first, {Arg(1.0), Arg(int64_t{1})});
  EXPECT_NE(storage_of(call(kReuses, exp)), storage_of(first));
}

TEST_F(KeptResultsTest, RandomCallsAndViewsAreExecuted) {
  constexpr auto drop = [](const Tensor& x) { return ops::dropout(x, 0.5, true); };
  const Tensor dropped = call(kKeeps, drop);
  EXPECT_NE(storage_of(call(kReuses, drop)), storage_of(dropped));
  constexpr auto view = [](const Tensor& x) { return ops::unsqueeze(x, 0); };
  const Tensor first = call(kKeeps, view, 1);
  EXPECT_EQ(call(kReuses, view, 1)->base, first->base);
}

TEST_F(KeptResultsTest, EntriesOfFreedNodesAreRemoved) {
  for (int64_t i = 0; i < 5000; ++i) call(kKeeps, exp, i);
  EXPECT_LE(Tape::current().recomputations().host_bytes(), 1025u * 256);
}

TEST_F(RecomputationTest, RunsBeforeThePassReachesIt) {
  Tensor y = run(kFirst, 42, x_, w_);
  GraphTask task({&y, 1}, {}, {}, {});
  run(kNext, 42, x_, w_);
  task.resume_with(42, {});
  task.finish({});
  EXPECT_EQ(grad_of(w_), (V{1, 2}));
}

TEST_F(RecomputationTest, SavedTensorsHaveTheHistoryOfTheFirstRun) {
  Tensor y = run(kFirst, 43, x_, w_);
  Tensors captures{w_}, none;
  Tensor gradient;
  {
    GraphTask task({&y, 1}, {}, captures, {false, true, true});
    const Tensor flag = task.run_until(43)[0];
    run(kNext, 43, x_, w_);
    task.resume_with(43, {&flag, 1});
    gradient = task.finish(captures)[0];  // x exp(x w)
  }
  EXPECT_EQ(read(gradient), (V{1, 2}));
  Tensor sum = ops::sum(gradient, std::nullopt, false, std::nullopt);
  GraphTask task({&sum, 1}, {}, {}, {});
  const Tensor flag = task.run_until(43)[0];
  run(kNext, 43, x_, w_);
  task.resume_with(43, {&flag, 1});
  task.finish({});
  EXPECT_EQ(grad_of(w_), (V{1, 4}));  // x^2 exp(x w)
  EXPECT_EQ(grad_of(x_), (V{1, 1}));  // (1 + x w) exp(x w)
}

TEST_F(RecomputationTest, WritesAfterSavingAreNoticed) {
  Tensor y = run(kFirst, 44, x_, w_);
  GraphTask task({&y, 1}, {}, {}, {});
  task.run_until(44);
  Tensor copy = ops::clone(x_);
  run(kNext, 44, copy, w_);
  copy->storage->bump_version();
  task.resume_with(44, {});
  EXPECT_THAT(error_of([&] { task.finish({}); }), ::testing::HasSubstr("modified by an inplace operation"));
}

TEST_F(RecomputationTest, RunsThatDifferAreRejected) {
  const std::vector<std::pair<std::function<void()>, std::string>> kRuns = {
      {[&] { ops::saved_begin(kNext, 45, 0), ops::saved_stop(); }, "it has not saved those of"},
      {[&] { run(kNext, 45, leaf({1}, {1}), leaf({1}, {1})); }, "expected the function to compute the same tensors"},
      {[] {}, "to run again"},
  };
  for (const auto& [again, message] : kRuns) {
    Tensor y = run(kFirst, 45, x_, w_);
    GraphTask task({&y, 1}, {}, {}, {});
    const Tensor flag = task.run_until(45)[0];
    again();
    EXPECT_THAT(error_of([&] {
                  task.resume_with(45, {&flag, 1});
                  task.finish({});
                }),
                ::testing::HasSubstr(message));
    EXPECT_TRUE(keeps_none());
  }
}

TEST_F(RecomputationTest, RejectsInvalidInstructions) {
  EXPECT_THAT(error_of([] { ops::saved_begin(kFirst, 0, 0); }), ::testing::HasSubstr("a stop above 0"));
  EXPECT_THAT(error_of([] { ops::saved_begin(kNext, 1, -1); }), ::testing::HasSubstr("a call from 0"));
  EXPECT_THAT(error_of([] { ops::saved_begin(kNext, 1, int64_t{1} << 40); }), ::testing::HasSubstr("a call from 0"));
  EXPECT_THAT(error_of([] {
                for (int64_t stop = 100;; ++stop) ops::saved_begin(kNext, stop, 0);
              }),
              ::testing::HasSubstr("no backward pass has used"));
  for (int64_t stop = 100; stop < 100 + 4096; ++stop) ops::saved_release(stop);
  EXPECT_TRUE(Tape::current().recomputations().empty());
  run(kNext, 46, x_, w_);  // abandoned
  ops::saved_release(46);
  EXPECT_TRUE(keeps_none());
}

// Saved views of a tensor whose bytes the client releases and restores.
class SavedBytesTest : public StopTest {
 protected:
  // Returns sum(x * view of base), whose node saves the view.
  static Tensor product(const Tensor& x, const Tensor& base) {
    Tensor view = view_of(base, {{2}, {1}, 2});
    return ops::sum(ops::mul(x, view), std::nullopt, false, std::nullopt);
  }
};

TEST_F(SavedBytesTest, BytesAreFreedAndRestored) {
  Tensor x = leaf({2}, {1, 2}), base = values({4}, {1, 2, 3, 4}, DType::kFloat64);
  ops::saved_bytes_watch(1, base);
  Tensor y = product(x, base);
  ops::saved_bytes_release(1);
  EXPECT_EQ(base->storage->ref_count(), 1);  // no node refers to the bytes
  base = Tensor();
  EXPECT_THAT(error_of([&] { backward(y, {true, true}); }), ::testing::HasSubstr("released after the forward pass"));
  Tape::current().saved_bytes().fail(1, Error(ErrorKind::kRuntime, "rank 1 is lost"));  // as if it had been an error
  EXPECT_THAT(error_of([&] { backward(y, {true, true}); }), ::testing::HasSubstr("rank 1 is lost"));
  for (double scale : {10.0, 20.0}) {  // a graph that is kept is restored twice
    ops::saved_bytes_restore(1, values({4}, {0, 0, scale, scale}, DType::kFloat64));
    ops::set_grads({x}, {Tensor()});
    backward(y, {true, true});
    EXPECT_EQ(grad_of(x), (V{scale, scale}));
    ops::saved_bytes_release(1);
  }
  ops::saved_bytes_drop(1);
}

TEST_F(SavedBytesTest, WritesBeforeAndAfterAreDetected) {
  Tensor x = leaf({2}, {1, 2}), base = values({4}, {1, 2, 3, 4}, DType::kFloat64);
  ops::saved_bytes_watch(2, base);
  Tensor y = product(x, base), unchanged = values({4}, {1, 2, 3, 4}, DType::kFloat64);
  unchanged->storage->bump_version();  // the version of the new bytes does not matter
  ops::saved_bytes_release(2);
  ops::saved_bytes_restore(2, unchanged);
  backward(y, {true, true});
  unchanged->storage->bump_version();
  EXPECT_THAT(error_of([&] { backward(y, {true, true}); }), ::testing::HasSubstr("modified by an inplace operation"));
  Tensor again = values({4}, {1, 2, 3, 4}, DType::kFloat64);
  ops::saved_bytes_release(2);
  ops::saved_bytes_restore(2, again);  // the write between save and release is not forgotten
  EXPECT_THAT(error_of([&] { backward(y, {true, true}); }), ::testing::HasSubstr("modified by an inplace operation"));
}

TEST_F(SavedBytesTest, RejectsInvalidInstructions) {
  Tensor base = values({4}, {1, 2, 3, 4}, DType::kFloat64), view = view_of(base, {{2}, {1}, 2});
  EXPECT_THAT(error_of([&] { ops::saved_bytes_watch(3, view); }), ::testing::HasSubstr("the start of its storage"));
  ops::saved_bytes_watch(3, base);
  EXPECT_THAT(error_of([&] { ops::saved_bytes_watch(3, ops::clone(base)); }), ::testing::HasSubstr("is in use"));
  EXPECT_THAT(error_of([&] { ops::saved_bytes_watch(4, base); }), ::testing::HasSubstr("is watched already"));
  EXPECT_THAT(error_of([] { ops::saved_bytes_release(5); }), ::testing::HasSubstr("has the number 5"));
  EXPECT_THAT(error_of([] { ops::saved_bytes_restore(5, values({1}, {1})); }), ::testing::HasSubstr("number 5"));
  EXPECT_THAT(error_of([] { ops::saved_bytes_drop(5); }), ::testing::HasSubstr("has the number 5"));
  ops::saved_bytes_release(3);
  for (const Tensor& wrong :
       {values({3}, {1, 1, 1}, DType::kFloat64), values({4}, {1, 1, 1, 1}, DType::kFloat32), view})
    EXPECT_FALSE(error_of([&] { ops::saved_bytes_restore(3, wrong); }).empty());
  ops::saved_bytes_drop(3);
}

}  // namespace
}  // namespace tt::autograd::testing
