#include "engine/schema/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/schema/arg.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

TEST(ScalarTest, ConvertsToIntegersWithinRange) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Scalar(-2.9).to_int(), -2);
  EXPECT_EQ(Scalar(1e300).to_int(), kMax);
  EXPECT_EQ(Scalar(-HUGE_VAL).to_int(), kMin);
  EXPECT_EQ(Scalar(-9223372036854775808.0).to_int(), kMin);
  EXPECT_EQ(Scalar(std::nan("")).to_int(), 0);
}

TEST(ScalarTest, HasDTypeOfItsKind) {
  EXPECT_EQ(Scalar(true).dtype(), DType::kBool);
  EXPECT_EQ(Scalar(3).dtype(), DType::kInt64);
  EXPECT_EQ(Scalar(3.0).dtype(), DType::kFloat32);
}

TEST(ScalarTest, PrintsLikePython) {
  EXPECT_EQ(Scalar(true).to_string(), "True");
  EXPECT_EQ(Scalar(int64_t{-7}).to_string(), "-7");
  EXPECT_EQ(Scalar(0.1).to_string(), "0.1");
}

TEST(ScalarTest, ConvertsToArgAndBack) {
  for (const Scalar& s : {Scalar(true), Scalar(int64_t{1} << 62), Scalar(-0.5)}) {
    Scalar back = Arg(s).scalar();
    EXPECT_EQ(back.category(), s.category());
    EXPECT_EQ(back.to_double(), s.to_double());
    EXPECT_EQ(back.to_int(), s.to_int());
  }
}

TEST(ErrorTest, NamesInnermostOperatorOnce) {
  Error error(ErrorKind::kRuntime, "sizes differ");
  error.set_op("matmul");
  error.set_op("linear");
  EXPECT_EQ(error.message(), "[matmul] sizes differ");
}

TEST(ScalarTest, HoldsComplexNumbers) {
  const Scalar z(std::complex<double>(1.5, -2));
  EXPECT_EQ(z.category(), Category::kComplex);
  EXPECT_EQ(z.dtype(), DType::kComplex64);
  EXPECT_EQ(z.to_string(), "(1.5-2j)");
  EXPECT_TRUE(Scalar(std::complex<double>(0, 1)).to_bool());
  EXPECT_EQ(Arg(z).scalar().to_complex(), z.to_complex());
}

TEST(ScalarTest, HoldsIntegersAboveInt64) {
  const Scalar n = Scalar::of_unsigned(uint64_t{1} << 63);
  EXPECT_TRUE(n.is_beyond_int());
  EXPECT_EQ(n.dtype(), DType::kUInt64);
  EXPECT_EQ(n.to_double(), 0x1p63);
  EXPECT_EQ(n.to_string(), "9223372036854775808");
  EXPECT_EQ(Arg(n).scalar().to_string(), n.to_string());
  EXPECT_FALSE(Scalar::of_unsigned(7).is_beyond_int());
}

}  // namespace
}  // namespace tt
