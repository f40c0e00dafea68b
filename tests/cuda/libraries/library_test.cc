// The libraries that are opened at run time have every function that is looked up in them. They load without a driver.
#include "kernels/cuda/libraries/library.h"

#include <gtest/gtest.h>

#include "engine/rules/error.h"
#include "kernels/cuda/runtime/blas.h"
#include "kernels/cuda/runtime/dnn.h"

namespace tt::cuda {
namespace {

TEST(LibraryTest, SaysWhatIsMissing) {
  const Library none({"libteletensor_nowhere.so.1", "libteletensor_nowhere.so"});
  EXPECT_FALSE(none);
  EXPECT_NE(none.why().find("libteletensor_nowhere.so.1"), std::string::npos) << none.why();
  const Library here({"libteletensor_nowhere.so.1", "libc.so.6"});
  ASSERT_TRUE(here);
  void (*function)() = nullptr;
  here.find(function, "abort");
  EXPECT_NE(function, nullptr);
  EXPECT_THROW(here.find(function, "teletensor_nothing"), Error);
}

TEST(LibraryTest, CublasLtHasWhatIsLookedUp) {
  if (!Library({"libcublasLt.so.13", "libcublasLt.so.12"})) GTEST_SKIP() << "cuBLASLt is not installed";
  EXPECT_NE(make_blas(), nullptr);
}

TEST(LibraryTest, CudnnHasWhatIsLookedUp) {
  if (!Library({"libcudnn.so.9"})) GTEST_SKIP() << "cuDNN is not installed";
  EXPECT_NE(make_dnn(), nullptr);
}

}  // namespace
}  // namespace tt::cuda
