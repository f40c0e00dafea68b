// Libraries opened at run time export every function that is looked up in them. They load without a driver.
#include "kernels/cuda/libraries/library.h"

#include <gtest/gtest.h>

#include "engine/schema/error.h"
#include "kernels/cuda/runtime/blas.h"
#include "kernels/cuda/runtime/dnn.h"
#include "kernels/cuda/runtime/fft.h"
#include "kernels/cuda/runtime/library_status.h"
#include "kernels/cuda/runtime/solver.h"
#include "kernels/cuda/runtime/tracer.h"

namespace tt::cuda {
namespace {

// The record of the library; fails the test if there is none.
LibraryInfo noted(const std::string& name) {
  for (const LibraryInfo& library : library_statuses()) {
    if (library.name == name) return library;
  }
  ADD_FAILURE() << name << " was not looked up";
  return {};
}

TEST(LibraryTest, ReportsMissingLibrary) {
  const Library none("nowhere", {"libteletensor_nowhere.so.1", "libteletensor_nowhere.so"});
  EXPECT_FALSE(none);
  EXPECT_NE(none.why().find("libteletensor_nowhere.so.1"), std::string::npos) << none.why();
  const Library here("libc", {"libteletensor_nowhere.so.1", "libc.so.6"});
  ASSERT_TRUE(here);
  void (*function)() = nullptr;
  here.find(function, "abort");
  EXPECT_NE(function, nullptr);
  EXPECT_THROW(here.find(function, "teletensor_nothing"), Error);
}

TEST(LibraryTest, RecordsVersionOrLoadError) {
  const Library none("nowhere", {"libteletensor_nowhere.so.1"}), here("libc", {"libc.so.6"});
  EXPECT_EQ(noted("nowhere").version, "");
  EXPECT_EQ(noted("nowhere").missing, none.why());
  here.record_version(91304);
  EXPECT_EQ(noted("libc").version, "9.13.4");
  EXPECT_EQ(noted("libc").missing, "");
}

TEST(LibraryTest, CublasLtHasRequiredSymbols) {
  if (!Library("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"})) GTEST_SKIP() << "cuBLASLt is not installed";
  EXPECT_NE(make_blas(), nullptr);
  EXPECT_GE(noted("cuBLASLt").version, "12");
}

TEST(LibraryTest, CudnnHasRequiredSymbols) {
  if (!Library("cuDNN", {"libcudnn.so.9"})) GTEST_SKIP() << "cuDNN is not installed";
  EXPECT_NE(make_dnn(), nullptr);
  EXPECT_GE(noted("cuDNN").version, "9");
}

TEST(LibraryTest, CufftHasRequiredSymbols) {
  if (!Library("cuFFT", {"libcufft.so.12", "libcufft.so.11"})) GTEST_SKIP() << "cuFFT is not installed";
  EXPECT_NE(make_fft(), nullptr);
  EXPECT_GE(noted("cuFFT").version, "11");
}

TEST(LibraryTest, CusolverHasRequiredSymbols) {
  if (!Library("cuSOLVER", {"libcusolver.so.12", "libcusolver.so.11"})) GTEST_SKIP() << "cuSOLVER is not installed";
  const std::unique_ptr<Solver> solver = make_solver();
  ASSERT_NE(solver, nullptr);
  EXPECT_GE(noted("cuSOLVER").version, "11");
  // Functions that older versions may lack. Version 12 belongs to CUDA 13.
  if (noted("cuSOLVER").version >= "12") EXPECT_TRUE(solver->has_eig());
}

TEST(LibraryTest, CuptiHasRequiredSymbols) {
  if (!Library("CUPTI", {"libcupti.so.13", "libcupti.so.12"})) GTEST_SKIP() << "CUPTI is not installed";
  const auto tracer = make_cupti_tracer({});
  try {
    tracer->stop(tracer->start(1));
  } catch (const Error& error) {  // without a driver
    EXPECT_EQ(error.message().find("has no function"), std::string::npos) << error.message();
  }
  EXPECT_NE(noted("CUPTI").version, "");
}

}  // namespace
}  // namespace tt::cuda
