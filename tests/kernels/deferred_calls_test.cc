// Deferred calls: the values of single calls, in fewer loops, and no memory for results that nothing needs.

#include "engine/program/deferred_calls.h"

#include "engine/composites/composites.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "tests/kernels/backend.h"

namespace tt {
namespace {

using namespace testing;  // NOLINT: tensors.h

constexpr int64_t kLarge = 1 << 15;

class DeferredCallsTest : public ::testing::Test {
 protected:
  DeferredCallsTest() {
    have_backend();
    register_composites(Dispatcher::instance());
    context_.grad_enabled = false;
    a_ = filled({kLarge});
    b_ = filled({kLarge});
  }

  Context context_;
  ContextScope scope_{&context_};
  Tensor a_, b_;
};

TEST_F(DeferredCallsTest, RunsCallsAsOneLoop) {
  const Tensor wanted = ops::sigmoid(ops::mul(ops::add(a_, b_, int64_t{1}), a_));
  context_.fused = 0;
  DeferredCalls calls;
  Tensor got;
  {
    const DeferredCalls::Use use(&calls);
    got = ops::sigmoid(ops::mul(ops::add(a_, b_, int64_t{1}), a_));
    EXPECT_TRUE(calls.is_deferred(got));
  }
  EXPECT_TRUE(calls.has_lost());
  calls.flush();
  EXPECT_FALSE(calls.has_lost());
  EXPECT_FALSE(calls.is_deferred(got));
  EXPECT_EQ(context_.fused, 2u);
  expect_close(got, wanted, 0);
}

TEST_F(DeferredCallsTest, StoresWhatOthersReferTo) {
  DeferredCalls calls;
  Tensor sum, product;
  {
    const DeferredCalls::Use use(&calls);
    sum = ops::add(a_, b_, int64_t{1});
    product = ops::mul(sum, b_);
    ops::exp(product);  // dropped
  }
  calls.flush();
  expect_close(sum, ops::add(a_, b_, int64_t{1}), 0);
  expect_close(product, ops::mul(sum, b_), 0);
}

TEST_F(DeferredCallsTest, OtherCallsReadValues) {
  DeferredCalls calls;
  Tensor product, negative, total;
  {
    const DeferredCalls::Use use(&calls);
    product = ops::mul(a_, b_);
    negative = ops::neg(product);
    total = ops::sum(product);  // not of the last call
    EXPECT_FALSE(calls.is_deferred(product));
    EXPECT_FALSE(calls.is_deferred(total));
  }
  expect_close(total, ops::sum(ops::mul(a_, b_)), 0);
  expect_close(negative, ops::neg(ops::mul(a_, b_)), 0);
}

TEST_F(DeferredCallsTest, ReducesInTheLoop) {
  DeferredCalls calls;
  Tensor total;
  {
    const DeferredCalls::Use use(&calls);
    total = ops::sum(ops::mul(a_, b_));
    EXPECT_FALSE(calls.is_deferred(total));
  }
  expect_close(total, ops::sum(ops::mul(a_, b_)), 0);
}

TEST_F(DeferredCallsTest, WritesFollowTheCallsBeforeThem) {
  const Tensor wanted = ops::mul(a_, b_);
  const Tensor target = ops::clone(a_);
  DeferredCalls calls;
  const DeferredCalls::Use use(&calls);
  const Tensor product = ops::mul(target, b_);
  EXPECT_TRUE(calls.is_deferred(product));
  const Arg args[] = {Arg(target.get()), Arg(b_.get()), Arg(int64_t{1})};
  ops::call(op_id::kAdd, args, absl::Span<const Tensor>(&target, 1));
  EXPECT_FALSE(calls.is_deferred(product));
  expect_close(product, wanted, 0);
}

TEST_F(DeferredCallsTest, OtherSizesAndSmallResults) {
  const Tensor half = ops::narrow(a_, 0, 0, kLarge / 2), few = ops::narrow(a_, 0, 0, 8);
  DeferredCalls calls;
  Tensor first, second;
  {
    const DeferredCalls::Use use(&calls);
    first = ops::mul(a_, b_);
    EXPECT_FALSE(calls.is_deferred(ops::neg(few)));
    second = ops::neg(half);
    EXPECT_FALSE(calls.is_deferred(first)) << "another size ends the loop";
    EXPECT_TRUE(calls.is_deferred(second));
  }
  calls.flush();
  expect_close(first, ops::mul(a_, b_), 0);
  expect_close(second, ops::neg(half), 0);
}

TEST_F(DeferredCallsTest, KernelsRefuseResultsWithoutValues) {
  DeferredCalls calls;
  Tensor product;
  {
    const DeferredCalls::Use use(&calls);
    product = ops::mul(a_, b_);
  }
  EXPECT_THROW(ops::add(product, a_, int64_t{1}), Error);
  EXPECT_THROW(ops::cat({a_, product}, 0), Error);
  EXPECT_THROW(ops::narrow(product, 0, 0, 8), Error) << "a view would never get values";
  calls.flush();
  expect_close(ops::add(product, a_, int64_t{1}), ops::add(ops::mul(a_, b_), a_, int64_t{1}), 0);
}

TEST_F(DeferredCallsTest, BoundsTheBytesOfArgumentsThatOthersHaveDropped) {
  constexpr int64_t kHuge = 1 << 20;  // elements of 4 MiB
  const Tensor ones = constant({kHuge}, 1);
  Tensor x = filled({kHuge}), y = filled({2, kHuge}), z = filled({kHuge});
  Tensor view = ops::view(ops::narrow(y, 0, 1, 1), {kHuge});
  const Tensor wanted = ops::mul(ops::mul(ops::mul(x, ones), view), z);
  DeferredCalls calls;
  Tensor product;
  const auto multiply = [&](const Tensor& by) {
    const DeferredCalls::Use use(&calls);
    product = ops::mul(product ? product : x, by);
  };
  multiply(ones);
  multiply(view);
  multiply(z);
  calls.flush_if_large();
  EXPECT_TRUE(calls.is_deferred(product)) << "others refer to all arguments";
  x = z = Tensor();
  calls.flush_if_large();
  EXPECT_TRUE(calls.is_deferred(product)) << "two results";
  view = Tensor();
  calls.flush_if_large();
  EXPECT_TRUE(calls.is_deferred(product)) << "the view's base is in use";
  y = Tensor();
  calls.flush_if_large();
  EXPECT_FALSE(calls.is_deferred(product));
  expect_close(product, wanted, 0);
}

}  // namespace
}  // namespace tt
