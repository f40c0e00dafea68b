// The text of tensors; libtorch prints the same.
#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

TEST_F(Api, PrintsAsLibtorch) {
  EXPECT_EQ(text(tensor(3)), "3\n[ CPULongType{} ]");
  EXPECT_EQ(text(tensor(0.5)), "0.5\n[ CPUFloatType{} ]");
  EXPECT_EQ(text(tensor({1., 2.5, -3.})), " 1.0000\n 2.5000\n-3.0000\n[ CPUFloatType{3} ]");
  EXPECT_EQ(text(tensor({{1., 2.}, {3., 40.}})), "  1   2\n  3  40\n[ CPUFloatType{2,2} ]");
  EXPECT_EQ(text(tensor({1234567.5, 2.})), "1.2346e+06\n2.0000e+00\n[ CPUFloatType{2} ]");
  EXPECT_EQ(text(tensor({{0.001, 0.002}})), "0.001 *\n 1.0000  2.0000\n[ CPUFloatType{1,2} ]");
  EXPECT_EQ(text(arange(8).view({2, 2, 2})),
            "(1,.,.) = \n  0  1\n  2  3\n\n(2,.,.) = \n  4  5\n  6  7\n[ CPULongType{2,2,2} ]");
  EXPECT_EQ(text(tensor({true, false})), " 1\n 0\n[ CPUBoolType{2} ]");
  EXPECT_EQ(text(empty({0, 3})), "[ CPUFloatType{0,3} ]");
  EXPECT_EQ(text(Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(text(ones({2}, kMeta)), "[ MetaFloatType{2} ]");
}

}  // namespace
}  // namespace teletensor::testing
