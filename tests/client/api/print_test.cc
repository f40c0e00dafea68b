// The text of tensors; libtorch prints the same.
#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

TEST_F(Api, PrintsAsLibtorch) {
  EXPECT_EQ(text(tensor(3)), "3\n[ CPULongType{} ]");
  EXPECT_EQ(text(tensor(0.5)), "0.5\n[ CPUFloatType{} ]");
  EXPECT_EQ(text(tensor({1., 2.5, -3.})), " 1.0000\n 2.5000\n-3.0000\n[ CPUFloatType{3} ]");
  EXPECT_EQ(text(tensor({{1., 2.}, {3., 40.}})), "  1   2\n  3  40\n[ CPUFloatType{2,2} ]");
  EXPECT_EQ(text(tensor({1234567.5, 2.})), " 1.2346e+06\n 2.0000e+00\n[ CPUFloatType{2} ]");
  EXPECT_EQ(text(tensor({{0.001, 0.002}})), "0.001 *\n 1.0000  2.0000\n[ CPUFloatType{1,2} ]");
  EXPECT_EQ(text(arange(8).view({2, 2, 2})),
            "(1,.,.) = \n 0  1\n  2  3\n\n(2,.,.) = \n 4  5\n  6  7\n[ CPULongType{2,2,2} ]");
  EXPECT_EQ(text(arange(20).view({1, 20}) * 1.5),
            "Columns 1 to 8  0.0000   1.5000   3.0000   4.5000   6.0000   7.5000   9.0000  10.5000\n\n"
            "Columns 9 to 16 12.0000  13.5000  15.0000  16.5000  18.0000  19.5000  21.0000  22.5000\n\n"
            "Columns 17 to 20 24.0000  25.5000  27.0000  28.5000\n[ CPUFloatType{1,20} ]");
  EXPECT_EQ(text(tensor({true, false})), " 1\n 0\n[ CPUBoolType{2} ]");
  EXPECT_EQ(text(empty({0, 3})), "[ CPUFloatType{0,3} ]");
  EXPECT_EQ(text(Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(text(ones({2}, kMeta)), "[ MetaFloatType{2} ]");
}

}  // namespace
}  // namespace teletensor::testing
