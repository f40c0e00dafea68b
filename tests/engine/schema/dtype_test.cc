#include "engine/schema/dtype.h"

#include <gtest/gtest.h>

#include <complex>
#include <thread>

#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/schema/scalar.h"

namespace tt {
namespace {

using enum DType;

// PyTorch's promotion table (docs: torch.promote_types), in the order of the enumeration.
constexpr DType kTable[10][10] = {
    {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64},
    {kUInt8, kUInt8, kInt16, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64},
    {kInt8, kInt16, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64},
    {kInt16, kInt16, kInt16, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64},
    {kInt32, kInt32, kInt32, kInt32, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64},
    {kInt64, kInt64, kInt64, kInt64, kInt64, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64},
    {kFloat16, kFloat16, kFloat16, kFloat16, kFloat16, kFloat16, kFloat16, kFloat32, kFloat32, kFloat64},
    {kBFloat16, kBFloat16, kBFloat16, kBFloat16, kBFloat16, kBFloat16, kFloat32, kBFloat16, kFloat32, kFloat64},
    {kFloat32, kFloat32, kFloat32, kFloat32, kFloat32, kFloat32, kFloat32, kFloat32, kFloat32, kFloat64},
    {kFloat64, kFloat64, kFloat64, kFloat64, kFloat64, kFloat64, kFloat64, kFloat64, kFloat64, kFloat64},
};

TEST(DTypeTest, PromotesLikePyTorch) {
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      DType x = static_cast<DType>(a), y = static_cast<DType>(b);
      EXPECT_EQ(promote(x, y), kTable[a][b]) << name(x) << " with " << name(y);
    }
  }
}

TEST(DTypeTest, PromotesToComplexOfSufficientWidth) {
  EXPECT_EQ(promote(kComplex64, kInt64), kComplex64);
  EXPECT_EQ(promote(kFloat32, kComplex64), kComplex64);
  EXPECT_EQ(promote(kFloat64, kComplex64), kComplex128);
  EXPECT_EQ(promote(kComplex128, kFloat16), kComplex128);
}

TEST(DTypeTest, WideUnsignedTypesPromoteWithFloatingTypesOnly) {
  for (DType t : {kUInt16, kUInt32, kUInt64}) {
    EXPECT_EQ(promote(t, t), t);
    EXPECT_EQ(promote(t, kFloat16), kFloat16);
    EXPECT_EQ(promote(kFloat64, t), kFloat64);
    for (DType other : {kBool, kUInt8, kInt64, kComplex64, t == kUInt16 ? kUInt32 : kUInt16}) {
      EXPECT_THROW(promote(t, other), Error) << name(t) << " with " << name(other);
    }
    EXPECT_TRUE(is_integral(t) && is_unsigned(t) && !is_floating(t) && !is_complex(t));
  }
}

TEST(DTypeTest, Float8PromotesWithNoOtherType) {
  for (DType t : {kFloat8E4m3fn, kFloat8E5m2}) {
    EXPECT_EQ(promote(t, t), t);
    for (int other = 0; other < kNumDTypes; ++other) {
      if (static_cast<DType>(other) == t) continue;
      EXPECT_THROW(promote(t, static_cast<DType>(other)), Error)
          << name(t) << " with " << name(static_cast<DType>(other));
      EXPECT_THROW(promote(static_cast<DType>(other), t), Error);
    }
    EXPECT_TRUE(is_floating(t) && has_gradients(t) && is_float8(t));
    EXPECT_FALSE(is_integral(t) || is_complex(t) || is_unsigned(t));
    EXPECT_EQ(item_size(t), 1u);
    EXPECT_EQ(to_real(t), t);
    EXPECT_THROW(to_complex(t), Error);
    EXPECT_TRUE(can_cast(kFloat64, t) && can_cast(t, kFloat16) && can_cast(kInt64, t) && can_cast(t, kComplex64));
    EXPECT_FALSE(can_cast(t, kInt8));
  }
  for (int other = 0; other < 15; ++other) EXPECT_FALSE(is_float8(static_cast<DType>(other)));
}

TEST(DefaultFloatTest, IsOfItsThreadAndScope) {
  EXPECT_EQ(default_float(), kFloat32);
  {
    const DefaultFloat outer(kFloat64);
    EXPECT_EQ(Scalar(1.5).dtype(), kFloat64);
    EXPECT_EQ(Scalar(std::complex<double>(0, 1)).dtype(), kComplex128);
    EXPECT_EQ(Scalar(1).dtype(), kInt64);
    {
      const DefaultFloat inner;
      DefaultFloat::set(kBFloat16);
      EXPECT_EQ(default_float(), kBFloat16);
      EXPECT_EQ(default_complex(), kComplex64);
    }
    EXPECT_EQ(default_float(), kFloat64);
    std::thread([] { EXPECT_EQ(default_float(), kFloat32); }).join();
  }
  EXPECT_EQ(default_float(), kFloat32);
  for (int t = 0; t < kNumDTypes; ++t) EXPECT_EQ(is_default_float(static_cast<DType>(t)), t >= 6 && t <= 9);
}

TEST(DTypeTest, MapsComplexToRealTypesAndBack) {
  EXPECT_EQ(to_real(kComplex64), kFloat32);
  EXPECT_EQ(to_real(kComplex128), kFloat64);
  EXPECT_EQ(to_complex(kFloat64), kComplex128);
  EXPECT_EQ(to_complex(kInt8), kComplex64);
  EXPECT_EQ(item_size(kComplex128), 16u);
}

TEST(DTypeTest, NamesRoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    DType t = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(t)), t);
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
}

TEST(DTypeTest, CastsNeverLowerCategory) {
  EXPECT_TRUE(can_cast(kFloat64, kFloat16));
  EXPECT_TRUE(can_cast(kInt64, kUInt8));
  EXPECT_TRUE(can_cast(kBool, kInt8));
  EXPECT_FALSE(can_cast(kFloat32, kInt64));
  EXPECT_FALSE(can_cast(kUInt8, kBool));
  EXPECT_FALSE(can_cast(kComplex64, kFloat64));
  EXPECT_TRUE(can_cast(kFloat64, kComplex64));
  EXPECT_TRUE(can_cast(kInt8, kUInt64));
}

TEST(DTypeTest, OnlyNumbersOfDTypesAreValid) {
  EXPECT_TRUE(is_valid(0));
  EXPECT_TRUE(is_valid(kNumDTypes - 1));
  for (int64_t number : {int64_t{-1}, int64_t{kNumDTypes}, int64_t{256}, int64_t{1} << 40}) {
    EXPECT_FALSE(is_valid(number)) << number;
  }
}

}  // namespace
}  // namespace tt
