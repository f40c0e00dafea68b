// Graphs: capture, replay, refusal and release.
#include <gtest/gtest.h>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "engine/session/graphs.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/cuda/runtime/runtime.h"
#include "tests/cuda/simulated/engine.h"

namespace tt::cuda {
namespace {

class GraphTest : public testing::Test {
 protected:
  Graphs& graphs() { return engine_.context().graphs(); }
  Tensor full(double value) { return ops::full({4}, value, DType::kFloat32, engine_.gpu()); }
  float first(const Tensor& t) { return ops::to_device(t, Device{}).data_as<float>()[0]; }
  std::string refusal(int64_t number) {
    try {
      graphs().end(number);
      return {};
    } catch (const Error& error) {
      return error.message();
    }
  }

  SimulatedEngine engine_;
};

TEST_F(GraphTest, ReplayReadsCurrentInputs) {
  const Tensor x = full(1);
  graphs().begin(1, engine_.gpu());
  const Tensor y = ops::clone(x);
  graphs().end(1);
  graphs().replay(1);
  EXPECT_EQ(first(y), 1);
  copy_into(x, full(5));
  EXPECT_EQ(first(y), 1) << "executed before the replay";
  graphs().replay(1);
  EXPECT_EQ(first(y), 5);
}

TEST_F(GraphTest, FailedBeginLeavesNoCapture) {
  const Tensor x = full(1);
  const Queue queue(engine_.gpu());
  runtime().begin_capture(queue.stream());  // another user of the stream may have begun a capture
  EXPECT_THROW(graphs().begin(1, engine_.gpu()), Error);
  std::string why;
  runtime().destroy_graph(runtime().end_capture(queue.stream(), &why));
  EXPECT_FALSE(graphs().capturing());
  EXPECT_EQ(first(ops::add(x, x)), 2);
  graphs().begin(1, engine_.gpu());
  const Tensor y = ops::clone(x);
  graphs().end(1);
  graphs().replay(1);
  EXPECT_EQ(first(y), 1);
}

TEST_F(GraphTest, TemporariesAreNotReused) {
  const Tensor x = full(1);
  graphs().begin(1, engine_.gpu());
  Tensor y;
  {
    const Tensor temporary = ops::clone(x);
    y = ops::clone(temporary);
  }
  graphs().end(1);
  std::vector<Tensor> others;
  for (int i = 0; i < 20; ++i) others.push_back(full(100 + i));
  graphs().replay(1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(first(others[i]), 100 + i);
  EXPECT_EQ(first(y), 1);
}

TEST_F(GraphTest, ReportsUncapturableOperators) {
  const Tensor x = full(1);
  graphs().begin(1, engine_.gpu());
  EXPECT_THROW(ops::to_device(x, Device{}), Error);
  EXPECT_EQ(refusal(1), "the graph was not captured: [to_device] must run on cuda:0 only");
  EXPECT_EQ(first(x), 1) << "the session must stay usable";
  EXPECT_THROW(graphs().replay(1), Error) << "the id is free";

  graphs().begin(1, engine_.gpu());
  EXPECT_THROW(ops::randperm(4, DType::kInt64, engine_.gpu()), Error);
  EXPECT_EQ(refusal(1), "the graph was not captured: [randperm] draws on the host and cannot be captured");
}

TEST_F(GraphTest, ReplayDrawsNextRandomNumbers) {
  Generator& generator = engine_.context().generator;
  const auto draw = [&] {
    return ops::add(ops::rand({4}, DType::kFloat32, engine_.gpu()),
                    ops::poisson(ops::full({4}, 50, DType::kFloat32, engine_.gpu())));
  };
  generator = {7, 1000};
  const float expected[] = {first(draw()), first(draw()), first(draw())};
  generator = {9, 0};
  graphs().begin(1, engine_.gpu());
  const Tensor y = draw();
  graphs().end(1);
  EXPECT_EQ(generator.offset, 0u) << "a capture must not draw random numbers";
  generator = {7, 1000};
  graphs().replay(1);
  EXPECT_EQ(first(y), expected[0]);
  graphs().replay(1);
  graphs().replay(1);
  EXPECT_EQ(first(y), expected[2]);
  generator = {7, 1000};
  first(draw());
  graphs().replay(1);
  EXPECT_EQ(first(y), expected[1]) << "follows the draws made without the graph";
}

TEST_F(GraphTest, MisuseIsError) {
  EXPECT_THROW(graphs().end(1), Error);
  EXPECT_THROW(graphs().replay(1), Error);
  EXPECT_THROW(graphs().begin(1, Device{}), Error) << "the CPU has no graphs";
  graphs().begin(1, engine_.gpu());
  EXPECT_THROW(graphs().begin(2, engine_.gpu()), Error);
  EXPECT_THROW(graphs().replay(1), Error);
  EXPECT_THROW(graphs().drop(1), Error);
  graphs().end(1);
  EXPECT_THROW(graphs().begin(1, engine_.gpu()), Error) << "the id is in use";
}

TEST_F(GraphTest, DroppedGraphFreesAllMemory) {
  Allocator& allocator = Devices::instance().allocator(engine_.gpu());
  allocator.empty_cache();
  const uint64_t before = engine_.runtime().held();
  {
    const Tensor x = full(1);
    graphs().begin(1, engine_.gpu());
    const Tensor y = ops::clone(x);
    graphs().end(1);
    graphs().replay(1);
    graphs().drop(1);
  }
  allocator.empty_cache();
  EXPECT_EQ(engine_.runtime().held(), before);
}

}  // namespace
}  // namespace tt::cuda
