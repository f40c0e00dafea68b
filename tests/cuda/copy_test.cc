#include <gtest/gtest.h>

#include "engine/context.h"
#include "engine/ops.h"
#include "tests/cuda/simulated/engine.h"

namespace tt::cuda {
namespace {

TEST(CopyTest, ThereAndBack) {
  SimulatedEngine engine;
  const Tensor host = ops::arange(int64_t{12}, DType::kFloat32, Device{});
  const Tensor there = ops::to_device(host, engine.gpu());
  const Tensor back = ops::to_device(there, Device{});
  EXPECT_EQ(back.data_as<float>()[11], 11);
}

}  // namespace
}  // namespace tt::cuda
