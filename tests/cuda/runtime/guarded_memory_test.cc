// Host code that touches the memory of simulated devices is detected.
#include "tests/cuda/simulated/guarded_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "kernels/cuda/launch/launch.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::KilledBySignal;
using ::testing::Not;

class GuardedMemoryTest : public ::testing::Test {
 protected:
  GuardedMemoryTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  void launch(int64_t* to) {
    const Queue queue(engine_.gpu());
    for_each(queue, 1, [=] TT_DEVICE(int64_t) { *to = 7; });
    queue.cuda_stream().synchronize();
  }

  SimulatedEngine engine_;
  Tensor tensor_ = ops::full({4}, int64_t{0}, DType::kInt64, engine_.gpu());
  volatile int64_t* data_ = tensor_.data_as<int64_t>();
};

TEST_F(GuardedMemoryTest, HostAccessEndsProcess) {
  EXPECT_EXIT(static_cast<void>(*data_), KilledBySignal(SIGSEGV), "host code touched device memory at 0x");
  EXPECT_EXIT(*data_ = 1, KilledBySignal(SIGSEGV), "host code touched device memory at 0x");
}

TEST_F(GuardedMemoryTest, IsClosedAfterWork) {
  launch(tensor_.data_as<int64_t>());
  EXPECT_EQ(copy_to_cpu(tensor_).data_as<int64_t>()[0], 7);
  EXPECT_EXIT(static_cast<void>(*data_), KilledBySignal(SIGSEGV), "host code touched device memory at 0x");
}

TEST_F(GuardedMemoryTest, KernelsAccessAllocatedMemoryOnly) {
  EXPECT_EXIT(launch(tensor_.data_as<int64_t>() + (int64_t{1} << 30)), KilledBySignal(SIGSEGV),
              "device code touched unallocated memory at 0x");
}

TEST_F(GuardedMemoryTest, HostAccessesPinnedMemory) {
  void* pinned = engine_.runtime().allocate_host(sizeof(int64_t));
  auto* number = static_cast<int64_t*>(pinned);
  *number = 1;
  launch(number);
  EXPECT_EQ(*number, 7);
  engine_.runtime().free_host(pinned);
}

TEST_F(GuardedMemoryTest, OtherFaultsAreNotReported) {
  volatile int64_t* const nowhere = reinterpret_cast<int64_t*>(8);
  EXPECT_DEATH(*nowhere = 1, Not(HasSubstr("touched")));  // the signal or a sanitizer ends the process
}

TEST_F(GuardedMemoryTest, AddressesAreReused) {
  SimulatedRuntime& runtime = engine_.runtime();
  void* const first = runtime.allocate(100);
  void* const second = runtime.allocate(100);
  runtime.free(first);
  EXPECT_EQ(runtime.allocate(100), first);
  runtime.free(first);
  runtime.free(second);
}

}  // namespace
}  // namespace tt::cuda
